import { spawnSync } from 'node:child_process'
import { getEventListeners } from 'node:events'
import { rmSync, truncateSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Candidate, ConnectOptions } from '../../index.d.ts'
import { Connection, connect, connectBest } from '../../index.js'
import {
  CWD,
  candidateOf,
  closedAfterwards,
  closedPort,
  environment,
  expectNoToken,
  FakeEditor,
  folder,
  Heard,
  ideServer,
  initialized,
  Listener,
  lock,
  notification,
  quiet,
  rejection,
  removeBusy,
  requestHead,
  run,
  selectionChanged,
  sleep,
  snapshot,
  TOKEN,
  until,
  upgrade,
  writeLock,
} from './support.ts'

/** A candidate for whatever listens on a port. */
async function candidateAt(port: number, changes = {}): Promise<Candidate> {
  return candidateOf(writeLock(folder(), { port, ...changes }))
}

/** Connects to a TCP server that behaves in its own way, and returns what the promise rejects with. */
async function refusal(onSocket: (socket: Socket) => void, options: ConnectOptions = {}) {
  const listener = await Listener.open(onSocket)
  const error = await rejection(connect(await candidateAt(listener.port), options))
  expect(error).toBeInstanceOf(Error)
  expect(error.message).not.toBe('')
  expectNoToken(error)
  await until('the socket to be closed', () => listener.open === 0)
  return error
}

/** An address of this machine that is not loopback. */
const OUTSIDE = Object.values(networkInterfaces())
  .flat()
  .find((face) => face?.family === 'IPv4' && !face.internal)?.address

describe('a good editor', () => {
  test('is connected: token and initialize are sent once, state and server are known at once', async () => {
    const editor = await FakeEditor.start({
      answer: initialized({
        protocolVersion: 1,
        server: { name: 'Fake', version: '9.9', ide: 'vscode', more: 1 },
      }),
    })
    const connection = await editor.connect()
    expect(connection).toBeInstanceOf(Connection)
    expect(connection.state).toBe('connected')
    expect(connection.server).toEqual({ name: 'Fake', version: '9.9', ide: 'vscode' })
    expect(connection.candidate).toEqual(await editor.candidate)
    expect([connection.latest(), connection.attachState, connection.mentions(), connection.label()]).toEqual([
      null,
      'idle',
      [],
      null,
    ])
    expect(editor.headers).toHaveLength(1)
    expect(editor.headers[0]).toMatchObject({
      'x-pi-x-ide-authorization': TOKEN,
      host: `127.0.0.1:${editor.port}`,
    })
    expect(editor.headers[0]).not.toHaveProperty('origin')
    expect(editor.received.map((message) => JSON.parse(message))).toEqual([
      {
        jsonrpc: '2.0',
        id: expect.anything(),
        method: 'initialize',
        params: { protocolVersion: 1, client: { name: 'pi-x-ide', version: expect.any(String) }, cwd: CWD },
      },
    ])
  })

  test('tells pi’s folder by default as the process stands', async () => {
    const editor = await FakeEditor.start()
    closedAfterwards(await connect(await editor.candidate))
    expect(JSON.parse(editor.received[0] as string).params.cwd).toBe(process.cwd())
  })

  test('may leave its version out, and may talk before it answers', async () => {
    const editor = await FakeEditor.start({ answer: null })
    const connecting = editor.connect()
    await until('initialize', () => editor.received.length > 0)
    editor.send('no json', notification('foo/bar'), selectionChanged(snapshot(`${CWD}/early.ts`, 3)))
    editor.send(initialized({ server: { name: 'Old' } }))
    const connection = await connecting
    expect(connection.server).toEqual({ name: 'Old' })
    await until('the early selection', () => connection.latest())
    expect(connection.mentions()).toEqual(['@early.ts#L3'])
  })

  test('is asked with the token that its lock file has now, not with the one of the scan', async () => {
    const editor = await FakeEditor.start()
    const candidate = await editor.candidate
    writeLock(editor.lockDir, { port: editor.port, authToken: 'renewed' })
    closedAfterwards(await connect(candidate))
    expect(editor.headers[0]).toMatchObject({ 'x-pi-x-ide-authorization': 'renewed' })
  })

  test.each(['localhost', '127.0.0.1', '', ' 127.0.0.1 '])('may have the host %j', async (host) => {
    const editor = await FakeEditor.start({ lock: { host } })
    expect((await editor.connect()).state).toBe('connected')
  })

  test.each(['127.255.0.9', '::1', '[::1]'])('is dialled at %s, which is this machine too', async (host) => {
    const port = await closedPort()
    const error = await rejection(connect(await candidateAt(port, { host })))
    expect(error.code).toBe('PIX_UNREACHABLE')
    expect(error.message).toContain(host.includes('::') ? `[::1]:${port}` : `${host}:${port}`)
  })

  test('ends the connection when it leaves, and tells its own words', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    const heard = new Heard(connection)
    editor.link.close(4001, 'window reloaded')
    const { reason } = await heard.first('closed')
    expect(reason).toMatch(/4001.*window reloaded/)
    expect([connection.state, connection.server, connection.latest()]).toEqual(['closed', null, null])
  })

  test('that vanishes without a word ends the connection too', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    const heard = new Heard(connection)
    editor.link.terminate()
    expect((await heard.first('closed')).reason).not.toBe('')
    expect(connection.state).toBe('closed')
  })
})

describe('a bad editor', () => {
  test.each([401, 403, 404, 500, 200, 302])('that answers the upgrade with %i', async (status) => {
    const error = await refusal((socket) => {
      void requestHead(socket).then(() =>
        socket.end(`HTTP/1.1 ${status} Word\r\nContent-Length: 2\r\nLocation: /\r\n\r\nno`),
      )
    })
    expect(error.code).toBe('PIX_REFUSED')
    expect(error.message).toContain(String(status))
  })

  test('that does not know the token says so through a real server', async () => {
    const server = await ideServer()
    const candidate = await candidateOf(server.lockFile)
    writeLock(dirname(server.lockFile), { port: server.port, authToken: TOKEN })
    const error = await rejection(connect(candidate))
    expect([error.code, error.message]).toEqual(['PIX_REFUSED', expect.stringMatching(/401.*token/)])
    expectNoToken(error)
    expect(server.clients()).toEqual([])
  })

  test('a redirect is not followed', async () => {
    const other = await Listener.open()
    const error = await refusal((socket) => {
      void requestHead(socket).then(() =>
        socket.end(
          `HTTP/1.1 307 Temporary Redirect\r\nLocation: ws://127.0.0.1:${other.port}/\r\nContent-Length: 0\r\n\r\n`,
        ),
      )
    })
    expect(error.code).toBe('PIX_REFUSED')
    expect(other.accepted).toHaveLength(0)
  })

  test('that nobody listens for', async () => {
    const port = await closedPort()
    const error = await rejection(connect(await candidateAt(port)))
    expect(error.code).toBe('PIX_UNREACHABLE')
    expect(error.message).toContain(`127.0.0.1:${port}`)
    expect(error.cause).toBeInstanceOf(Error)
    expectNoToken(error)
  })

  test('that accepts and says nothing', async () => {
    const error = await refusal(() => {}, { timeoutMs: 150 })
    expect([error.code, error.message]).toEqual(['PIX_TIMEOUT', expect.stringContaining('150 ms')])
  })

  test('that upgrades and says nothing', async () => {
    const error = await refusal((socket) => void upgrade(socket), { timeoutMs: 150 })
    expect(error.code).toBe('PIX_TIMEOUT')
  })

  test('that talks but never answers', async () => {
    const error = await refusal(
      (socket) => {
        const timer = setInterval(() => socket.writable && socket.write(Buffer.from([0x89, 0])), 10)
        socket.on('close', () => clearInterval(timer))
        void upgrade(socket)
      },
      { timeoutMs: 200 },
    )
    expect(['PIX_TIMEOUT', 'PIX_HANDSHAKE']).toContain(error.code)
  })

  test('that closes at once', async () => {
    const error = await refusal((socket) => socket.end())
    expect(error.code).toBe('PIX_CLOSED')
  })

  test('that resets at once', async () => {
    const error = await refusal((socket) => socket.resetAndDestroy())
    // The reset may come before the socket counts as open.
    expect(['PIX_CLOSED', 'PIX_UNREACHABLE']).toContain(error.code)
  })

  test('that closes after the upgrade', async () => {
    const error = await refusal((socket) => void upgrade(socket).then(() => socket.end()))
    expect(error.code).toBe('PIX_CLOSED')
  })

  test('that closes after the upgrade with a reason', async () => {
    const editor = await FakeEditor.start({ answer: null })
    const connecting = rejection(editor.connect())
    await until('initialize', () => editor.received.length > 0)
    editor.link.close(1013, 'come back later')
    const error = await connecting
    expect([error.code, error.message]).toEqual([
      'PIX_CLOSED',
      expect.stringMatching(/1013.*come back later/),
    ])
  })

  test.each<[string, string | Buffer]>([
    ['text that is no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['bytes', Buffer.from([0, 1, 2, 255, 13, 10, 13, 10])],
    [
      'an upgrade without the right key',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAA\r\n\r\n',
    ],
    [
      'an upgrade to something else',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n',
    ],
    ['an older HTTP', 'HTTP/0.9 101 x\r\n\r\n'],
  ])('that answers the upgrade with %s', async (_, answer) => {
    const error = await refusal((socket) => void requestHead(socket).then(() => socket.write(answer)))
    expect(error.code).toBe('PIX_HANDSHAKE')
    expect(error.cause).toBeInstanceOf(Error)
  })

  test('that pours endless header lines', async () => {
    const error = await refusal(
      (socket) => {
        const pour = () => {
          while (socket.writable && socket.write(`x-filler: ${'y'.repeat(8000)}\r\n`));
        }
        socket.on('drain', pour)
        void requestHead(socket).then(() => {
          socket.write('HTTP/1.1 101 Switching Protocols\r\n')
          pour()
        })
      },
      { timeoutMs: 3000 },
    )
    expect(['PIX_HANDSHAKE', 'PIX_TIMEOUT']).toContain(error.code)
  })

  test.each([2, 0, 1.5, '1', null, [1]])('that speaks the protocol version %j', async (protocolVersion) => {
    const editor = await FakeEditor.start({
      answer: initialized({ protocolVersion, server: { name: 'New' } }),
    })
    const error = await rejection(editor.connect())
    expect(error.code).toBe('PIX_PROTOCOL_VERSION')
    expect(error.message).toContain('version')
    await until('the link to be closed', () => editor.open === 0)
  })

  test('that answers initialize with an error', async () => {
    const answer = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      error: { code: -32_000, message: 'too many clients' },
    })
    const editor = await FakeEditor.start({ answer })
    const error = await rejection(editor.connect())
    expect([error.code, error.message]).toEqual([
      'PIX_INITIALIZE_REFUSED',
      expect.stringContaining('too many clients'),
    ])
    await until('the link to be closed', () => editor.open === 0)
  })

  test.each<[string, string]>([
    ['no result', '{"jsonrpc":"2.0","id":1}'],
    ['a result of another shape', initialized({ protocolVersion: 1 })],
    ['a server without a name', initialized({ protocolVersion: 1, server: { version: '1' } })],
    ['no JSON', 'OK'],
    ['deep nesting', '['.repeat(200_000)],
    ['a batch', `[${initialized()}]`],
  ])('that answers initialize with %s has not answered', async (_, answer) => {
    const editor = await FakeEditor.start({ answer })
    expect((await rejection(editor.connect({ timeoutMs: 150 }))).code).toBe('PIX_TIMEOUT')
    await until('the link to be closed', () => editor.open === 0)
  })

  test('that floods before it answers does not fill memory', async () => {
    // The client in a process of its own, so that nothing but its memory is measured.
    const flood = selectionChanged(snapshot(`${CWD}/flood.ts`, 1, 1, 'x'.repeat(2_000_000)))
    const editor = await FakeEditor.start({
      answer: null,
      onReady: (link) => {
        const pour = () => {
          if (link.readyState === 1) link.send(flood, pour)
        }
        pour()
      },
    })
    const { stdout, code } = await run(
      `const [candidate] = args
       const before = process.memoryUsage().rss
       let most = 0
       setInterval(() => { most = Math.max(most, process.memoryUsage().rss - before) }, 20)
       say(await addon.connect(candidate, { timeoutMs: 1200 }).catch((error) => error.code))
       say(most < 60e6 ? 'flat' : most)
       process.exit(0)`,
      { args: [await editor.candidate] },
    )
    expect([stdout, code]).toEqual(['"PIX_TIMEOUT"\n"flat"\n', 0])
  })
})

describe('where the token may go', () => {
  const strangers = [
    '192.0.2.7',
    '10.0.0.1',
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '0.0.0.0',
    '169.254.169.254',
    '[2001:db8::1]',
    '127.0.0.1@evil.example',
    '127.0.0.1/evil',
    'localhost\r\nx: y',
  ]
  test.each(strangers)('not to %j', async (host) => {
    const error = await rejection(connect(await candidateAt(9, { host }), { timeoutMs: 2000 }))
    expect(error.code).toBe('PIX_HOST_REFUSED')
    expectNoToken(error)
  })

  test.skipIf(!OUTSIDE)(
    'not to another address, even of this machine, unless the user named it',
    async () => {
      const heads: string[] = []
      const listener = await Listener.open((socket) => {
        void requestHead(socket).then((head) => {
          heads.push(head)
          socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n')
        })
      }, '0.0.0.0')
      const candidate = await candidateAt(listener.port, { host: OUTSIDE })
      const error = await rejection(connect(candidate))
      expect([error.code, error.message]).toEqual([
        'PIX_HOST_REFUSED',
        expect.stringContaining(OUTSIDE as string),
      ])
      expect((await rejection(connectBest(CWD, { lockDir: dirname(candidate.id) }))).code).toBe(
        'PIX_UNREACHABLE',
      )
      await quiet()
      expect(listener.accepted).toHaveLength(0)
      environment({ PI_X_IDE_HOST_OVERRIDE: OUTSIDE })
      expect((await rejection(connect(candidate))).code).toBe('PIX_REFUSED')
      expect(heads[0]).toContain(TOKEN)
    },
  )

  test('not through a proxy', async () => {
    const proxy = await Listener.open((socket) => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'))
    const url = `http://127.0.0.1:${proxy.port}`
    const names = [
      'HTTP_PROXY',
      'http_proxy',
      'HTTPS_PROXY',
      'https_proxy',
      'ALL_PROXY',
      'all_proxy',
      'WS_PROXY',
      'ws_proxy',
    ]
    environment({
      ...Object.fromEntries(names.map((name) => [name, url])),
      NO_PROXY: undefined,
      no_proxy: undefined,
    })
    const server = await ideServer()
    const connection = closedAfterwards(await connectBest(CWD, { lockDir: dirname(server.lockFile) }))
    expect(connection?.state).toBe('connected')
    await until('the client', () => server.clients().length === 1)
    expect(proxy.accepted).toHaveLength(0)
  })

  test('a token that is no header value is refused without being told', async () => {
    const listener = await Listener.open()
    for (const authToken of [`${TOKEN}\r\nx: y`, `${TOKEN}\u0000`, `${TOKEN}\u2028`]) {
      const outcome = await rejection(
        connect(await candidateAt(listener.port, { authToken }), { timeoutMs: 150 }),
      )
      expectNoToken(outcome)
      expect(outcome.code).toMatch(/^PIX_/)
    }
  })
})

describe('a candidate that cannot be used', () => {
  test('the lock file is gone, or is something else by now', async () => {
    const changes: Record<string, (file: string) => unknown> = {
      gone: (file) => rmSync(file),
      'a pipe': (file) => spawnSync('sh', ['-c', 'rm "$0" && mkfifo "$0"', file]),
      'a link': (file) => spawnSync('sh', ['-c', 'mv "$0" "$0.old" && ln -s "$0.old" "$0"', file]),
      '50 MB': (file) => truncateSync(file, 50_000_000),
      'no lock': (file) => writeFileSync(file, '{}'),
      'of another version': (file) => writeFileSync(file, JSON.stringify(lock({ version: 2 }))),
    }
    for (const [name, change] of Object.entries(changes)) {
      const editor = await FakeEditor.start()
      const candidate = await editor.candidate
      change(editor.lockFile)
      const error = await rejection(connect(candidate))
      expect(error.code, name).toBe('PIX_LOCK_GONE')
      expectNoToken(error)
      expect(editor.links, name).toHaveLength(0)
    }
  })

  test('its verdict is another than usable', async () => {
    const editor = await FakeEditor.start()
    const candidate = await editor.candidate
    for (const verdict of [
      'foreign-host',
      'unsupported',
      'malformed',
      'untrusted',
      'stale',
      'removed',
    ] as const)
      expect(
        (await rejection(connect({ ...candidate, verdict, reason: 'is not for you' }))).message,
      ).toContain('is not for you')
    expect(editor.links).toHaveLength(0)
  })

  test('one that was made up does not crash', async () => {
    const editor = await FakeEditor.start()
    const candidate = await editor.candidate
    for (const id of [
      '',
      '/',
      '.',
      '/proc/self/mem',
      '/dev/zero',
      '/tmp\u0000x',
      editor.lockDir,
      `${editor.lockFile}x`,
      '\ud800',
    ])
      expect((await rejection(connect({ ...candidate, id }))).code, JSON.stringify(id)).toBe('PIX_LOCK_GONE')
    const numbers = [Number.NaN, -1, 1e300, Number.POSITIVE_INFINITY]
    for (const n of numbers) {
      const odd = { ...candidate, pid: n, port: n, matchLength: n, lastActivity: n }
      expect(closedAfterwards(await connect(odd, { cwd: CWD })).state).toBe('connected')
    }
  })

  test('values of a wrong type are refused', async () => {
    const candidate = await candidateAt(9)
    const bad = [
      undefined,
      null,
      5,
      'x',
      {},
      { ...candidate, id: 5 },
      { ...candidate, verdict: 'fine' },
      { ...candidate, workspaceFolders: 'x' },
    ]
    for (const value of bad) {
      const call = () => connect(value as unknown as Candidate)
      expect(call, JSON.stringify(value)).toThrow()
    }
    const options: ConnectOptions[] = [
      { timeoutMs: '5' },
      { cwd: 5 },
      { lastInjected: 7 },
    ] as unknown as ConnectOptions[]
    for (const value of options) expect(() => connect(candidate, value), JSON.stringify(value)).toThrow()
  })

  test.each([0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 3_600_001, 1e300])(
    'a time limit of %d is refused',
    async (timeoutMs) => {
      const editor = await FakeEditor.start()
      const candidate = await editor.candidate
      for (const attempt of [
        () => connect(candidate, { timeoutMs }),
        () => connectBest(CWD, { lockDir: editor.lockDir, timeoutMs }),
      ])
        expect((await rejection(attempt())).code).toBe('PIX_INVALID_ARGUMENT')
      expect((await rejection(connect(await editor.candidate, { cwd: 'app' }))).code).toBe(
        'PIX_INVALID_ARGUMENT',
      )
      expect(editor.links).toHaveLength(0)
    },
  )
})

describe('abort', () => {
  test('before: rejects with the reason and dials nobody', async () => {
    const listener = await Listener.open()
    const reason = new Error('enough')
    const signal = AbortSignal.abort(reason)
    expect(await rejection(connect(await candidateAt(listener.port), { signal }))).toBe(reason)
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    expect(listener.open).toBe(0)
  })

  test.each(['connect', 'connectBest'] as const)(
    'during %s: rejects with the reason, closes the socket, leaves no listener',
    async (name) => {
      const listener = await Listener.open()
      const candidate = await candidateAt(listener.port)
      const controller = new AbortController()
      const { signal } = controller
      const attempt =
        name === 'connect'
          ? connect(candidate, { signal })
          : connectBest(CWD, { lockDir: dirname(candidate.id), signal })
      const outcome = rejection(attempt)
      await until('the socket', () => listener.accepted.length === 1)
      expect(getEventListeners(signal, 'abort')).toHaveLength(1)
      const reason = { any: 'object' }
      controller.abort(reason)
      expect(await outcome).toBe(reason)
      expect(getEventListeners(signal, 'abort')).toHaveLength(0)
      await until('the socket to be closed', () => listener.open === 0)
      expect(listener.accepted).toHaveLength(1)
    },
  )

  test('afterwards: changes nothing, and no listener stays in any outcome', async () => {
    const editor = await FakeEditor.start()
    const controller = new AbortController()
    const { signal } = controller
    const connection = await editor.connect({ signal })
    await rejection(connect(await candidateAt(await closedPort()), { signal }))
    await rejection(connect(await editor.candidate, { signal, timeoutMs: -1 }))
    const followed = closedAfterwards(await connectBest(CWD, { lockDir: folder(), keepAlive: true, signal }))
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    controller.abort()
    await quiet()
    expect([connection.state, followed?.state]).toEqual(['connected', 'searching'])
  })
})

describe('connectBest', () => {
  test('gives null where no editor has the folder open, and dials nobody', async () => {
    const editor = await FakeEditor.start({
      lock: { workspaceFolders: ['/elsewhere', `${CWD}/packages/web`, '/'] },
    })
    expect(await connectBest(CWD, { lockDir: editor.lockDir })).toBeNull()
    expect(await connectBest(CWD, { lockDir: folder() })).toBeNull()
    expect(editor.links).toHaveLength(0)
  })

  test('takes the best one and no other', async () => {
    const near = await FakeEditor.start({ lock: { name: 'near' } })
    const far = await FakeEditor.start({
      lock: { name: 'far', workspaceFolders: ['/w'] },
      lockDir: near.lockDir,
    })
    const connection = closedAfterwards(await connectBest(CWD, { lockDir: near.lockDir }))
    expect(connection?.candidate?.name).toBe('near')
    expect([near.links.length, far.links.length]).toEqual([1, 0])
  })

  test('takes the next one where the best cannot be reached', async () => {
    const lockDir = folder()
    writeLock(lockDir, { name: 'dead', port: await closedPort() })
    const silent = await Listener.open()
    writeLock(lockDir, { name: 'silent', port: silent.port, workspaceFolders: [CWD] })
    const editor = await FakeEditor.start({ lock: { name: 'alive', workspaceFolders: ['/w'] }, lockDir })
    const connection = closedAfterwards(await connectBest(CWD, { lockDir, timeoutMs: 300 }))
    expect(connection?.candidate?.name).toBe('alive')
    expect(connection?.state).toBe('connected')
    expect(editor.links).toHaveLength(1)
    expect(silent.open).toBe(0)
  })

  test('rejects with a cause per editor when all fail', async () => {
    const lockDir = folder()
    writeLock(lockDir, { name: 'nobody', port: await closedPort() })
    const { port } = await Listener.open((socket) => socket.end())
    writeLock(lockDir, { name: 'hangs up', port, workspaceFolders: ['/w'] })
    writeLock(lockDir, { name: 'of another folder', port: 1, workspaceFolders: ['/x'] })
    const error = await rejection(connectBest(CWD, { lockDir }))
    expect(error.code).toBe('PIX_UNREACHABLE')
    expect(error.message).toMatch(/nobody.*hangs up/)
    const causes = error.cause as (Error & { code: string })[]
    expect(causes.map(({ code }) => code)).toEqual(['PIX_UNREACHABLE', 'PIX_CLOSED'])
    for (const [i, name] of ['nobody', 'hangs up'].entries()) {
      expect(causes[i]).toBeInstanceOf(Error)
      expect(causes[i]?.message).toContain(name)
    }
    expectNoToken(error)
  })

  test('rejects with the one cause when one fails', async () => {
    const lockDir = folder()
    writeLock(lockDir, { port: await closedPort() })
    const error = await rejection(connectBest(CWD, { lockDir }))
    expect(error.code).toBe('PIX_UNREACHABLE')
    const causes = [error.cause].flat() as (Error & { code: string })[]
    expect(causes.map(({ code }) => code)).toEqual(['PIX_UNREACHABLE'])
  })

  test('a relative folder is refused', async () => {
    expect((await rejection(connectBest('app'))).code).toBe('PIX_INVALID_ARGUMENT')
    expect((await rejection(connectBest(CWD, { lockDir: 'lock', keepAlive: true }))).code).toBe(
      'PIX_INVALID_ARGUMENT',
    )
  })
})

describe('keepAlive', () => {
  async function follow(lockDir: string) {
    const connection = closedAfterwards(await connectBest(CWD, { lockDir, keepAlive: true }))
    if (!connection) throw new Error('null')
    return { connection, heard: new Heard(connection) }
  }

  test('is never null: it searches, finds an editor that comes, and searches again when it leaves', async () => {
    const lockDir = join(folder(), 'not/there/yet')
    const { connection, heard } = await follow(lockDir)
    await until('searching', () => connection.state === 'searching')
    expect(connection.candidate).toBeNull()
    for (const name of ['first', 'second']) {
      const server = await ideServer({ lockDir, name })
      server.publish(snapshot(`${CWD}/${name}.ts`))
      await until(name, () => connection.latest()?.filePath.endsWith(`${name}.ts`))
      expect([connection.state, connection.server?.name, connection.candidate?.name]).toEqual([
        'connected',
        name,
        name,
      ])
      await server.close()
      await until('searching again', () => connection.state === 'searching')
      expect([connection.latest(), connection.server, connection.attachState]).toEqual([null, null, 'idle'])
    }
    // A state may be asked for before its event is here; the end comes after all events.
    await connection.close()
    expect(heard.types.at(-1)).toBe('closed')
    const states = heard.of('status').map(({ state, server }) => (server ? server.name : state))
    expect(states.filter((state) => state !== 'connecting').slice(-5)).toEqual([
      'first',
      'searching',
      'second',
      'searching',
      'closed',
    ])
  })

  test('goes to the next window of the folder when the first one ends', async () => {
    const first = await ideServer({ name: 'first' })
    const lockDir = dirname(first.lockFile)
    const { connection } = await follow(lockDir)
    await until('first', () => connection.server?.name === 'first')
    await ideServer({ name: 'second', workspaceFolders: ['/w'], lockDir })
    await first.close()
    await until('second', () => connection.server?.name === 'second')
  })

  test('finds an editor that appears while another one does not answer', async () => {
    const lockDir = folder()
    writeLock(lockDir, { name: 'dead', port: await closedPort() })
    const { connection } = await follow(lockDir)
    await until('waiting', () => connection.state === 'waiting')
    expect(connection.candidate?.name).toBe('dead')
    await FakeEditor.start({ lock: { name: 'alive', workspaceFolders: ['/w'] }, lockDir })
    await until('alive', () => connection.state === 'connected')
    expect(connection.candidate?.name).toBe('alive')
  })

  test('finds editors in a lock folder that was removed and made again', async () => {
    const parent = folder()
    const lockDir = join(parent, 'lock')
    const { connection } = await follow(lockDir)
    await until('searching', () => connection.state === 'searching')
    for (const name of ['first', 'second', 'third']) {
      const server = await ideServer({ lockDir, name })
      await until(name, () => connection.server?.name === name)
      await server.close()
      removeBusy(lockDir)
      await until('searching', () => connection.state === 'searching')
    }
  })

  test('tries again with growing delays, and tells the user once when editors do not answer, one or several', async () => {
    const counts = [1, 2, 3]
    const all = await Promise.all(
      counts.map(async (editors) => {
        const lockDir = folder()
        for (let i = 0; i < editors; i++)
          writeLock(lockDir, { name: `dead ${i}`, port: await closedPort() }, { name: `${i}.lock` })
        return await follow(lockDir)
      }),
    )
    // One that answers and hangs up at once must not reset the delays.
    const flapping = await FakeEditor.start({ onReady: (link) => setTimeout(() => link.close(), 20) })
    const start = Date.now()
    await follow(flapping.lockDir)
    const told = () => all.map(({ heard }) => heard.of('status').flatMap(({ message }) => message ?? []))
    await until('word of each', () => told().every((messages) => messages.length > 0), 10_000).catch(() => {})
    // Tries at 0, 1 and 3 s; the next one comes at 7 s.
    await sleep(400)
    const { length } = flapping.links
    expect(length).toBeLessThanOrEqual(Date.now() - start < 6500 ? 3 : 4)
    expect(told()).toEqual(counts.map(() => [expect.stringContaining('dead')]))
  })

  test('holds one socket at most while an editor comes and goes and the user presses on', async () => {
    const editor = await FakeEditor.start({
      onReady: (link) => setTimeout(() => link.close(), Math.random() * 20),
    })
    const candidate = await editor.candidate
    const { connection } = await follow(editor.lockDir)
    let most = 0
    const timer = setInterval(() => {
      most = Math.max(most, editor.open)
    }, 1)
    for (let i = 0; i < 20; i++) {
      connection.switchTo(candidate).catch(() => {})
      await sleep(10)
    }
    clearInterval(timer)
    expect(most).toBe(1)
    await connection.close()
    await until('all links to be closed', () => editor.open === 0)
    const made = editor.links.length
    await sleep(1200)
    expect(editor.links).toHaveLength(made)
  })
})

describe('switchTo', () => {
  test('leaves the present editor and takes the other one, whatever its folder', async () => {
    const [one, other] = [
      await FakeEditor.start(),
      await FakeEditor.start({ lock: { workspaceFolders: ['/elsewhere'] } }),
    ]
    const connection = await one.connect()
    const heard = new Heard(connection)
    one.send(selectionChanged(snapshot(`${CWD}/a.ts`)))
    await heard.first('selection')
    await connection.switchTo(await other.candidate)
    expect([connection.state, connection.candidate?.id, connection.latest()]).toEqual([
      'connected',
      other.lockFile,
      null,
    ])
    await until('the first link to be closed', () => one.open === 0)
    other.send(selectionChanged(snapshot('/elsewhere/b.ts')))
    await until('the other selection', () => connection.latest()?.filePath === '/elsewhere/b.ts')
    expect(heard.types).not.toContain('closed')
    expect([one.links.length, other.links.length]).toEqual([1, 1])
  })

  test('rejects as connect does, and a connection that follows goes back', async () => {
    const editor = await FakeEditor.start()
    const dead = await candidateAt(await closedPort())
    const connection = closedAfterwards(await connectBest(CWD, { lockDir: editor.lockDir, keepAlive: true }))
    await until('connected', () => connection?.state === 'connected')
    const error = await rejection((connection as Connection).switchTo(dead))
    expect(error.code).toBe('PIX_UNREACHABLE')
    expectNoToken(error)
    await until('connected again', () => connection?.state === 'connected')
    expect(connection?.candidate?.id).toBe(editor.lockFile)
  })

  test('of several at once the last one counts, and the others say so', async () => {
    const [one, other] = [await FakeEditor.start(), await FakeEditor.start()]
    const silent = await FakeEditor.start({ answer: null })
    const connection = await one.connect()
    const superseded = [
      rejection(connection.switchTo(await silent.candidate)),
      rejection(connection.switchTo(await silent.candidate)),
    ]
    await connection.switchTo(await other.candidate)
    for (const error of await Promise.all(superseded)) expect(error.code).toBe('PIX_SUPERSEDED')
    expect([connection.state, connection.candidate?.id]).toEqual(['connected', other.lockFile])
    await until('the others to be closed', () => one.open === 0 && silent.open === 0)
    const last = rejection(connection.switchTo(await silent.candidate))
    await connection.close()
    expect((await last).code).toMatch(/^PIX_(SUPERSEDED|CLOSED|NOT_USABLE)$/)
  })

  test('a closed connection does not open again', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    await connection.close()
    expect((await rejection(connection.switchTo(await editor.candidate))).code).toMatch(/^PIX_/)
    await quiet()
    expect(editor.links).toHaveLength(1)
    expect(connection.state).toBe('closed')
  })
})

test('connections that are dropped while they are made leave no socket', async () => {
  const listener = await Listener.open()
  const candidate = await candidateAt(listener.port)
  const attempts = Array.from({ length: 20 }, () => rejection(connect(candidate, { timeoutMs: 100 })))
  for (const error of await Promise.all(attempts)) expect(error.code).toBe('PIX_TIMEOUT')
  await until('all sockets to be closed', () => listener.open === 0)
  expect(listener.accepted).toHaveLength(20)
})
