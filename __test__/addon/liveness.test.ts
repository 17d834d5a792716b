import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Candidate, DiscoverOptions } from '../../index.d.ts'
import { connect, connectBest, diagnose, discover, IdeServer } from '../../index.js'
import { closedAfterwards, follow, Heard, ideServer } from './bridge.ts'
import { FakeEditor, snapshot } from './fake-editor.ts'
import { closedPort, deadPid, HOUR_MS, lock, TOKEN, writeLock } from './lock-files.ts'
import { Process } from './processes.ts'
import { Listener } from './sockets.ts'
import {
  ADDON,
  age,
  CWD,
  environment,
  folder,
  ownHome,
  rejection,
  sleep,
  until,
  writeFileOf,
} from './support.ts'

const lockDirOf = (home: string) => join(home, '.pi/pi-x-ide/lock')

/** The lock folder of the user's own home, which is there. */
function homeLockDir(): string {
  const lockDir = lockDirOf(ownHome())
  mkdirSync(lockDir, { recursive: true, mode: 0o700 })
  return lockDir
}

async function only(lockDir: string, options: DiscoverOptions = {}): Promise<Candidate> {
  const all = await discover(CWD, { lockDir, all: true, ...options })
  expect(all).toHaveLength(1)
  return all[0] as Candidate
}

describe('who lives', () => {
  test('a dead pid does not hide an editor whose port takes the token', async () => {
    const pid = deadPid()
    const editor = await FakeEditor.start({ lock: { pid } })
    expect(await only(editor.lockDir)).toMatchObject({
      verdict: 'usable',
      pid,
      checks: { parsed: 'valid', pid: 'dead', probes: [{ host: '127.0.0.1', outcome: 'reachable' }] },
    })
    const connection = closedAfterwards(await connectBest(CWD, { lockDir: editor.lockDir }))
    expect(connection?.state).toBe('connected')
    const followed = await follow(editor.lockDir)
    await until('connected', () => followed.state === 'connected')
    expect(existsSync(editor.lockFile)).toBe(true)
    expect(editor.headers.map((head) => head['x-pi-x-ide-authorization'])).toEqual([TOKEN, TOKEN])
  })

  test('a Windows pid is never looked up in WSL, and a port that refuses deletes nothing', async () => {
    environment({ WSL_DISTRO_NAME: 'Ubuntu', PI_X_IDE_HOST_OVERRIDE: undefined })
    const lockDir = homeLockDir()
    const port = await closedPort()
    const file = writeLock(lockDir, {
      ide: 'jetbrains',
      port,
      workspaceFolders: ['C:\\work\\app'],
      pid: deadPid(),
      runningInWindows: true,
    })
    const found = await discover('/mnt/c/work/app', { all: true })
    expect(found).toMatchObject([
      { id: file, verdict: 'stale', checks: { parsed: 'valid', pid: 'not-checked' } },
    ])
    expect(found[0]?.checks.probes).toContainEqual({ host: '127.0.0.1', outcome: 'refused' })
    expect(found[0]?.reason).toContain(`127.0.0.1:${port} refuses`)
    const connection = await follow(undefined, '/mnt/c/work/app')
    await until('searching', () => connection.state === 'searching')
    age(file, 29 * 60_000)
    expect(await discover('/mnt/c/work/app')).toEqual([])
    expect(existsSync(file)).toBe(true)
  })

  test.each(['0', '-1', '"123"', '1.5', '9007199254740993', undefined])(
    'the pid %s is none: the age decides, and nothing crashes',
    async (pid) => {
      const lockDir = folder()
      const { port } = await Listener.open()
      const text = JSON.stringify(lock({ pid: undefined, port }))
      const file = writeFileOf(join(lockDir, 'a.lock'), pid ? `${text.slice(0, -1)},"pid":${pid}}` : text)
      expect(await only(lockDir)).toMatchObject({
        verdict: 'usable',
        direct: true,
        checks: { pid: 'unusable' },
      })
      age(file, 23 * HOUR_MS)
      expect(await discover(CWD, { lockDir })).toHaveLength(1)
      age(file, 25 * HOUR_MS)
      expect(await discover(CWD, { lockDir })).toEqual([])
      expect(existsSync(file)).toBe(false)
    },
  )

  test('a live process whose port refuses is shown as not answering, tried by hand, and keeps its file', async () => {
    const lockDir = folder()
    const port = await closedPort()
    const file = writeLock(lockDir, { port }, { ageMs: 100 * HOUR_MS })
    const candidate = await only(lockDir)
    expect(candidate).toMatchObject({
      id: file,
      verdict: 'not-answering',
      direct: true,
      checks: { parsed: 'valid', pid: 'alive', probes: [{ host: '127.0.0.1', outcome: 'refused' }] },
    })
    expect(candidate.reason).toMatch(new RegExp(`process lives.*127\\.0\\.0\\.1:${port}`))
    expect((await diagnose(CWD, { lockDir })).candidates).toEqual([candidate])
    expect((await rejection(connect(candidate))).code).toBe('PIX_UNREACHABLE')
    expect((await rejection(connectBest(CWD, { lockDir }))).code).toBe('PIX_UNREACHABLE')
    expect(existsSync(file)).toBe(true)
  })

  test('nor is one retried each second, whether its port refuses or hangs up', async () => {
    const [refusing, dropping] = [folder(), folder()]
    const files = [writeLock(refusing, { port: await closedPort() })]
    const listener = await Listener.open((socket) => socket.destroy())
    files.push(writeLock(dropping, { port: listener.port }))
    const heard = new Heard(await follow(refusing))
    await follow(dropping)
    // Tries at 0, 1, 3 and 7 s; one each second would be eight of them.
    await until('some tries', () => listener.accepted.length >= 3)
    await sleep(4500)
    expect(listener.accepted.length).toBeLessThanOrEqual(5)
    const states = heard.of('status').map(({ state }) => state)
    expect(states.filter((state) => state === 'waiting').length).toBeGreaterThanOrEqual(2)
    expect(states.filter((state) => state === 'waiting').length).toBeLessThanOrEqual(5)
    expect(files.filter((file) => !existsSync(file))).toEqual([])
  })

  test('the refresh of another editor’s lock is no reason to try one again', async () => {
    const lockDir = folder()
    const listener = await Listener.open((socket) => socket.destroy())
    writeLock(lockDir, { port: listener.port })
    const connection = await follow(lockDir)
    await until('a failure', () => connection.state === 'waiting')
    await ideServer({ lockDir, workspaceFolders: ['/elsewhere'], heartbeatMs: 100 })
    await sleep(4000)
    expect(listener.accepted.length).toBeLessThanOrEqual(6)
  })

  test('two locks of one editor are two rows with their ports, the one that answers first', async () => {
    const lockDir = folder()
    const shared = { pid: process.pid, workspaceFolders: [CWD], name: 'VS Code' }
    const old = writeLock(lockDir, { ...shared, port: await closedPort() })
    const editor = await FakeEditor.start({ lockDir, lock: shared })
    age(editor.lockFile, HOUR_MS) // so that only its answer brings it to the front
    const rows = await discover(CWD, { lockDir, all: true })
    expect(rows.map(({ id, verdict }) => [id, verdict])).toEqual([
      [editor.lockFile, 'usable'],
      [old, 'not-answering'],
    ])
    expect(new Set(rows.map(({ port }) => port)).size).toBe(2)
    const followed = await follow(lockDir)
    await until('connected', () => followed.state === 'connected')
    for (const connection of [closedAfterwards(await connectBest(CWD, { lockDir })), followed])
      expect([connection?.state, connection?.candidate?.id]).toEqual(['connected', editor.lockFile])
    expect((await rejection(followed.switchTo(rows[1] as Candidate))).code).toBe('PIX_UNREACHABLE')
    await until('connected again', () => followed.state === 'connected')
    expect(followed.candidate?.id).toBe(editor.lockFile)
  })
})

describe('a container, where the user names the host', () => {
  const REMOTE = { pid: 1715, hostId: '0123456789abcdef', host: '10.9.8.7' }

  test('reachability there decides, not the pid', async () => {
    environment({ PI_X_IDE_HOST_OVERRIDE: '127.0.0.2' })
    for (const pid of [deadPid(), process.pid, undefined]) {
      const editor = await FakeEditor.start({ address: '127.0.0.2', lock: { ...REMOTE, pid } })
      expect(await only(editor.lockDir)).toMatchObject({
        verdict: 'usable',
        direct: true,
        checks: { pid: 'not-checked', probes: [{ host: '127.0.0.2', outcome: 'reachable' }] },
      })
      expect((await editor.connect()).state).toBe('connected')
      const followed = await follow(editor.lockDir)
      await until('connected', () => followed.state === 'connected')
      expect(editor.headers[0]?.host).toBe(`127.0.0.2:${editor.port}`)
    }
  })

  test('an old lock without a pid whose port answers there is usable', async () => {
    environment({ PI_X_IDE_HOST_OVERRIDE: '127.0.0.2' })
    const editor = await FakeEditor.start({ address: '127.0.0.2', lock: { ...REMOTE, pid: undefined } })
    age(editor.lockFile, 25 * HOUR_MS)
    expect(await only(editor.lockDir)).toMatchObject({ verdict: 'usable', direct: true })
    expect(existsSync(editor.lockFile)).toBe(true)
  })

  test('what cannot be reached is hidden, whatever its pid, and never deleted', async () => {
    environment({ PI_X_IDE_HOST_OVERRIDE: '127.0.0.2' })
    const lockDir = folder()
    // An editor that would be reached on this machine is not the one that is meant.
    const { port } = await Listener.open()
    const pids = [deadPid(), process.pid, undefined]
    const files = pids.map((pid, i) => writeLock(lockDir, { ...REMOTE, pid, port }, { name: `${i}.lock` }))
    const { length } = files
    for (const hours of [0, 25, 1000]) {
      for (const file of files) age(file, hours * HOUR_MS)
      expect(await discover(CWD, { lockDir }), `${hours} h`).toEqual([])
      const all = await discover(CWD, { lockDir, all: true })
      expect(all, `${hours} h`).toHaveLength(length)
      for (const { verdict } of all) expect(['stale', 'not-answering']).toContain(verdict)
      expect(await connectBest(CWD, { lockDir }).catch(({ code }) => code)).toBeOneOf([
        null,
        'PIX_UNREACHABLE',
      ])
    }
    expect(files.filter((file) => !existsSync(file))).toEqual([])
  })

  test('a stranger that only accepts there does not get through, and says so', async () => {
    environment({ PI_X_IDE_HOST_OVERRIDE: '127.0.0.2' })
    const stranger = await Listener.open(
      (socket) => socket.end('HTTP/1.1 404 Not Found\r\n\r\n'),
      '127.0.0.2',
    )
    const lockDir = folder()
    const file = writeLock(lockDir, { ...REMOTE, port: stranger.port })
    const connection = await follow(lockDir)
    await until('a refusal', () => connection.message?.includes('404'))
    expect(existsSync(file)).toBe(true)
  })
})

describe('a lock folder that is not as it should be', () => {
  test('a file where ~/.pi should be: the plugin says so once, the agent lists nothing and recovers', async () => {
    const home = ownHome()
    writeFileSync(join(home, '.pi'), '')
    const start = () => IdeServer.start({ ide: 'vscode', name: 'VS Code', workspaceFolders: [CWD] })
    const error = await rejection(start())
    expect([error.code, error.message]).toEqual(['PIX_LOCK_FOLDER', expect.stringContaining(lockDirOf(home))])
    expect(await discover(CWD)).toEqual([])
    expect(await connectBest(CWD)).toBeNull()
    const diagnosis = await diagnose(CWD)
    expect(diagnosis.folders).toEqual([
      { path: lockDirOf(home), windows: false, locks: 0, problem: expect.stringContaining('folder') },
    ])
    const connection = await follow()
    await until('searching', () => connection.state === 'searching')
    expect(readFileSync(join(home, '.pi'), 'utf8')).toBe('')
    rmSync(join(home, '.pi'))
    const server = await start()
    onTestFinished(() => server.close())
    await until('connected', () => connection.state === 'connected')
    expect(connection.log().filter(({ message }) => message.includes(lockDirOf(home)))).toHaveLength(1)
  })

  test('lock folders of a program that died hold nobody up', async () => {
    const lockDir = homeLockDir()
    mkdirSync(join(lockDir, '.write.lock'))
    mkdirSync(join(lockDir, 'x.lock/inner'), { recursive: true })
    mkdirSync(join(lockDir, `vscode-${deadPid()}-5.lock`))
    for (const path of readdirSync(lockDir)) age(join(lockDir, path), 100 * HOUR_MS)
    const connection = await follow()
    await until('searching', () => connection.state === 'searching')
    const server = await IdeServer.start({ ide: 'vscode', name: 'VS Code', workspaceFolders: [CWD] })
    onTestFinished(() => server.close())
    await until('connected', () => connection.state === 'connected')
    await server.setWorkspaceFolders(['/w'])
    expect((await discover(CWD)).map(({ id }) => id)).toEqual([server.lockFile])
    const others = (await discover(CWD, { all: true })).filter(({ id }) => id !== server.lockFile)
    expect(others).toHaveLength(3)
    for (const { verdict, reason } of others)
      expect([verdict, reason]).toEqual(['untrusted', expect.stringMatching(/regular file/)])
    await server.close()
    expect(readdirSync(lockDir).sort()).toEqual(
      ['.write.lock', expect.stringMatching(/^vscode-\d+-5\.lock$/), 'x.lock'].sort(),
    )
  })
})

describe('an editor is found by its lock file alone', () => {
  const AGENT = `
    const connection = await addon.connectBest('${CWD}')
    say([connection?.state, connection?.candidate?.ide])
    await connection?.close()`

  /** What an editor leaves behind in the shells that it once started, all of it out of date. */
  const stale = (port: number) => ({
    TERM_PROGRAM: 'vscode',
    VSCODE_IPC_HOOK_CLI: '/run/user/0/vscode-ipc-gone.sock',
    VSCODE_PID: String(deadPid()),
    TERMINAL_EMULATOR: 'JetBrains-JediTerm',
    CLAUDE_CODE_SSE_PORT: String(port),
    GEMINI_CLI_IDE_SERVER_PORT: String(port),
    PI_X_IDE_PORT: String(port),
    PI_X_IDE_TERMINAL_SESSION_ID: 'of-a-window-that-is-gone',
  })

  /** An editor that no ancestor of the agent has started. */
  const toolbox = () => ideServer({ ide: 'jetbrains', lockDir: homeLockDir() })

  test('without any variable but HOME and PATH', async () => {
    await toolbox()
    const { HOME, PATH, PI_X_IDE_NATIVE_LIBRARY: library } = process.env
    const kept = [`HOME=${HOME}`, `PATH=${PATH}`, `PIX_ADDON=${ADDON}`, 'PIX_ARGS=[]']
    if (library) kept.push(`PI_X_IDE_NATIVE_LIBRARY=${library}`)
    const agent = new Process(AGENT, { under: ['env', '-i', ...kept] })
    expect(await agent.line()).toEqual(['connected', 'jetbrains'])
  })

  test('with old variables of the first shell, whose port is dead or of another window', async () => {
    const other = await Listener.open()
    for (const port of [await closedPort(), other.port]) {
      const server = await toolbox()
      const agent = new Process(AGENT, {
        env: { ...stale(port), TERM_PROGRAM: 'tmux', TMUX: '/tmp/gone,1,0' },
      })
      expect(await agent.line()).toEqual(['connected', 'jetbrains'])
      await server.close()
    }
    expect(other.accepted).toHaveLength(0)
  })

  const hasTmux = spawnSync('tmux', ['-V']).status === 0
  test.skipIf(!hasTmux)('in a pane of a tmux that was started before the editor', async () => {
    const place = folder()
    const [script, answer] = [join(place, 'agent.cjs'), join(place, 'answer')]
    const say = `const say = (value) => require('node:fs').writeFileSync('${answer}', JSON.stringify(value))`
    writeFileSync(
      script,
      `const addon = require(${JSON.stringify(ADDON)});${say};(async () => {${AGENT.replace(
        'say([',
        'say([process.env.TERM_PROGRAM, process.env.VSCODE_PID !== undefined, ',
      )}})()`,
    )
    const lockDir = homeLockDir()
    const env = { ...process.env, ...stale(await closedPort()), TMUX: '', TMUX_TMPDIR: place }
    const tmux = (...args: string[]) => spawnSync('tmux', ['-L', 'pix', '-f', '/dev/null', ...args], { env })
    // The server and its first client are older than the editor; a second session asks later.
    expect(tmux('new-session', '-d', '-s', 'first', 'sleep 60').status).toBe(0)
    onTestFinished(() => void tmux('kill-session', '-t', '=first'))
    await ideServer({ ide: 'jetbrains', lockDir })
    expect(tmux('new-session', '-d', '-s', 'pix', `${process.execPath} ${script}`).status).toBe(0)
    const said = await until('an answer', () => (existsSync(answer) ? readFileSync(answer, 'utf8') : ''))
    expect(JSON.parse(said)).toEqual(['tmux', true, 'connected', 'jetbrains'])
  })
})

test('a server that starts without ~/.pi makes it, private, and is found', async () => {
  const home = ownHome()
  const server = await IdeServer.start({ ide: 'vscode', name: 'VS Code', workspaceFolders: [CWD] })
  onTestFinished(() => server.close())
  expect(dirname(server.lockFile)).toBe(lockDirOf(home))
  server.publish(snapshot(`${CWD}/a.ts`, 1))
  const connection = closedAfterwards(await connectBest(CWD))
  await until('the selection', () => connection?.mentions()[0] === '@a.ts#L1')
})
