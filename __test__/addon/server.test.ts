import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect as dial } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { DiagnosticFix, IdeServerOptions, SnapshotInput } from '../../index.d.ts'
import { connectBest, discover, IdeServer } from '../../index.js'
import {
  Client,
  CWD,
  closedAfterwards,
  expectNoToken,
  folder,
  frame,
  Heard,
  ideServer,
  isRoot,
  notification,
  ownHome,
  Process,
  quiet,
  rejection,
  removeBusy,
  request,
  run,
  sleep,
  snapshot,
  TEXT,
  thrown,
  until,
  upgradeStatus,
} from './support.ts'

const file = (name: string) => `${CWD}/${name}`
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)
const content = (server: IdeServer) => JSON.parse(readFileSync(server.lockFile, 'utf8'))
const tokenOf = (server: IdeServer): string => content(server).authToken
const files = (messages: SnapshotInput[]) => messages.map(({ filePath }) => filePath)

/** A client of a server that has completed the handshake. */
const join_ = (server: IdeServer, cwd?: string) => Client.join(server.port, tokenOf(server), cwd)

describe('the lock file', () => {
  test('says what the protocol asks for, in a private folder that is made on the way', async () => {
    const lockDir = join(folder(), 'a/b/lock')
    const before = Date.now()
    const server = await ideServer({
      lockDir,
      ide: 'my-ide',
      name: 'My IDE',
      workspaceFolders: ['/w/a', '/w/b'],
    })
    expect(server.lockFile).toBe(join(lockDir, `my-ide-${process.pid}-${server.port}.lock`))
    expect([mode(server.lockFile), mode(lockDir), mode(dirname(lockDir))]).toEqual(['600', '700', '700'])
    const { createdAt, updatedAt, hostId, ...rest } = content(server)
    expect(rest).toEqual({
      version: 1,
      ide: 'my-ide',
      name: 'My IDE',
      transport: 'ws',
      host: '127.0.0.1',
      port: server.port,
      authToken: expect.stringMatching(/^[0-9a-f]{64}$/),
      workspaceFolders: ['/w/a', '/w/b'],
      pid: process.pid,
      runningInWindows: false,
    })
    for (const time of [createdAt, updatedAt]) {
      expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(Date.parse(time)).toBeGreaterThanOrEqual(before - 1000)
      expect(Date.parse(time)).toBeLessThanOrEqual(Date.now() + 1000)
    }
    expect(hostId ?? '0'.repeat(16)).toMatch(/^[0-9a-f]{16}$/)
    expect(readFileSync(server.lockFile, 'utf8')).toMatch(/^\{\n {2}"version": 1,[\s\S]*\}\n$/)
    expect(readdirSync(lockDir)).toHaveLength(1)
  })

  test('goes to the home by default', async () => {
    const home = ownHome()
    const server = await IdeServer.start({ ide: 'nvim', name: 'Neovim', workspaceFolders: [] })
    expect(dirname(server.lockFile)).toBe(join(home, '.pi/pi-x-ide/lock'))
    for (const part of ['.pi', '.pi/pi-x-ide', '.pi/pi-x-ide/lock'])
      expect(mode(join(home, part))).toBe('700')
    await server.close()
  })

  test('holds another token for each server', async () => {
    const servers = await Promise.all(Array.from({ length: 5 }, () => ideServer()))
    expect(new Set(servers.map(tokenOf)).size).toBe(5)
    expect(new Set(servers.map(({ port }) => port)).size).toBe(5)
  })

  test('is private whatever the umask, and leaves the mode of a folder that was named', async () => {
    const lockDir = join(folder(), 'lock')
    mkdirSync(lockDir)
    chmodSync(lockDir, 0o755)
    const { stdout } = await run(
      `process.umask(0)
       const server = await addon.IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: [], lockDir: args[0] })
       const { statSync } = require('node:fs')
       say([statSync(server.lockFile), statSync(args[0])].map(({ mode }) => (mode & 0o777).toString(8)))
       await server.close()`,
      { args: [lockDir] },
    )
    expect(stdout).toBe('["600","755"]\n')
  })

  test('follows the folders and the focus, and keeps its token', async () => {
    const server = await ideServer()
    const first = content(server)
    await sleep(5)
    await server.setWorkspaceFolders(['/w/other'])
    const second = content(server)
    expect(second).toEqual({ ...first, workspaceFolders: ['/w/other'], updatedAt: second.updatedAt })
    expect(Date.parse(second.updatedAt)).toBeGreaterThan(Date.parse(first.updatedAt))
    const before = Date.now()
    await server.focus()
    const third = content(server)
    expect(third.focusedAt).toBeGreaterThanOrEqual(before - 1000)
    expect(third).toEqual({ ...second, focusedAt: third.focusedAt, updatedAt: third.updatedAt })
    const [candidate] = await discover('/w/other/src', { lockDir: dirname(server.lockFile) })
    expect(candidate).toMatchObject({ direct: true, lastActivity: third.focusedAt })
    expect(mode(server.lockFile)).toBe('600')
  })

  test('changes in the order of the calls, in one step each', async () => {
    const server = await ideServer()
    const seen = new Set<string>()
    let isDone = false
    const reader = (async () => {
      while (!isDone) {
        seen.add(content(server).workspaceFolders.join())
        await sleep(0)
      }
    })()
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        Array.from({ length: 40 }, (_, i) => server.setWorkspaceFolders([`/w/${round}/${i}`])),
      )
      expect(content(server).workspaceFolders).toEqual([`/w/${round}/39`])
    }
    isDone = true
    await reader
    expect(seen.size).toBeGreaterThan(1)
    expect(readdirSync(dirname(server.lockFile))).toHaveLength(1)
  })

  test('is refreshed as time goes by', async () => {
    const server = await ideServer({ heartbeatMs: 20 })
    const first = content(server)
    await until('a refresh', () => content(server).updatedAt !== first.updatedAt)
    const second = content(server)
    expect(second).toEqual({ ...first, updatedAt: second.updatedAt })
  })

  test('comes back when somebody removes it, with the same token', async () => {
    const server = await ideServer()
    const before = content(server)
    for (let i = 0; i < 2; i++) {
      rmSync(server.lockFile)
      await until('the file', () => existsSync(server.lockFile))
      expect(content(server)).toEqual({ ...before, updatedAt: expect.any(String) })
      expect(mode(server.lockFile)).toBe('600')
    }
  })

  test('comes back when its folder is removed, again and again', async () => {
    const home = folder()
    const server = await ideServer({ lockDir: join(home, '.pi/pi-x-ide/lock') })
    for (let i = 0; i < 3; i++) {
      removeBusy(i === 1 ? join(home, '.pi') : dirname(server.lockFile))
      await until('the file', () => existsSync(server.lockFile))
      expect([mode(server.lockFile), mode(dirname(server.lockFile))]).toEqual(['600', '700'])
    }
    expect(closedAfterwards(await connectBest(CWD, { lockDir: dirname(server.lockFile) }))?.state).toBe(
      'connected',
    )
  })

  test('goes with the server, after every refresh that was accepted', async () => {
    const lockDir = join(folder(), 'lock')
    // Often, since the order of what is called at once depends on the addon's threads.
    for (let round = 0; round < 40; round++) {
      const server = await ideServer({ lockDir, heartbeatMs: 1 })
      const refresh = (i: number) => (i % 2 ? server.focus() : server.setWorkspaceFolders([`/w/${i}`]))
      const refreshes = Array.from({ length: 30 }, (_, i) => refresh(i).catch((error) => error.code))
      const closing = server.close()
      expect((await Promise.all(refreshes)).filter(Boolean)).toEqual([])
      await closing
      expect(readdirSync(lockDir)).toEqual([])
    }
    await quiet()
    expect(readdirSync(lockDir)).toEqual([])
  })

  test('does not come back when its server is asked for it afterwards', async () => {
    const server = await ideServer()
    const lockDir = dirname(server.lockFile)
    await server.close()
    for (const late of [server.focus(), server.setWorkspaceFolders([])])
      expect((await rejection(late)).code).toBe('PIX_CLOSED')
    expect(readdirSync(lockDir)).toEqual([])
  })

  test('that is gone already does not disturb the end', async () => {
    const server = await ideServer()
    rmSync(server.lockFile)
    await server.close()
    await quiet()
    expect(existsSync(server.lockFile)).toBe(false)
  })

  test('leaves those of other servers alone', async () => {
    const lockDir = join(folder(), 'lock')
    const [one, other] = [await ideServer({ lockDir }), await ideServer({ lockDir })]
    await one.close()
    await quiet()
    expect(readdirSync(lockDir).map((name) => join(lockDir, name))).toEqual([other.lockFile])
  })
})

describe('a server that cannot start tells why', () => {
  const start = (options: Partial<IdeServerOptions>) =>
    rejection(IdeServer.start({ ide: 'vscode', name: 'VS Code', workspaceFolders: [], ...options }))

  /** Makes a bad place at the path and returns it. */
  const fileAt = (path: string) => {
    writeFileSync(path, '')
    return path
  }
  const linkAt = (path: string, to: string) => {
    symlinkSync(to, path)
    return path
  }
  const places: Record<string, (path: string) => string> = {
    'the folder is a file': fileAt,
    'a folder above is a file': (path) => join(fileAt(path), 'pi-x-ide/lock'),
    'the folder is a link': (path) => linkAt(path, folder()),
    'the folder is a link to nowhere': (path) => linkAt(path, '/nowhere/x'),
    'the file system does not want it': () => '/proc/pi-x-ide/lock',
    'the path is too long': (path) => join(path, 'x'.repeat(300)),
  }

  test.each(Object.keys(places))('%s', async (name) => {
    const lockDir = (places[name] as (path: string) => string)(join(folder(), 'place'))
    const error = await start({ lockDir })
    expect(error).toBeInstanceOf(Error)
    expect(error.code).toBe('PIX_LOCK_FOLDER')
    expect(error.message).toContain(lockDir)
    expect(error.cause).toBeInstanceOf(Error)
  })

  test.skipIf(!isRoot)('the folder belongs to another user', async () => {
    const lockDir = folder()
    chownSync(lockDir, 12_345, 12_345)
    const error = await start({ lockDir })
    expect([error.code, error.message]).toEqual(['PIX_LOCK_FOLDER', expect.stringContaining('another user')])
    expect(readdirSync(lockDir)).toEqual([])
  })

  test('a folder that may not be written', async () => {
    const lockDir = folder()
    chmodSync(lockDir, 0o500)
    const script = `
      const { code, message } = await addon.IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: [], lockDir: args[0] }).catch((error) => error)
      say({ code, message })`
    if (isRoot) {
      // The super-user may write anywhere, so somebody else does it.
      chownSync(lockDir, 65_534, 65_534)
      const { lines } = await asNobody(script, [lockDir])
      expect(lines).toEqual([{ code: 'PIX_LOCK_WRITE', message: expect.stringContaining(lockDir) }])
    } else expect((await start({ lockDir })).code).toBe('PIX_LOCK_WRITE')
  })

  /** Runs a script as another user, with a copy of the addon that this one can read. */
  async function asNobody(script: string, args: unknown[]) {
    const ended = await run(`process.setgid(65534); process.setuid(65534);${script}`, {
      args,
      env: { HOME: '/nonexistent' },
    })
    return {
      ...ended,
      lines: ended.stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line)),
    }
  }

  test('the lock file’s name is too long', async () => {
    const error = await start({ ide: 'x'.repeat(300), lockDir: folder() })
    expect(error.code).toBe('PIX_LOCK_WRITE')
  })

  test.each(['', 'a/b', '../x', 'a b', 'ä', 'a\u0000b', '.'])('the kind of editor is %j', async (ide) => {
    const lockDir = folder()
    expect((await start({ ide, lockDir })).code).toBe('PIX_INVALID_ARGUMENT')
    expect(readdirSync(lockDir)).toEqual([])
  })

  test('a lock folder that depends on where the process stands, and beats that make no sense', async () => {
    expect((await start({ lockDir: 'lock' })).code).toBe('PIX_INVALID_ARGUMENT')
    for (const heartbeatMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 3_600_001])
      expect((await start({ heartbeatMs, lockDir: folder() })).code).toBe('PIX_INVALID_ARGUMENT')
  })

  test('there is no home', async () => {
    const { stdout } = await run(
      `say((await addon.IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: [] }).catch((error) => error)).code)`,
      { env: { HOME: '/dev/null' } },
    )
    expect(stdout).toMatch(/PIX_(NO_HOME|LOCK_FOLDER)/)
  })

  test('values of a wrong type', () => {
    const good = { ide: 'x', name: 'x', workspaceFolders: [] }
    for (const bad of [
      undefined,
      null,
      {},
      5,
      { ...good, ide: 5 },
      { ...good, workspaceFolders: 'x' },
      { ...good, workspaceFolders: [5] },
      { ...good, heartbeatMs: '1' },
      { ...good, wslListener: 'yes' },
      { ...good, wslListener: 1 },
    ])
      expect(() => IdeServer.start(bad as unknown as IdeServerOptions), JSON.stringify(bad)).toThrow()
  })
})

describe('who is let in', () => {
  test('only with the token, and only once', async () => {
    const server = await ideServer()
    const token = tokenOf(server)
    const header = (value: string) => `x-pi-x-ide-authorization: ${value}`
    const host = `Host: 127.0.0.1:${server.port}`
    const cases: [number, string[]][] = [
      [101, [header(token)]],
      [101, [`X-PI-X-IDE-AUTHORIZATION:${token}`]],
      [401, []],
      [401, [header('')]],
      [401, [header(token.slice(0, -1))]],
      [401, [header(`${token}0`)]],
      [401, [header(token.toUpperCase())]],
      [401, [header('0'.repeat(64))]],
      [401, [header(`Bearer ${token}`)]],
      [401, [`Authorization: ${token}`]],
      [401, [header(token), header(token)]],
      [401, [header('x'), header(token)]],
      [401, [header(`${token}, ${token}`)]],
      [401, [`Sec-WebSocket-Protocol: ${token}`]],
    ]
    for (const [status, headers] of cases)
      expect(await upgradeStatus(server.port, [host, ...headers]), headers.join()).toBe(status)
    await until('no client', () => server.clients().length === 0)
  })

  test('nobody with an Origin', async () => {
    const server = await ideServer()
    for (const origin of [
      'https://evil.example',
      'null',
      '',
      'http://localhost',
      `http://127.0.0.1:${server.port}`,
      'vscode-webview://x',
    ])
      for (const token of [tokenOf(server), 'wrong']) {
        const headers = [
          `Host: 127.0.0.1:${server.port}`,
          `Origin: ${origin}`,
          `x-pi-x-ide-authorization: ${token}`,
        ]
        expect(await upgradeStatus(server.port, headers), origin).toBe(403)
      }
  })

  test('only under a name that cannot be rebound', async () => {
    const server = await ideServer({ allowedHosts: ['host.docker.internal', 'Build-Box'] })
    const { port } = server
    const status = (...hosts: string[]) =>
      upgradeStatus(port, [
        ...hosts.map((host) => `Host: ${host}`),
        `x-pi-x-ide-authorization: ${tokenOf(server)}`,
      ])
    for (const host of [
      `127.0.0.1:${port}`,
      '127.0.0.1',
      'localhost',
      `LOCALHOST:${port}`,
      `[::1]:${port}`,
      '10.0.2.2',
      '192.168.1.5:9',
      '[fe80::1]:9',
      `host.docker.internal:${port}`,
      'HOST.docker.internal',
      'build-box',
    ])
      expect(await status(host), host).toBe(101)
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      'xlocalhost',
      'docker.internal',
      'a.host.docker.internal',
      '',
      ':80',
      '127.0.0.1@evil.example',
      'localhost,evil.example',
    ])
      expect(await status(host), host).toBe(403)
    expect(await status(), 'no host').toBe(403)
    expect(await status('localhost', 'evil.example'), 'two hosts').toBe(403)
  })

  test('nobody who does not ask for a WebSocket', async () => {
    const server = await ideServer()
    const headers = [`Host: 127.0.0.1:${server.port}`, `x-pi-x-ide-authorization: ${tokenOf(server)}`]
    for (const method of ['POST', 'OPTIONS', 'HEAD', 'CONNECT']) {
      const status = await upgradeStatus(server.port, headers, method)
      expect(status, method).not.toBe(101)
    }
    for (const bytes of [
      'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n',
      '\u0016\u0003\u0001',
      'hello\r\n\r\n',
      `GET / HTTP/1.1\r\n${'x: y\r\n'.repeat(5000)}\r\n`,
      'G'.repeat(200_000),
    ]) {
      const socket = dial(server.port, '127.0.0.1')
      let answer = ''
      socket.on('data', (chunk) => {
        answer += chunk
      })
      socket.on('error', () => {})
      socket.end(bytes)
      await until('the end', () => socket.closed)
      expect(answer).not.toMatch(/101|access-control/i)
    }
    expect((await join_(server)).closed).toBe(false)
  })

  test('the answer to a stranger tells nothing', async () => {
    const server = await ideServer()
    const socket = dial(server.port, '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.write(
      'GET / HTTP/1.1\r\nHost: evil.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    )
    await until('the answer', () => answer.includes('\r\n\r\n'))
    expect(answer).not.toContain(tokenOf(server))
    expect(answer).not.toMatch(/access-control|VS Code/i)
    socket.destroy()
  })

  test('nobody from outside this machine', async () => {
    // Also with the listener for WSL, which is for native Windows only.
    const server = await ideServer({ wslListener: true })
    const listening = readFileSync('/proc/net/tcp', 'utf8') + readFileSync('/proc/net/tcp6', 'utf8')
    const port = server.port.toString(16).toUpperCase().padStart(4, '0')
    const addresses = [...listening.matchAll(new RegExp(`^ *\\d+: ([0-9A-F]+):${port} \\S+ 0A`, 'gm'))].map(
      (match) => match[1],
    )
    expect(addresses).toEqual(['0100007F'])
  })

  test('sockets that say nothing do not keep others out', async () => {
    const server = await ideServer()
    const silent = Array.from({ length: 50 }, () => dial(server.port, '127.0.0.1').on('error', () => {}))
    await until('all of them', () => silent.every(({ readyState }) => readyState === 'open'))
    expect((await join_(server)).messages[0]).toHaveProperty('result')
    for (const socket of silent) socket.destroy()
  })
})

describe('the conversation', () => {
  test('initialize is answered, then the present state follows', async () => {
    const server = await ideServer({ version: '1.2.3' })
    const empty = await join_(server)
    expect(empty.messages).toEqual([
      {
        jsonrpc: '2.0',
        id: 1,
        result: {
          protocolVersion: 1,
          server: { name: 'VS Code', version: '1.2.3', ide: 'vscode' },
          capabilities: { promptSubmitted: true },
        },
      },
      {
        jsonrpc: '2.0',
        method: 'selection_cleared',
        params: { source: 'vscode', reason: 'no-active-editor' },
      },
    ])
    server.publish(snapshot(file('a.ts'), 1, 2, 'x'))
    await until('the selection', () => empty.of('selection_changed').length > 0)
    const { receivedAt, ...rest } = empty.of('selection_changed')[0] as SnapshotInput
    expect(rest).toEqual(snapshot(file('a.ts'), 1, 2, 'x'))
    const later = await join_(server)
    expect(later.of('selection_changed')).toHaveLength(1)
    server.clear()
    await until('clearing', () => later.of('selection_cleared').length > 0)
    expect((await join_(server)).messages[1]?.method).toBe('selection_cleared')
    expect(server.clients().map(({ name, version, cwd }) => ({ name, version, cwd }))).toEqual(
      Array(3).fill({ name: 'fake', version: '0', cwd: CWD }),
    )
  })

  test('the id is repeated as it is, and a repeated initialize is answered again', async () => {
    const server = await ideServer()
    const client = await join_(server)
    for (const id of ['text', 0, -7, 1.5, 'ü']) client.initialize(CWD, id)
    await until('all answers', () => client.messages.filter(({ result }) => result).length === 6)
    expect(client.messages.filter(({ result }) => result).map(({ id }) => id)).toEqual([
      1,
      'text',
      0,
      -7,
      1.5,
      'ü',
    ])
    await until('the last state', () => client.messages.at(-1)?.method === 'selection_cleared')
    expect(server.clients()).toHaveLength(1)
  })

  test('who has not said initialize is told nothing', async () => {
    const server = await ideServer()
    const silent = await Client.open(server.port, tokenOf(server))
    const member = await join_(server)
    server.publish(snapshot(file('a.ts'), 1))
    expect(server.mention(snapshot(file('a.ts'), 1))?.id).toBe(server.clients()[0]?.id)
    await until(
      'both at the member',
      () => member.of('at_mentioned').length === 1 && member.of('selection_changed').length === 1,
    )
    await quiet()
    expect(silent.messages).toEqual([])
    expect(server.clients()).toHaveLength(1)
    silent.initialize()
    await until('its answer and the state', () => silent.messages.length === 2)
    expect(silent.messages[1]?.method).toBe('selection_changed')
  })

  test('a request that nobody knows gets an error, a notification gets nothing', async () => {
    const server = await ideServer()
    const client = await join_(server)
    const before = client.messages.length
    client.link.send(request('a', 'tools/list'))
    client.link.send(request(2, 'shutdown', {}))
    client.link.send(notification('initialized', {}))
    await until('both errors', () => client.messages.length >= before + 2)
    await quiet()
    expect(client.messages.slice(before)).toEqual([
      { jsonrpc: '2.0', id: 'a', error: { code: -32_601, message: expect.any(String) } },
      { jsonrpc: '2.0', id: 2, error: { code: -32_601, message: expect.any(String) } },
    ])
  })

  test('what makes no sense is ignored', async () => {
    const server = await ideServer()
    const client = await join_(server)
    const before = client.messages.length
    const garbage = [
      '',
      'x',
      '7',
      'null',
      '[]',
      `[${request(1, 'initialize')}]`,
      '{',
      '['.repeat(100_000),
      '{"jsonrpc":"1.0","id":1,"method":"initialize"}',
      '{"id":1,"method":"initialize"}',
      request(null, 'initialize'),
      request({}, 'initialize'),
      request([], 'x'),
      request(true, 'x'),
      '{"jsonrpc":"2.0","id":1}',
      '{"jsonrpc":"2.0","id":1,"method":7}',
      '{"jsonrpc":"2.0","id":1,"result":{}}',
    ]
    for (const text of garbage) client.link.send(text)
    client.link.send(Buffer.from([0, 255]), { binary: true })
    client.link.ping('still there?')
    await quiet()
    expect(client.messages).toHaveLength(before)
    server.publish(snapshot(file('a.ts'), 1))
    await until('the selection', () => client.of('selection_changed').length === 1)
    expect(client.closed).toBe(false)
  })

  test.each<[string, Buffer]>([
    ['a text that is no UTF-8', frame(TEXT, Buffer.from([0xff]), { mask: true })],
    ['a frame without a mask', frame(TEXT, request(1, 'initialize'))],
    ['a reserved bit', frame(TEXT, 'x', { mask: true, rsv: 4 })],
    ['a reserved opcode', frame(3, 'x', { mask: true })],
    ['a message that is too long', frame(TEXT, '', { mask: true, length: 17n * 1024n * 1024n })],
  ])('%s costs the client its place, and nobody else', async (_, bytes) => {
    const server = await ideServer()
    const good = await join_(server)
    const bad = await join_(server)
    const raw = (bad.link as unknown as { _socket: { write(bytes: Buffer): void } })._socket
    raw.write(bytes)
    await until('the end of the bad one', () => bad.closed && server.clients().length === 1)
    server.publish(snapshot(file('a.ts'), 1))
    await until('the selection', () => good.of('selection_changed').length === 1)
  })

  test('parameters that cannot be read count as absent', async () => {
    const server = await ideServer()
    const client = await Client.open(server.port, tokenOf(server))
    client.link.send(request(1, 'initialize', { protocolVersion: 'x', client: 7, cwd: [] }))
    await until('the answer', () => client.messages.length === 2)
    expect(server.clients()).toEqual([{ id: expect.any(Number), name: '', version: '' }])
  })
})

describe('several clients', () => {
  test('all get the selections, each mention and fix goes to exactly one', async () => {
    const server = await ideServer()
    const clients = [await join_(server, '/w'), await join_(server, CWD), await join_(server, '/elsewhere')]
    const [outer, near, other] = server.clients()
    server.publish(snapshot(file('a.ts'), 1))
    for (const client of clients)
      await until('the selection', () => files(client.of('selection_changed')).includes(file('a.ts')))

    const mention = (path: string) =>
      server.mention({ ...snapshot(path, 1), workspaceFolder: undefined } as SnapshotInput)
    expect(mention(file('near.ts'))).toEqual({ ...near, chosenBy: 'workspace' })
    expect(mention('/w/lib/outer.ts')).toEqual({ ...outer, chosenBy: 'workspace' })
    expect(mention('/elsewhere/other.ts')).toEqual({ ...other, chosenBy: 'workspace' })
    expect(mention('/tmp/last-used.ts')).toEqual({ ...other, chosenBy: 'last-used' })
    expect(mention(file('near-again.ts'))).toEqual({ ...near, chosenBy: 'workspace' })
    expect(mention(`${CWD}2/no-prefix.ts`)).toEqual({ ...outer, chosenBy: 'workspace' })
    const request: DiagnosticFix = {
      filePath: '/tmp/fix.ts',
      triggerRange: { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } },
      diagnostics: [
        {
          severity: 'warning',
          message: 'm',
          range: { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } },
          selectedText: 't',
          contextLines: [],
        },
      ],
    }
    expect(server.requestFix(request)).toEqual({ ...outer, chosenBy: 'last-used' })
    server.clear()
    for (const client of clients)
      await until('clearing', () => client.messages.at(-1)?.method === 'selection_cleared')
    expect(clients.map((client) => files(client.of('at_mentioned')))).toEqual([
      ['/w/lib/outer.ts', `${CWD}2/no-prefix.ts`],
      [file('near.ts'), file('near-again.ts')],
      ['/elsewhere/other.ts', '/tmp/last-used.ts'],
    ])
    expect(clients.map((client) => client.of('diagnostic_fix_requested').length)).toEqual([1, 0, 0])
    expect(clients[0]?.of('diagnostic_fix_requested')[0]).toMatchObject({
      action: 'fix',
      source: 'vscode',
      filePath: '/tmp/fix.ts',
    })
    expect(clients[0]?.of('at_mentioned')[0]).toHaveProperty('rangeText')
  })

  test('without a client a mention goes nowhere and says so', async () => {
    const server = await ideServer()
    expect(server.mention(snapshot(file('a.ts'), 1))).toBeNull()
    expect(server.clients()).toEqual([])
    const client = await join_(server)
    client.link.terminate()
    await until('it to be gone', () => server.clients().length === 0)
    expect(server.mention(snapshot(file('a.ts'), 1))).toBeNull()
  })

  test('a selection and a mention keep their order', async () => {
    const server = await ideServer()
    const client = await join_(server)
    const before = client.messages.length
    for (let i = 1; i <= 100; i++) {
      server.publish(snapshot(file(`${i}.ts`), 1))
      server.mention(snapshot(file('m.ts'), i))
    }
    server.publish(snapshot(file('last.ts'), 1))
    await until('the last one', () => files(client.of('selection_changed')).at(-1) === file('last.ts'))
    const after = client.messages.slice(before)
    const mentions = after
      .filter(({ method }) => method === 'at_mentioned')
      .map(({ params }) => params?.ranges[0]?.selection.start.line)
    expect(mentions).toEqual(Array.from({ length: 100 }, (_, i) => i))
    expect(after.at(-1)?.method).toBe('selection_changed')
    const shown = files(client.of('selection_changed')).map((name) =>
      Number(/(\d+)\.ts/.exec(name)?.[1] ?? 101),
    )
    expect(shown).toEqual([...shown].sort((a, b) => a - b))
  })

  test('one that is killed while the user selects disturbs nobody', async () => {
    const server = await ideServer()
    const [victim, other] = [await join_(server), await join_(server)]
    for (let i = 0; i < 20; i++) {
      server.publish(snapshot(file(`${i}.ts`), 1))
      if (i === 10) victim.link.terminate()
      await sleep(1)
    }
    await until('the last one', () => files(other.of('selection_changed')).at(-1) === file('19.ts'))
    await until('one client', () => server.clients().length === 1)
  })

  test('more than there are places for are turned away, and places are given back', async () => {
    const server = await ideServer()
    const token = tokenOf(server)
    const settled = await Promise.allSettled(
      Array.from({ length: 80 }, () => Client.open(server.port, token)),
    )
    const inside = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    expect(inside.length).toBeGreaterThanOrEqual(32)
    for (const client of inside) client.link.terminate()
    await until('a place', () => Client.join(server.port, token).then(Boolean, () => false))
  })

  test('one that never reads neither fills memory nor holds up the others', async () => {
    // The server in a process of its own, so that nothing but its memory is measured.
    const lockDir = join(folder(), 'lock')
    const host = new Process(
      `const server = await addon.IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: ['/w'], lockDir: args[0] })
       say(server.port)
       await until(() => server.clients().length === 2)
       const before = process.memoryUsage().rss
       const text = 'x'.repeat(200000)
       const selection = { start: { line: 0, character: 0 }, end: { line: 1, character: 0 } }
       for (let i = 1; i <= 1500; i++) {
         server.publish({ filePath: '/w/' + i, ranges: [{ text, selection }] })
         await new Promise(setImmediate)
         if (i % 50 === 0) await sleep(5)
       }
       gc()
       say(process.memoryUsage().rss - before)
       await until(() => server.clients().length === 0)
       await server.close()
       process.exit(0)`,
      { args: [lockDir], flags: ['--expose-gc'] },
    )
    const port = await host.line<number>(0)
    const token = JSON.parse(readFileSync(join(lockDir, readdirSync(lockDir)[0] as string), 'utf8')).authToken
    const stuck = await Client.join(port, token)
    stuck.link.pause()
    const other = await Client.join(port, token)
    await until('the last selection', () => files(other.of('selection_changed')).at(-1) === '/w/1500')
    expect(await host.line<number>(1)).toBeLessThan(100e6)
    for (const client of [stuck, other]) client.link.terminate()
    expect((await host.ended).code).toBe(0)
  })
})

describe('published values', () => {
  test.each<[string, unknown]>([
    ['an empty path', { filePath: '', ranges: [] }],
    ['a negative line', snapshotAt(-1)],
    ['a fraction', snapshotAt(1.5)],
    ['NaN', snapshotAt(Number.NaN)],
    ['infinity', snapshotAt(Number.POSITIVE_INFINITY)],
    ['2^32', snapshotAt(2 ** 32)],
  ])('%s is refused at once', async (_, bad) => {
    const server = await ideServer()
    for (const call of [
      () => server.publish(bad as SnapshotInput),
      () => server.mention(bad as SnapshotInput),
    ])
      expect(thrown(call).code).toBe('PIX_INVALID_ARGUMENT')
  })

  test('a wrong type is refused at once', async () => {
    const server = await ideServer()
    for (const bad of [
      undefined,
      null,
      5,
      {},
      { filePath: 5, ranges: [] },
      { filePath: '/a' },
      { filePath: '/a', ranges: [{}] },
      { filePath: '/a', ranges: [{ text: 5, selection: {} }] },
    ]) {
      expect(() => server.publish(bad as SnapshotInput), JSON.stringify(bad)).toThrow()
      expect(() => server.requestFix(bad as unknown as DiagnosticFix), JSON.stringify(bad)).toThrow()
    }
    expect(
      thrown(() =>
        server.requestFix({
          filePath: '/a',
          triggerRange: snapshotAt(0).ranges[0]?.selection as never,
          diagnostics: [],
        }),
      ).code,
    ).toBe('PIX_INVALID_ARGUMENT')
  })

  test('odd text arrives as whole characters', async () => {
    const server = await ideServer()
    const client = await join_(server)
    const text = 'π😀e\u0301\u0000\u2028"\\\ud83d'
    server.publish(snapshot(file('ü\n"\\.ts'), 1, 1, text))
    await until('the selection', () => client.of('selection_changed').length === 1)
    const [got] = client.of('selection_changed')
    expect(got?.filePath).toBe(file('ü\n"\\.ts'))
    expect(got?.ranges[0]?.text).toBe(text.replace(/.$/, '\ufffd'))
  })

  test('the kind of editor is filled in', async () => {
    const server = await ideServer({ ide: 'nvim' })
    const client = await join_(server)
    server.publish({ filePath: '/a', ranges: [] })
    await until('the selection', () => client.of('selection_changed').length === 1)
    expect(client.of('selection_changed')[0]).toMatchObject({ source: 'nvim', filePath: '/a', ranges: [] })
  })
})

function snapshotAt(line: number): SnapshotInput {
  const at = { line, character: 0 }
  return { filePath: '/a', ranges: [{ text: '', selection: { start: at, end: at } }] }
}

describe('the end', () => {
  /** Fails when something takes longer than a user would wait for an editor window to close. */
  const soon = <T>(promise: Promise<T>) =>
    Promise.race([promise, sleep(3000).then(() => Promise.reject(new Error('hangs')))])

  test('closes all links with a farewell, and the port', async () => {
    const server = await ideServer()
    const clients = [await join_(server), await join_(server)]
    const connection = closedAfterwards(await connectBest(CWD, { lockDir: dirname(server.lockFile) }))
    const heard = connection && new Heard(connection)
    await Promise.all([server.close(), server.close(), server.close()])
    await server.close()
    for (const client of clients) await until('the end', () => client.closed)
    await heard?.first('closed')
    expect(existsSync(server.lockFile)).toBe(false)
    expect(server.clients()).toEqual([])
    expect(server.mention(snapshot(file('a.ts'), 1))).toBeNull()
    server.publish(snapshot(file('a.ts'), 1))
    server.clear()
    await expect(Client.open(server.port, 'x')).rejects.toThrow(/ECONNREFUSED/)
  })

  test('a client that ignores the farewell does not hold it up', async () => {
    const server = await ideServer()
    const client = await join_(server)
    client.link.pause()
    await soon(server.close())
    expect(existsSync(server.lockFile)).toBe(false)
  })

  test('nor does one that takes nothing any more', async () => {
    const server = await ideServer()
    const client = await join_(server)
    client.link.pause()
    for (let i = 0; i < 20; i++) {
      server.publish(snapshot(file(`${i}.ts`), 1, 1, 'x'.repeat(4_000_000)))
      await sleep(5)
    }
    await soon(server.close())
  })

  test('nor does a socket that has not said anything', async () => {
    const server = await ideServer()
    const socket = dial(server.port, '127.0.0.1').on('error', () => {})
    await until('the socket', () => socket.readyState === 'open')
    await quiet()
    await soon(server.close())
    socket.destroy()
  })

  test('nor does one that has said half of it', async () => {
    const server = await ideServer()
    const socket = dial(server.port, '127.0.0.1').on('error', () => {})
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n')
    await quiet()
    await soon(server.close())
    socket.destroy()
  })

  test('a server can be started and closed again and again', async () => {
    const lockDir = join(folder(), 'lock')
    for (let i = 0; i < 20; i++) await (await ideServer({ lockDir })).close()
    expect(readdirSync(lockDir)).toEqual([])
  })

  const START = `const server = await addon.IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: ['${CWD}'], lockDir: args[0] }); say(server.lockFile);`
  const ends: Record<string, [script: string, code: number]> = {
    'its script has ended': ['', 0],
    'process.exit': ['process.exit(3)', 3],
    'an uncaught exception': ['setImmediate(() => { throw new Error("x") })', 1],
    'process.exit, which takes its time': [
      'process.on("exit", () => { const end = Date.now() + 300; while (Date.now() < end); }); process.exit(6)',
      6,
    ],
    'process.exit while it closes': ['server.close(); process.exit(4)', 4],
    'process.exit with work under way': ['for (let i = 0; i < 50; i++) server.focus(); process.exit(5)', 5],
  }

  test.each(Object.keys(ends))('a process that ends by %s takes its lock file along', async (name) => {
    const lockDir = join(folder(), 'lock')
    const [script, code] = ends[name] as (typeof ends)[string]
    const ended = await run(START + script, { args: [lockDir] })
    expect([ended.code, ended.signal]).toEqual([code, null])
    expect(readdirSync(lockDir).filter((entry) => entry.endsWith('.lock'))).toEqual([])
  })

  test('one that is killed leaves it, and the next scan cleans up', async () => {
    const lockDir = join(folder(), 'lock')
    const process = new Process(`${START}setInterval(() => {}, 1000)`, { args: [lockDir] })
    const lockFile = await process.line<string>()
    expect((await discover(CWD, { lockDir }))[0]).toMatchObject({
      id: lockFile,
      verdict: 'usable',
      pid: process.pid,
    })
    process.child.kill('SIGKILL')
    await process.ended
    expect(existsSync(lockFile)).toBe(true)
    expect((await discover(CWD, { lockDir, all: true }))[0]).toMatchObject({
      id: lockFile,
      verdict: 'removed',
      checks: { parsed: 'valid', pid: 'dead', probes: [{ host: '127.0.0.1', outcome: 'refused' }] },
    })
    expect(existsSync(lockFile)).toBe(false)
  })
})

test('an editor in another process is found, followed and let go', async () => {
  const lockDir = join(folder(), 'lock')
  const editor = new Process(
    `const server = await addon.IdeServer.start({ ide: 'nvim', name: 'Neovim', workspaceFolders: ['${CWD}'], lockDir: args[0] })
     say(1)
     await until(() => server.clients().length === 1)
     const selection = { start: { line: 4, character: 0 }, end: { line: 6, character: 0 } }
     server.publish({ filePath: '${CWD}/x.lua', ranges: [{ text: 'a', selection }] })
     server.mention({ filePath: '${CWD}/x.lua', ranges: [{ text: 'a', selection }] })
     await until(() => server.clients().length === 0)
     await server.close()`,
    { args: [lockDir] },
  )
  await editor.line()
  const connection = closedAfterwards(await connectBest(CWD, { lockDir }))
  if (!connection) throw new Error('null')
  await until('the mention', () => connection.mentions()[0] === '@x.lua#L5-L6')
  expect(connection.candidate).toMatchObject({ ide: 'nvim', pid: editor.pid })
  expectNoToken([connection.candidate, connection.server])
  await connection.close()
  expect((await editor.ended).code).toBe(0)
  expect(readdirSync(lockDir)).toEqual([])
})
