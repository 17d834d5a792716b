import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { completions } from '../../extension/commands.ts'
import {
  candidate,
  diagnosis,
  type FakeAddon,
  FakeSession,
  fakeAddon,
  fakeProcess,
  type Instance,
} from './fakes.ts'

describe('completions', () => {
  const names = (prefix: string) => completions(prefix)?.map(({ value }) => value)

  it('offers everything, with descriptions, for nothing', () => {
    expect(names('')).toEqual(['status', 'list', 'doctor', 'report', 'auto', 'off', 'attach'])
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

afterEach(() => void vi.useRealTimers())

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
  it('list has a headline and one row per lock in the order of the addon, whatever their names hold', async () => {
    const checks = {
      parsed: 'valid',
      pid: 'dead',
      probes: [{ host: '127.0.0.1', outcome: 'refused' }],
    } as const
    const stale = { verdict: 'stale', reason: 'its process is gone', pid: 4242, port: 4711 } as const
    addon.found = [
      candidate({ reason: '/repo contains this folder', lastActivity: Date.now() - 5 * 60_000 }),
      candidate({
        id: 'b',
        name: 'Zed\nEvil: row',
        workspaceFolder: '/other',
        direct: false,
        matchLength: 0,
      }),
      candidate({ id: 'c', name: 'Neovim', ...stale, checks: { ...checks, probes: [...checks.probes] } }),
    ]
    await pi.ide(session, 'list')
    const [headline, first, second, third, ...more] = said()?.text.split('\n') ?? []
    expect(headline).toBe('1 editor has this folder open.')
    expect(first).toBe(
      '* VS Code — /repo — /repo contains this folder — parsed: valid · pid: not checked · port: not asked · score 5 · active 5 minutes ago',
    )
    expect(second).toMatch(/^Zed\\u\{a\}Evil: row — \/other — another folder — .* score 0 /)
    expect(third).toMatch(
      /^Neovim — \/repo — its process is gone — parsed: valid · pid 4242: dead · 127\.0\.0\.1:4711: refused · /,
    )
    expect(more).toEqual([])
  })
  it('list and the picker say when there is none', async () => {
    addon.found = []
    for (const word of ['list', '']) {
      await pi.ide(session, word)
      expect(said()?.text).toMatch(/^No editor was found; start one /)
    }
    expect(session.offered).toEqual([])
  })
  it('doctor asks about this folder and shows what it is told, line by line', async () => {
    addon.health = diagnosis({ candidates: [candidate({ name: 'A\nWhat to do:' })], advice: ['Do\nthis'] })
    await pi.ide(session, 'Doctor')
    expect(addon.diagnosed).toEqual(['/repo'])
    expect(said()?.type).toBe('info')
    expect(said()?.text.split('\n')).toEqual([
      `pi-x-ide 0.1.0 · linux-x64 · Node ${process.version}`,
      'Connection: VS Code (connected)',
      'Lock folders:',
      '  /home/alice/lock — 1 lock · not watched',
      'Locks:',
      '  * A\\u{a}What to do: — usable · port: not asked',
      'What to do:',
      '  Do\\u{a}this',
    ])
  })
  it('doctor tells what it knows when the diagnosis fails', async () => {
    addon.health = new Error('no runtime')
    await pi.ide(session, 'doctor')
    expect(said()?.text).toMatch(/^pi-x-ide · \w+-\w+ · Node v[\s\S]*\nNo diagnosis: no runtime\n/)
    expect(said()?.text).toContain('Connection: VS Code (connected)')
  })
  it('doctor says nothing to a session that is gone', async () => {
    addon.health = new Error('This extension ctx is stale after session replacement or reload.')
    await pi.ide(session, 'doctor')
    expect(session.notices).toEqual([])
  })
  it('doctor does not wait for ever', async () => {
    addon.health = new Promise(() => {})
    vi.useFakeTimers()
    const done = pi.ide(session, 'doctor')
    await vi.advanceTimersByTimeAsync(11_000)
    await done
    expect(said()?.text).toContain('No diagnosis: The diagnosis took longer than 10 seconds.')
  })
  it('report names neither home nor user nor token, and says so first', async () => {
    const token = '0123456789abcdefABCDEF0123456789'
    addon.health = diagnosis({
      homes: ['C:\\Users\\Alice'],
      candidates: [candidate({ name: `alice's ${token}`, reason: 'c:/users/ALICE/x contains this folder' })],
      advice: ['Look at /home/bob/lock and d:/bob2.'],
    })
    pi = fakeProcess(addon, { HOME: '/home/bob', USERPROFILE: 'D:\\bob2' }).instance()
    await pi.start(session)
    await pi.ide(session, 'report')
    const lines = said()?.text.split('\n') ?? []
    expect(lines[0]).toMatch(/redacted/)
    expect(said()?.text).not.toMatch(/alice|bob|0123/i)
    expect(lines).toContain("  * user's [redacted] — usable: ~/x contains this folder · port: not asked")
    expect(lines).toContain('  Look at ~/lock and ~.')
  })
  it.each(['doctor', 'report'])('%s and list work while switched off', async (word) => {
    await pi.ide(session, 'off')
    await pi.ide(session, word)
    expect(said()?.text).toContain('Connection: none\nReason: Switched off for this session; /ide auto')
    expect(said()?.text).toMatch(/Locks:\n {2}VS Code — usable/)
    await pi.ide(session, 'list')
    expect(said()?.text).toMatch(/^1 editor has this folder open\.\nVS Code — /)
  })
  it('warns about an unknown word', async () => {
    for (const word of ['nonsense', 'constructor', '__proto__']) {
      await pi.ide(session, word)
      expect(said()?.text).toContain('Usage: /ide [status|list|doctor|report|auto|off|attach]')
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
  it('offers what the addon found, in short rows', async () => {
    addon.found = [
      candidate({ name: 'Zed\n' }),
      candidate({ id: 'c', name: 'Quiet', verdict: 'not-answering', reason: 'nothing answers at its port' }),
      candidate({ id: 'b', name: 'Gone', verdict: 'stale', reason: 'its process is gone' }),
    ]
    Object.assign(connection() ?? {}, { message: 'it was slow' })
    await pi.ide(session)
    expect(session.offered).toEqual([
      '1. * Zed\\u{a} — /repo — matches this folder — it was slow',
      '2. Quiet — /repo — nothing answers at its port',
      '3. Gone — /repo — its process is gone',
    ])
  })
  it('tries one that does not answer all the same, also when it is the current one', async () => {
    const quiet = candidate({ verdict: 'not-answering', reason: 'nothing answers at its port' })
    addon.found = [quiet]
    session.answer = (options) => options[0]
    Object.assign(connection() ?? {}, { state: 'waiting' })
    await pi.ide(session)
    expect(connection()?.calls).toEqual(['switchTo a'])
    expect(said()).toEqual({ text: 'Connected to VS Code.', type: 'info' })
  })
  it('says with one of another folder what may be different', async () => {
    const reason = 'is open for another folder; its paths may differ'
    addon.found = [candidate({ id: 'b', name: 'Zed', direct: false, reason })]
    session.answer = (options) => options[0]
    await pi.ide(session)
    expect(said()?.text).toBe(`Connected to Zed. Note: ${reason}.`)
    addon.found = [
      candidate({ id: 'b', name: 'Zed', direct: false, reason: 'is open for /x; pick it by hand' }),
    ]
    await pi.ide(session)
    expect(said()?.text).toBe('Connected to Zed. Note: is open for /x.')
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
    const words = ['', 'status', 'list', 'doctor', 'report', 'auto', 'off', 'attach', 'nonsense']
    for (const args of words) await pi.ide(print, args)
    expect(addon.diagnosed).toEqual([])
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
