import type { Socket } from 'node:net'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ConnectOptions } from '../../index.d.ts'
import { Connection, connect } from '../../index.js'
import { closedAfterwards, Heard, ideServer } from './bridge.ts'
import { FakeEditor, initialized, notification, selectionChanged, snapshot } from './fake-editor.ts'
import { candidateAt, candidateOf, closedPort, expectNoToken, TOKEN, writeLock } from './lock-files.ts'
import { run } from './processes.ts'
import { Listener, requestHead, upgrade } from './sockets.ts'
import { CWD, rejection, until } from './support.ts'

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
