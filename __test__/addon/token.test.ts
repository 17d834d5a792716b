import { chmodSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import type { Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { connect, connectBest, diagnose, discover, loadConfig } from '../../index.js'
import { follow, Heard, ideServer } from './bridge.ts'
import { FakeEditor, initialized } from './fake-editor.ts'
import { candidateOf, closedPort, expectNoToken, lock, TOKEN, writeLock } from './lock-files.ts'
import { Process } from './processes.ts'
import { CLOSE, frame, Listener, requestHead, TEXT, upgrade } from './sockets.ts'
import { CWD, environment, folder, ownHome, rejection, until, writeFileOf } from './support.ts'

describe('the token', () => {
  /** Answers of an editor that go wrong, some of which give back what the request held. */
  const bad: Record<string, (socket: Socket, head: string) => void> = {
    'HTTP 401': (socket) => socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n'),
    'the request in an HTTP error': (socket, head) =>
      socket.end(`HTTP/1.1 400 Bad\r\nX: ${TOKEN}\r\nContent-Length: ${head.length}\r\n\r\n${head}`),
    'the request in its status line': (socket) =>
      socket.end(`HTTP/1.1 400 ${TOKEN}\r\nContent-Length: 0\r\n\r\n`),
    'the request as it is': (socket, head) => socket.end(head),
    'the token as text': (socket) => socket.end(`${TOKEN}\r\n\r\n`),
    'no upgrade': (socket) =>
      socket.end(`HTTP/1.1 101 ${TOKEN}\r\nUpgrade: ${TOKEN}\r\nConnection: Upgrade\r\n\r\n`),
    nothing: (socket) => socket.end(),
    'a reset': (socket) => socket.resetAndDestroy(),
  }

  test('is in nothing that can be seen, whatever goes wrong', async () => {
    const home = ownHome()
    const log = join(home, 'pi-x-ide.log')
    environment({ PI_X_IDE_LOG: log })
    const lockDir = join(home, '.pi/pi-x-ide/lock')
    mkdirSync(lockDir, { recursive: true, mode: 0o700 })
    const seen: unknown[] = []
    for (const [name, answer] of Object.entries(bad)) {
      const { port } = await Listener.open(
        (socket) => void requestHead(socket).then((head) => answer(socket, head)),
      )
      const dir = folder()
      const candidate = await candidateOf(writeLock(dir, { name, port }))
      seen.push(
        candidate,
        await rejection(connect(candidate)),
        await rejection(connectBest(CWD, { lockDir: dir })),
      )
      const connection = await follow(dir)
      const heard = new Heard(connection)
      await until(`trouble: ${name}`, () => connection.message)
      seen.push(await rejection(connection.switchTo(candidate)))
      seen.push(heard.events, connection.message, connection.log(), connection.watching(), connection)
    }
    writeLock(lockDir, { port: await closedPort() }, { name: 'refused.lock' })
    writeLock(lockDir, { version: 2 }, { name: 'newer.lock' })
    writeLock(lockDir, { host: '192.0.2.7' }, { name: 'far.lock' })
    writeFileOf(join(lockDir, 'cut.lock'), JSON.stringify(lock()).slice(0, -3))
    writeFileOf(join(lockDir, 'bare.lock'), TOKEN)
    const good = await FakeEditor.start({ lockDir })
    const connection = await follow()
    await until('connected', () => connection.state === 'connected')
    good.link.terminate()
    await until('trouble', () => connection.message)
    seen.push(connection.message, connection.log(), connection, await diagnose(CWD))
    seen.push(await discover(CWD, { all: true, cleanUp: false }), await discover(CWD), await loadConfig(CWD))
    const text = await until('the log file', () => existsSync(log) && readFileSync(log, 'utf8'))
    expect(text).toContain('refused the connection with HTTP 401')
    expect(statSync(log).mode & 0o777).toBe(0o600)
    seen.push(text, JSON.stringify(seen))
    expect(seen.length).toBeGreaterThan(60)
    for (const value of seen) {
      expectNoToken(value)
      if (value instanceof Error) expectNoToken(value.cause)
    }
  })

  const close = (words: string) =>
    frame(CLOSE, Buffer.concat([Buffer.from([0x0f, 0xa1]), Buffer.from(words)]))
  const failure = (message: string) => JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -1, message } })
  const echoes: Record<string, () => Buffer[]> = {
    'as it closes before the answer': () => [close(`no ${TOKEN}`)],
    'as it closes later': () => [frame(TEXT, initialized()), close(`no ${TOKEN}`)],
    'as it refuses the handshake': () => [frame(TEXT, failure(`bad token ${TOKEN}`))],
    'as its version': () => [frame(TEXT, initialized({ protocolVersion: TOKEN, server: { name: 'Odd' } }))],
  }

  test.each(Object.keys(echoes))('is not repeated where an editor says it %s', async (name) => {
    const frames = (echoes[name] as () => Buffer[])()
    const { port } = await Listener.open((socket) => {
      void upgrade(socket).then(() => socket.write(Buffer.concat(frames)))
    })
    const connection = await follow(dirname(writeLock(folder(), { port })))
    const heard = new Heard(connection)
    const message = await until('trouble', () => connection.message)
    await until('waiting', () => heard.of('status').some(({ state }) => state === 'waiting'))
    expect(message).not.toContain(TOKEN)
    expect(connection.log().map((entry) => entry.message)).toEqual(
      connection.log().map(() => expect.not.stringContaining(TOKEN)),
    )
    expectNoToken(heard.events)
  })

  test('of a server is in nothing that the server shows', async () => {
    const lockDir = join(folder(), 'lock')
    const server = await ideServer({ lockDir })
    const token = JSON.parse(readFileSync(server.lockFile, 'utf8')).authToken
    const connection = await follow(lockDir)
    await until('connected', () => server.clients().length === 1)
    chmodSync(lockDir, 0o777)
    const failed = await rejection(server.setWorkspaceFolders(['/x']))
    expect(failed.code).toBe('PIX_LOCK_FOLDER')
    for (const shown of [server, server.clients(), failed, failed.cause, connection, connection.candidate])
      expectNoToken(shown, token)
    expect(String(server) + JSON.stringify(server)).not.toContain(token)
    chmodSync(lockDir, 0o700)
  })
})

test.each(['127.0.0.1', '127.0.0.2'])('no proxy variable of the shell is asked for %s', async (address) => {
  const proxy = await Listener.open((socket) => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'))
  const url = `http://127.0.0.1:${proxy.port}`
  const env: Record<string, string> = { NO_PROXY: '', no_proxy: '', NODE_USE_ENV_PROXY: '1' }
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'WS_PROXY', 'SOCKS_PROXY'])
    env[name] = env[name.toLowerCase()] = url
  if (address !== '127.0.0.1') env.PI_X_IDE_HOST_OVERRIDE = address
  const editor = await FakeEditor.start({ address })
  const pi = new Process(
    `const connection = await addon.connectBest('${CWD}', { lockDir: args[0] })
     say([connection?.state, (await addon.discover('${CWD}', { lockDir: args[0], all: true }))[0].verdict])
     await connection?.close()`,
    { env, args: [editor.lockDir] },
  )
  expect(await pi.line()).toEqual(['connected', 'usable'])
  expect((await pi.ended).code).toBe(0)
  expect(editor.headers).toHaveLength(1)
  expect(proxy.accepted).toHaveLength(0)
})
