import { afterEach, describe, expect, it, vi } from 'vitest'
import { candidate, FakeSession, fakeAddon, fakeProcess, prepared, settle } from './fakes.ts'

afterEach(() => void vi.useRealTimers())

async function connected(env: Record<string, string> = {}, session = new FakeSession()) {
  const addon = fakeAddon()
  const pi = fakeProcess(addon, env).instance()
  await pi.start(session)
  const connection = addon.opened[0]
  if (!connection) throw new Error('not connected')
  return { addon, pi, session, connection }
}

describe('the factory', () => {
  it('opens nothing and loads nothing', () => {
    const { loads, instance } = fakeProcess(fakeAddon())
    expect(instance().shortcuts).toEqual(['ctrl+alt+k'])
    expect(loads).toHaveLength(0)
  })
  it('registers the key that was asked for, or none', () => {
    const keys = (value: string) =>
      fakeProcess(fakeAddon(), { PI_X_IDE_ATTACH_SHORTCUT: value }).instance().shortcuts
    expect(keys('f8')).toEqual(['f8'])
    expect(keys('off')).toEqual([])
    expect(keys('nonsense')).toEqual(['ctrl+alt+k'])
  })
  it('says once that the key was no key', async () => {
    const process = fakeProcess(fakeAddon(), { PI_X_IDE_ATTACH_SHORTCUT: 'nonsense' })
    const session = new FakeSession()
    for (let count = 0; count < 2; count += 1) await process.instance().start(session)
    expect(session.notices.map(({ type }) => type)).toEqual(['warning'])
  })
})

describe('an addon that does not load', () => {
  const failure = Object.assign(new Error('PIX: no file fits\ntried a.node\nreinstall'), {
    code: 'PIX_NO_BINARY',
  })

  it('gives one notice, however often sessions start', async () => {
    const process = fakeProcess(failure)
    const session = new FakeSession()
    const first = process.instance()
    await first.start(session)
    await first.start(session)
    await first.shutdown()
    await process.instance().start(session, { reason: 'reload' })
    expect(session.notices).toEqual([{ text: `${failure.message}\n(${failure.code})`, type: 'error' }])
    expect(process.loads).toHaveLength(1)
  })
  it('leaves prompts, messages, key and command working', async () => {
    const pi = fakeProcess(failure).instance()
    const session = new FakeSession()
    await pi.start(session)
    expect(await pi.prompt(session)).toBeUndefined()
    pi.shortcut(session)
    for (const args of ['', 'list', 'doctor', 'report', 'auto', 'off', 'attach', 'status']) {
      await pi.ide(session, args)
      expect(session.notices.at(-1)?.text).toContain('no file fits')
    }
    const theme = { fg: (_color: string, text: string) => text }
    expect(pi.renderer({ content: 'x' }, { expanded: false }, theme)?.render(20)).toEqual([' ⧉ x'])
  })
  it('leaves the doctor able to say so, and the report without its folders', async () => {
    const broken = new Error('/home/alice/pi/a.node: wrong ELF class\nreinstall')
    const pi = fakeProcess(Object.assign(broken, { code: 'PIX_BROKEN' }), { HOME: '/home/alice' }).instance()
    const session = new FakeSession()
    await pi.start(session)
    const platform = `${process.platform}-${process.arch}`
    const told = (path: string) => [
      `pi-x-ide · ${platform} · Node ${process.version}`,
      'Connection: none',
      `Reason: ${path}/pi/a.node: wrong ELF class`,
      'reinstall',
      '(PIX_BROKEN)',
      'What to do:',
      '  See the reason above.',
    ]
    await pi.ide(session, 'doctor')
    expect(session.notices.at(-1)?.text.split('\n')).toEqual(told('/home/alice'))
    await pi.ide(session, 'report')
    expect(session.notices.at(-1)?.text.split('\n').slice(1)).toEqual(told('~'))
  })
  it('explains a foreign error', async () => {
    const pi = fakeProcess(new Error("Cannot find module '../index.js'")).instance()
    const session = new FakeSession()
    await pi.start(session)
    expect(session.notices[0]?.text).toMatch(/native part: Cannot find module[\s\S]*pi install npm:pi-x-ide/)
  })
})

describe('where it stays out', () => {
  it.each<[string, 'print' | 'json' | 'tui', Record<string, string>]>([
    ['print mode', 'print', {}],
    ['JSON mode', 'json', {}],
    ['PI_X_IDE=off', 'tui', { PI_X_IDE: 'off', PI_X_IDE_PRINT: '1' }],
  ])('%s: not even the addon is loaded', async (_name, mode, env) => {
    const addon = fakeAddon()
    const process = fakeProcess(addon, env)
    const pi = process.instance()
    const session = new FakeSession(mode)
    await pi.start(session)
    expect(await pi.prompt(session)).toBeUndefined()
    await pi.shutdown()
    expect(process.loads).toHaveLength(0)
    expect(addon.options).toEqual([])
    expect([session.widgets, session.statuses, session.notices]).toEqual([[], [], []])
  })
  it('PI_X_IDE=off registers no key, and /ide says why', async () => {
    const pi = fakeProcess(fakeAddon(), { PI_X_IDE: 'off' }).instance()
    const session = new FakeSession()
    await pi.start(session)
    expect(pi.shortcuts).toEqual([])
    for (const word of ['status', 'list', 'doctor', 'report']) {
      await pi.ide(session, word)
      expect(session.notices.at(-1)?.text).toContain('PI_X_IDE=off')
    }
  })
  it('print mode with PI_X_IDE_PRINT=1 injects, and draws nothing', async () => {
    const session = new FakeSession('print')
    const { pi, connection } = await connected({ PI_X_IDE_PRINT: '1' }, session)
    connection.next = prepared()
    expect((await pi.prompt(session))?.message.content).toBe(prepared().content)
    expect(connection.waits[0]).toBeGreaterThan(900)
    expect([session.widgets, session.statuses]).toEqual([[], []])
  })
})

describe('a session', () => {
  it.each([
    ['a new one has injected nothing', [], { keepAlive: true }],
    [
      'goes on from the active branch',
      [{ type: 'custom_message', customType: 'pi-x-ide/context', details: { hash: 'h9' } }],
      { keepAlive: true, lastInjected: 'h9' },
    ],
  ])('%s', async (_name, branch, options) => {
    const session = new FakeSession()
    session.branch = branch
    const { addon } = await connected({}, session)
    expect(addon.options).toEqual([options])
  })
  it('that starts twice leaves one connection', async () => {
    const { addon, pi, session } = await connected({}, new FakeSession('rpc', true))
    await pi.start(session)
    expect(addon.opened.map(({ calls }) => calls)).toEqual([['unsubscribe', 'close'], []])
  })
  it('that is replaced while it connects closes what arrives late', async () => {
    const addon = fakeAddon()
    let open = () => {}
    addon.gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const pi = fakeProcess(addon).instance()
    const session = new FakeSession()
    await pi.start(session)
    addon.gate = Promise.resolve()
    await pi.start(session)
    open()
    await settle()
    expect(addon.opened.map(({ calls }) => calls)).toEqual([[], ['close']])
    expect(addon.opened[1]?.listeners).toEqual([])
  })
  it('does not wait for the connection when it starts', () => {
    const addon = fakeAddon()
    addon.gate = new Promise(() => {})
    const pi = fakeProcess(addon).instance()
    const session = new FakeSession()
    void pi.start(session)
    expect(addon.options).toHaveLength(1)
  })
  it('that ends does not wait for ever', async () => {
    const { pi, connection } = await connected()
    connection.close = () => new Promise(() => {})
    vi.useFakeTimers()
    const done = vi.fn()
    void pi.shutdown().then(done)
    await vi.advanceTimersByTimeAsync(1100)
    expect(done).toHaveBeenCalled()
  })
  it('that ended is silent, whatever the addon still sends', async () => {
    const { pi, session, connection } = await connected()
    await pi.shutdown()
    const before = [session.repaints, session.widgets.length, session.notices.length]
    connection.select('late.ts', '')
    connection.emit({
      type: 'mention',
      snapshot: { source: 'vscode', filePath: '/a', ranges: [], receivedAt: 1 },
      mentions: ['@a'],
    })
    connection.emit({ type: 'status', state: 'waiting', message: 'late' })
    expect([session.repaints, session.widgets.length, session.notices.length]).toEqual(before)
    expect(session.pasted).toEqual([])
    expect(await pi.prompt(session)).toBeUndefined()
  })
  it('whose context went stale never throws into native code', async () => {
    const { session, connection } = await connected()
    session.stale = true
    connection.select('a.ts', '')
    connection.emit({ type: 'status', state: 'waiting', message: 'x' })
    connection.emit({
      type: 'mention',
      snapshot: { source: 'vscode', filePath: '/a', ranges: [], receivedAt: 1 },
      mentions: ['@a'],
    })
  })
  it('shows the state in the TUI of both hosts, and strings in RPC', async () => {
    for (const old of [false, true]) {
      const { session, connection } = await connected({}, new FakeSession('tui', old))
      expect(session.line()).toBe('⧉ ✓')
      connection.select('foo.ts', '#L10-L20')
      expect(session.line()).toBe('⧉ ⇡ foo.ts#L10-L20')

      const rpc = await connected({}, new FakeSession('rpc', old))
      rpc.connection.select('foo.ts', '#L10-L20')
      expect(rpc.session.widgets).toEqual([['⧉ ✓'], ['⧉ ⇡ foo.ts#L10-L20']])
    }
  })
  it('shows an error when the connection could not be made, and why', async () => {
    const addon = fakeAddon()
    addon.failure = new Error('no runtime')
    const pi = fakeProcess(addon).instance()
    const session = new FakeSession()
    await pi.start(session)
    expect(session.line()).toBe('⧉ ✕')
    await pi.ide(session, 'status')
    expect(session.notices.at(-1)).toEqual({
      text: 'IDE: not connected\nReason: no runtime',
      type: 'error',
    })
  })
  it('tells problems of the configuration once', async () => {
    const addon = fakeAddon()
    addon.config = { ...addon.config, problems: ['config.json:3: not a word'] }
    const process = fakeProcess(addon)
    const session = new FakeSession()
    for (let count = 0; count < 2; count += 1) await process.instance().start(session)
    expect(session.notices).toEqual([
      { text: 'pi-x-ide configuration: config.json:3: not a word', type: 'warning' },
    ])
  })
  it('tells repeated failures once, until it was connected again', async () => {
    const { session, connection } = await connected()
    const fail = () => connection.emit({ type: 'status', state: 'waiting', message: 'no answer' })
    fail()
    fail()
    connection.emit({ type: 'status', state: 'connected', candidate: candidate() })
    fail()
    connection.emit({ type: 'status', state: 'searching', message: 'nobody there' })
    expect(session.notices.map(({ text }) => text)).toEqual(['no answer', 'no answer'])
  })
  it('pastes a mention of the editor once', async () => {
    const { session, connection } = await connected()
    connection.emit({
      type: 'mention',
      snapshot: { source: 'vscode', filePath: '/repo/a.ts', ranges: [], receivedAt: 1 },
      mentions: ['@a.ts#L1', '@a.ts#L5'],
    })
    expect(session.pasted).toEqual(['@a.ts#L1 @a.ts#L5 '])
    expect(session.notices).toEqual([{ text: 'Attached @a.ts#L1 @a.ts#L5', type: 'info' }])
  })
})

describe('a prompt', () => {
  it('takes what is pending once', async () => {
    const { pi, session, connection } = await connected()
    connection.select('foo.ts', '#L10-L20')
    connection.next = prepared()
    const result = await pi.prompt(session, { messageType: 'user' })
    expect(result?.message).toMatchObject({ customType: 'pi-x-ide/context', display: true })
    expect(connection.calls).toEqual(['injected h1'])
    expect(session.line()).toBe('⧉ ✓ foo.ts#L10-L20')
    expect(await pi.prompt(session)).toBeUndefined()
  })
  it('of an extension takes nothing', async () => {
    const { pi, session, connection } = await connected()
    connection.next = prepared()
    expect(await pi.prompt(session, { messageType: 'custom' })).toBeUndefined()
    expect(connection.waits).toEqual([])
  })
  it('waits a moment for a connection that is being made, with one budget for all', async () => {
    const { pi, session, connection } = await connected()
    connection.state = 'connecting'
    await pi.prompt(session)
    expect(connection.waits[0]).toBeGreaterThan(200)
    expect(connection.waits[0]).toBeLessThanOrEqual(250)
  })
  it.each([
    ['tui', 250],
    ['print', 1000],
  ] as const)('goes on without a connection that does not come, in %s after %i ms', async (mode, limit) => {
    const addon = fakeAddon()
    addon.gate = new Promise(() => {})
    const pi = fakeProcess(addon, { PI_X_IDE_PRINT: '1' }).instance()
    const session = new FakeSession(mode)
    await pi.start(session)
    vi.useFakeTimers()
    const done = vi.fn()
    void pi.prompt(session).then(done)
    await vi.advanceTimersByTimeAsync(limit - 20)
    expect(done).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(40)
    expect(done).toHaveBeenCalledWith(undefined)
  })
  it('is not held for ever by an addon that hangs', async () => {
    const { pi, session, connection } = await connected()
    connection.prepareContext = () => new Promise(() => {})
    vi.useFakeTimers()
    const done = vi.fn()
    void pi.prompt(session).then(done)
    await vi.advanceTimersByTimeAsync(1300)
    expect(done).toHaveBeenCalledWith(undefined)
  })
  it('of a session that was replaced meanwhile takes nothing and marks nothing', async () => {
    const { pi, session, connection } = await connected()
    connection.prepareContext = async () => {
      await pi.shutdown()
      return prepared()
    }
    expect(await pi.prompt(session)).toBeUndefined()
    expect(connection.calls).not.toContain('injected h1')
  })
  it('goes on without context when the addon refuses, and says why once', async () => {
    const { pi, session, connection } = await connected()
    connection.prepareContext = async () => {
      throw new Error('.piignore cannot be read')
    }
    expect(await pi.prompt(session)).toBeUndefined()
    expect(await pi.prompt(session)).toBeUndefined()
    expect(session.notices).toEqual([
      { text: 'No editor context: .piignore cannot be read', type: 'warning' },
    ])
  })
})
