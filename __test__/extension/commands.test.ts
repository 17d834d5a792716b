import { beforeEach, describe, expect, it } from 'vitest'
import { completions } from '../../extension/commands.ts'
import { candidate, type FakeAddon, FakeSession, fakeAddon, fakeProcess, type Instance } from './fakes.ts'

describe('completions', () => {
  const names = (prefix: string) => completions(prefix)?.map(({ value }) => value)

  it('offers everything, with descriptions, for nothing', () => {
    expect(names('')).toEqual(['status', 'list', 'auto', 'off', 'attach'])
    expect(completions('')?.every(({ description }) => description)).toBe(true)
  })
  it('matches a prefix in any case', () => {
    expect(names('A')).toEqual(['auto', 'attach'])
    expect(names('ST')).toEqual(['status'])
  })
  it('offers nothing for a complete word, so that Enter runs it', () => {
    expect(completions('off')).toBeNull()
    expect(completions('Status')).toBeNull()
  })
  it('offers nothing where nothing matches', () => {
    expect(completions('x')).toBeNull()
    expect(completions('status now')).toBeNull()
  })
})

describe('/ide', () => {
  let addon: FakeAddon
  let pi: Instance
  let session: FakeSession
  const said = () => session.notices.at(-1)
  const connection = () => addon.opened.at(-1)

  beforeEach(async () => {
    addon = fakeAddon()
    pi = fakeProcess(addon).instance()
    session = new FakeSession()
    await pi.start(session)
  })

  it('status names editor, folder, file, lines and state', async () => {
    connection()?.select('foo.ts', '#L10-L20')
    await pi.ide(session, ' STATUS ')
    expect(said()?.text.split('\n')).toEqual([
      'IDE: VS Code (connected)',
      'Workspace: /repo',
      'File: /repo/foo.ts',
      'Range: L10-L20',
      'Attach: pending',
    ])
  })
  it('status tells the reason', async () => {
    Object.assign(connection() ?? {}, { state: 'waiting', message: 'VS Code does not answer' })
    await pi.ide(session, 'status')
    expect(said()?.text).toContain('Reason: VS Code does not answer')
    expect(said()?.type).toBe('error')
  })
  it('status shows a diagnostic that was left alone', async () => {
    connection()?.emit({
      type: 'diagnosticFix',
      request: {
        action: 'fix',
        filePath: '/repo/a.ts',
        triggerRange: { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } },
        diagnostics: [],
      },
    })
    expect(session.notices).toEqual([])
    await pi.ide(session, 'status')
    expect(said()?.text).toContain('The editor asked to fix a diagnostic in /repo/a.ts')
  })
  it('list says what went wrong with the editor that cannot be reached', async () => {
    addon.found = [candidate()]
    Object.assign(connection() ?? {}, {
      state: 'waiting',
      message: 'VS Code: nothing answers at 127.0.0.1:9',
    })
    await pi.ide(session, 'list')
    expect(said()?.text).toContain('nothing answers at 127.0.0.1:9')
  })
  it('list has one row per lock, with the current one marked and the reason of others', async () => {
    addon.found = [
      candidate(),
      candidate({ id: 'b', name: 'Zed\n', workspaceFolder: '/other', direct: false, matchLength: 0 }),
      candidate({ id: 'c', name: 'Neovim', verdict: 'stale', reason: 'port 4711 refuses' }),
    ]
    await pi.ide(session, 'list')
    expect(said()?.text.split('\n')).toEqual([
      '* VS Code — /repo — matches this folder',
      'Zed\\u{a} — /other — another folder',
      'Neovim — /repo — port 4711 refuses',
    ])
  })
  it('list says when there is none', async () => {
    addon.found = []
    await pi.ide(session, 'list')
    expect(said()?.text).toBe('No editor was found.')
  })
  it('warns about an unknown word', async () => {
    for (const word of ['nonsense', 'constructor', '__proto__']) {
      await pi.ide(session, word)
      expect(said()?.text).toContain('Usage: /ide [status|list|auto|off|attach]')
      expect(said()?.type).toBe('warning')
    }
  })

  it('picks an editor, of two that look alike the right one', async () => {
    addon.found = [candidate({ id: 'b' }), candidate({ id: 'c' })]
    session.answer = (options) => options[1]
    await pi.ide(session)
    expect(session.offered).toEqual([
      '1. VS Code — /repo — matches this folder',
      '2. VS Code — /repo — matches this folder',
    ])
    expect(connection()?.calls).toContain('switchTo c')
  })
  it('does not switch to one that cannot be used, nor to the current one, nor when cancelled', async () => {
    addon.found = [candidate(), candidate({ id: 'b', verdict: 'stale', reason: 'its process is gone' })]
    session.answer = (options) => options[1]
    await pi.ide(session)
    expect(said()?.text).toContain('its process is gone')
    session.answer = (options) => options[0]
    await pi.ide(session)
    session.answer = () => undefined
    await pi.ide(session)
    expect(connection()?.calls).toEqual([])
  })
  it('shows why a switch failed', async () => {
    addon.found = [candidate({ id: 'b' })]
    session.answer = (options) => options[0]
    Object.assign(connection() ?? {}, {
      switchTo: async () => {
        throw new Error('it refused the connection')
      },
    })
    await pi.ide(session)
    expect(said()).toEqual({ text: 'it refused the connection', type: 'error' })
  })

  it('off closes, holds over a reload and a fork, and ends with auto', async () => {
    connection()?.select('foo.ts', '')
    expect(session.line()).toBe('⧉ ⇡ foo.ts')
    await pi.ide(session, 'off')
    expect(connection()?.calls).toContain('close')
    expect(session.line()).toBeUndefined()
    expect(await pi.prompt(session)).toBeUndefined()
    await pi.ide(session, 'status')
    expect(said()?.text).toContain('Switched off for this session')

    await pi.start(session, { reason: 'reload' })
    expect(addon.opened).toHaveLength(1)

    const forked = new FakeSession()
    Object.assign(forked, { id: 's2', file: '/sessions/s2.jsonl' })
    await pi.start(forked, { reason: 'fork', previousSessionFile: '/sessions/s1.jsonl' })
    expect(addon.opened).toHaveLength(1)

    const fresh = new FakeSession()
    Object.assign(fresh, { id: 's3', file: undefined })
    await pi.start(fresh, { reason: 'new', previousSessionFile: '/sessions/s2.jsonl' })
    expect(addon.opened).toHaveLength(2)

    await pi.start(session, { reason: 'resume' })
    await pi.ide(session, 'auto')
    expect(addon.opened).toHaveLength(3)
    await pi.start(session, { reason: 'reload' })
    expect(addon.opened).toHaveLength(4)
  })
  it('auto leaves the editor that matches best alone', async () => {
    await pi.ide(session, 'auto')
    expect(addon.opened).toHaveLength(1)
    expect(said()?.text).toBe('Already connected to VS Code.')
  })
  it('auto matches again when another editor matches better, or one was picked by hand', async () => {
    addon.found = [candidate({ id: 'b' })]
    await pi.ide(session, 'auto')
    expect(addon.opened).toHaveLength(2)
    expect(addon.opened[0]?.calls).toContain('close')

    session.answer = (options) => options[0]
    await pi.ide(session)
    addon.found = [candidate()]
    await pi.ide(session, 'auto')
    expect(addon.opened).toHaveLength(3)
  })

  it('attach arms again and pastes every mention, with one space after the last', async () => {
    Object.assign(connection() ?? {}, { mentioned: ['@foo.ts#L1', '@"a b.ts"#L5-L6'] })
    await pi.ide(session, 'attach')
    expect(connection()?.calls).toEqual(['attach'])
    expect(session.pasted).toEqual(['@foo.ts#L1 @"a b.ts"#L5-L6 '])
    expect(said()?.text).toBe('Attached @foo.ts#L1 @"a b.ts"#L5-L6')
    pi.shortcut(session)
    expect(session.pasted).toHaveLength(2)
  })
  it('attach says when there is nothing', async () => {
    await pi.ide(session, 'attach')
    expect(said()).toEqual({ text: 'The editor has no selection and no open file.', type: 'warning' })
    await pi.ide(session, 'off')
    pi.shortcut(session)
    expect(said()?.text).toContain('Switched off for this session')
    expect(session.pasted).toEqual([])
  })

  it('is silent in print mode', async () => {
    const print = new FakeSession('print')
    for (const args of ['', 'status', 'list', 'auto', 'off', 'attach', 'nonsense']) await pi.ide(print, args)
    expect(print.notices).toEqual([])
    expect(connection()?.calls).toEqual([])
  })
  it('does not surface a context that became stale in the meantime', async () => {
    session.answer = (options) => {
      session.stale = true
      return options[0]
    }
    await pi.ide(session)
  })
})
