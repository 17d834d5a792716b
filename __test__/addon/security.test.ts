import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { connect as dial } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { connect, connectBest, diagnose, discover, IdeServer, loadConfig } from '../../index.js'
import { follow, ideServer } from './bridge.ts'
import { FakeEditor } from './fake-editor.ts'
import { candidateOf, expectNoToken, writeLock } from './lock-files.ts'
import { Process } from './processes.ts'
import { Listener } from './sockets.ts'
import {
  CWD,
  configure,
  environment,
  folder,
  isRoot,
  ownHome,
  quiet,
  rejection,
  until,
  writeFileOf,
} from './support.ts'

const tokenOf = (server: IdeServer): string => JSON.parse(readFileSync(server.lockFile, 'utf8')).authToken

const UPGRADE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]

/** Everything that a server answers to these lines of HTTP, up to its end or to the end of a granted upgrade. */
async function answerTo(port: number, head: string[]): Promise<string> {
  const socket = dial(port, '127.0.0.1')
  let answer = ''
  let ended = false
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1')
  })
  socket.on('close', () => {
    ended = true
  })
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  await until('an answer and the end', () => ended || answer.startsWith('HTTP/1.1 101'))
  socket.destroy()
  return answer
}

describe('who knocks at the server', () => {
  const evil = 'https://evil.example'
  const origins = [evil, 'null', 'http://localhost', 'http://localhost:48123', 'vscode-webview://x', '']

  test.each(origins)('with the origin %j: refused before the upgrade, whatever its token', async (origin) => {
    const server = await ideServer()
    const host = `Host: 127.0.0.1:${server.port}`
    for (const token of [[], ['wrong'], [tokenOf(server)], [tokenOf(server), 'wrong']])
      for (const header of ['Origin', 'oRIGIN']) {
        const tokens = token.map((value) => `x-pi-x-ide-authorization: ${value}`)
        const head = ['GET / HTTP/1.1', host, ...UPGRADE, `${header}: ${origin}`, ...tokens]
        const answer = await answerTo(server.port, head)
        expect(answer, `${header} ${token}`).toMatch(/^HTTP\/1\.1 40[13] /)
        expect(answer).not.toMatch(/access-control|sec-websocket-accept|VS Code/i)
        expect(answer).not.toContain(tokenOf(server))
      }
    expect(server.clients()).toEqual([])
  })

  test('under its own name by a rebound one: refused, a plain GET as well', async () => {
    const server = await ideServer()
    const token = `x-pi-x-ide-authorization: ${tokenOf(server)}`
    for (const host of [
      `evil.example:${server.port}`,
      'evil.example',
      `127.0.0.1.evil.example:${server.port}`,
    ]) {
      const same = `Origin: http://${host}`
      for (const more of [[], [token], [same, token]]) {
        const asked = ['GET / HTTP/1.1', `Host: ${host}`, ...UPGRADE, ...more]
        expect(await answerTo(server.port, asked), host).toMatch(/^HTTP\/1\.1 403 /)
      }
      for (const method of ['GET', 'POST', 'OPTIONS', 'HEAD']) {
        const answer = await answerTo(server.port, [`${method} / HTTP/1.1`, `Host: ${host}`, same, token])
        expect(answer, method).not.toMatch(/^HTTP\/1\.1 (1|2|3)/)
        expect(answer, method).not.toMatch(/access-control|VS Code/i)
        expect(answer).not.toContain(tokenOf(server))
      }
    }
    expect(server.clients()).toEqual([])
  })

  test('without the token, or with it in any other place: refused', async () => {
    const server = await ideServer()
    const token = tokenOf(server)
    const host = `Host: 127.0.0.1:${server.port}`
    for (const [line, ...headers] of [
      ['GET / HTTP/1.1'],
      [`GET /?token=${token} HTTP/1.1`],
      [`GET /?x-pi-x-ide-authorization=${token} HTTP/1.1`],
      ['GET / HTTP/1.1', `Cookie: x-pi-x-ide-authorization=${token}`],
      ['GET / HTTP/1.1', `Authorization: Bearer ${token}`],
      ['GET / HTTP/1.1', `Sec-WebSocket-Protocol: ${token}`],
      ['GET / HTTP/1.1', `X-Forwarded-For: 127.0.0.1`],
    ] as [string, ...string[]][])
      expect(await answerTo(server.port, [line, host, ...UPGRADE, ...headers])).toMatch(/^HTTP\/1\.1 401 /)
    const right = [`x-pi-x-ide-authorization: ${token}`]
    expect(await answerTo(server.port, ['GET / HTTP/1.1', host, ...UPGRADE, ...right])).toMatch(/ 101 /)
  })

  test.skipIf(!isRoot)('as another user of this machine: neither lock file nor link', async () => {
    const lockDir = join(folder(), 'lock')
    chmodSync(dirname(lockDir), 0o755)
    const server = await ideServer({ lockDir })
    const stranger = new Process(
      `process.setgid(65534); process.setuid(65534)
       const read = (path) => { try { return require('node:fs').readFileSync(path, 'utf8') } catch ({ code }) { return code } }
       say(read(args[1]))
       const socket = require('node:net').connect(args[0], '127.0.0.1')
       socket.write(args[2])
       socket.once('data', (answer) => { say(answer.toString().split('\\r\\n')[0]); process.exit(0) })`,
      {
        lazy: true,
        args: [
          server.port,
          server.lockFile,
          `${['GET / HTTP/1.1', 'Host: localhost', ...UPGRADE].join('\r\n')}\r\n\r\n`,
        ],
      },
    )
    await stranger.ended
    expect(stranger.said).toEqual(['EACCES', expect.stringMatching(/^HTTP\/1\.1 401 /)])
    expect(server.clients()).toEqual([])
  })

  test('by a name that the user allowed: let in; by another one the refusal is clear to pi', async () => {
    // A spelling of 127.0.0.1 that is no address literal, as the name of a container's host is none.
    environment({ PI_X_IDE_HOST_OVERRIDE: '127.1' })
    const [closed, open] = [await ideServer(), await ideServer({ allowedHosts: ['127.1'] })]
    const refused = await rejection(connect(await candidateOf(closed.lockFile)))
    expect([refused.code, refused.message]).toEqual(['PIX_REFUSED', expect.stringMatching(/403.*host/)])
    const connection = await follow(dirname(closed.lockFile))
    await until('a refusal', () => connection.log().some(({ message }) => /403.*this host/.test(message)))
    const allowed = await follow(dirname(open.lockFile))
    await until('connected', () => allowed.state === 'connected')
    expect([open.clients().length, closed.clients().length]).toEqual([1, 0])
    expectNoToken([refused, connection.log()], tokenOf(closed))
  })
})

describe('a place that others can write to', () => {
  /** Spoils a folder with one good lock in it; the reason that is given. */
  const folders: Record<string, [spoil: (lockDir: string) => void, reason: RegExp, rootOnly?: boolean]> = {
    'for everybody': [(lockDir) => chmodSync(lockDir, 0o777), /other users.*777/],
    'for everybody, sticky as /tmp': [(lockDir) => spawnSync('chmod', ['1777', lockDir]), /other users/],
    'for the group': [(lockDir) => chmodSync(lockDir, 0o770), /other users.*770/],
    'that is a link': [
      (lockDir) => {
        renameSync(lockDir, `${lockDir}.real`)
        symlinkSync(`${lockDir}.real`, lockDir)
      },
      /regular folder/,
    ],
    'of another user': [(lockDir) => chownSync(lockDir, 12_345, 12_345), /another user/, true],
  }

  test.each(Object.keys(folders))('is left alone, and told of once: %s', async (name) => {
    const [spoil, reason, rootOnly] = folders[name] as (typeof folders)[string]
    if (rootOnly && !isRoot) return
    const lockDir = join(folder(), 'lock')
    mkdirSync(lockDir, { mode: 0o700 })
    const planted = await Listener.open()
    const file = writeLock(lockDir, { port: planted.port })
    const usable = await candidateOf(file)
    spoil(lockDir)
    expect(await discover(CWD, { lockDir })).toEqual([])
    expect(await discover(CWD, { lockDir, all: true })).toMatchObject([
      { id: lockDir, verdict: 'untrusted', reason: expect.stringMatching(reason) },
    ])
    expect((await rejection(connect(usable))).code).toBe('PIX_LOCK_GONE')
    expect((await diagnose(CWD, { lockDir })).folders).toMatchObject([
      { path: lockDir, problem: expect.stringMatching(reason) },
    ])
    const connection = await follow(lockDir)
    await until('searching', () => connection.state === 'searching')
    for (let i = 0; i < 3; i++) {
      writeLock(lockDir, { port: planted.port })
      await quiet()
    }
    const told = connection.log().filter(({ message }) => message.startsWith(`${lockDir}: `))
    expect(told).toEqual([{ time: expect.any(Number), message: expect.stringMatching(reason) }])
    const refused = await rejection(
      IdeServer.start({ ide: 'vscode', name: 'VS Code', workspaceFolders: [CWD], lockDir }),
    )
    expect(refused.code).toBe('PIX_LOCK_FOLDER')
    expect(readdirSync(lockDir)).toHaveLength(1)
    expect(planted.accepted).toEqual([])
  })

  const files: Record<string, [spoil: (file: string) => void, reason: RegExp, rootOnly?: boolean]> = {
    'writable for everybody': [(file) => chmodSync(file, 0o606), /other users/],
    'writable for the group': [(file) => chmodSync(file, 0o660), /other users/],
    'a link': [
      (file) => {
        renameSync(file, `${file}.real`)
        symlinkSync(`${file}.real`, file)
      },
      /regular file/,
    ],
    'a pipe': [
      (file) => {
        rmSync(file)
        spawnSync('mkfifo', [file])
      },
      /regular file/,
    ],
    'of another user': [(file) => chownSync(file, 12_345, 12_345), /another user/, true],
    'a hard link to a file of another user': [
      (file) => {
        const theirs = `${file}.theirs`
        renameSync(file, theirs)
        chownSync(theirs, 12_345, 12_345)
        linkSync(theirs, file)
      },
      /another user/,
      true,
    ],
  }

  test.each(Object.keys(files))('a lock file is not read, before or after it was found: %s', async (name) => {
    const [spoil, reason, rootOnly] = files[name] as (typeof files)[string]
    if (rootOnly && !isRoot) return
    const editor = await FakeEditor.start()
    const usable = await editor.candidate
    const connection = await follow(editor.lockDir, '/elsewhere')
    await until('searching', () => connection.state === 'searching')
    spoil(editor.lockFile)
    expect((await rejection(connect(usable))).code).toBe('PIX_LOCK_GONE')
    expect((await rejection(connection.switchTo(usable))).code).toBe('PIX_LOCK_GONE')
    expect(await discover(CWD, { lockDir: editor.lockDir })).toEqual([])
    const found = await candidateOf(editor.lockFile)
    expect(found).toMatchObject({ verdict: 'untrusted', reason: expect.stringMatching(reason) })
    expect(found.checks).toMatchObject({ parsed: 'unreadable', probes: [] })
    expect(await connectBest(CWD, { lockDir: editor.lockDir })).toBeNull()
    expect(existsSync(editor.lockFile)).toBe(true)
    expect(editor.links).toHaveLength(0)
  })

  test('a configuration that others wrote names no host for the token', async () => {
    const home = ownHome()
    const stranger = await Listener.open(() => {}, '127.0.0.2')
    const config = configure(home, {
      env: { PI_X_IDE_HOST_OVERRIDE: '127.0.0.2' },
      pathMap: { from: '/a', to: CWD },
    })
    const lockFile = writeLock(folder(), { port: stranger.port, workspaceFolders: ['/a', CWD] })
    const spoils = [() => chmodSync(config, 0o666)]
    if (isRoot) spoils.push(() => chownSync(config, 12_345, 12_345))
    for (const spoil of spoils) {
      chmodSync(config, 0o600)
      spoil()
      expect((await loadConfig(CWD)).problems).toEqual([expect.stringContaining(config)])
      expect((await rejection(connect(await candidateOf(lockFile)))).code).toBe('PIX_UNREACHABLE')
    }
    expect(stranger.accepted).toHaveLength(0)
  })
})

describe('what a server writes', () => {
  test('follows no link that was planted for it', async () => {
    const [lockDir, victims] = [folder(), folder()]
    const victim = (name: string) => writeFileOf(join(victims, name), 'precious')
    const server = await ideServer({ lockDir })
    const name = server.lockFile.split('/').at(-1) as string
    // Names that others take for their temporary files, and the file itself.
    const planted = [
      `${name}.tmp`,
      `.${name}.tmp`,
      `${name}~`,
      '.lock-.tmp',
      '.tmp',
      'lock.tmp',
      '.lock-tmp.tmp',
    ]
    for (const plant of planted) symlinkSync(victim(plant), join(lockDir, plant))
    for (let i = 0; i < 20; i++) {
      rmSync(server.lockFile)
      symlinkSync(victim('lock'), server.lockFile)
      await server.setWorkspaceFolders([`/w/${i}`])
      expect(statSync(server.lockFile).ino).not.toBe(statSync(join(victims, 'lock')).ino)
    }
    expect(JSON.parse(readFileSync(server.lockFile, 'utf8')).workspaceFolders).toEqual(['/w/19'])
    expect(readdirSync(lockDir).sort()).toEqual([...planted, name].sort())
    await server.close()
    for (const name of readdirSync(victims))
      expect(readFileSync(join(victims, name), 'utf8')).toBe('precious')
    expect(readdirSync(lockDir).sort()).toEqual(planted.sort())
  })

  test('does not go through a link in place of its own folder, nor changes where that leads', async () => {
    const [home, elsewhere] = [ownHome(), folder()]
    chmodSync(elsewhere, 0o755)
    mkdirSync(join(home, '.pi/pi-x-ide'), { recursive: true, mode: 0o700 })
    symlinkSync(elsewhere, join(home, '.pi/pi-x-ide/lock'))
    const error = await rejection(IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: [] }))
    expect(error.code).toBe('PIX_LOCK_FOLDER')
    expect([readdirSync(elsewhere), statSync(elsewhere).mode & 0o777]).toEqual([[], 0o755])
  })
})
