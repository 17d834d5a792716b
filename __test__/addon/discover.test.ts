import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { getEventListeners } from 'node:events'
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Candidate, DiscoverOptions } from '../../index.d.ts'
import { connect, connectBest, discover } from '../../index.js'
import {
  ANSWERED_PORT,
  age,
  CWD,
  candidateOf,
  closedPort,
  deadPid,
  environment,
  expectNoToken,
  folder,
  HOUR_MS,
  isRoot,
  Listener,
  lock,
  openToAll,
  ownHome,
  rejection,
  run,
  sleep,
  TOKEN,
  writeFileOf,
  writeLock,
} from './support.ts'

const MACHINE_ID = ['/etc/machine-id', '/var/lib/dbus/machine-id'].find((file) => existsSync(file))
const OTHER_MACHINE = '0123456789abcdef'

const names = (candidates: Candidate[]) => candidates.map(({ name }) => name)

/** Everything that a scan sees, without touching it. */
const look = (lockDir: string, cwd = CWD) => discover(cwd, { lockDir, all: true, cleanUp: false })

/** The only candidate of a folder. */
async function only(lockDir: string, options: DiscoverOptions = {}): Promise<Candidate> {
  const all = await discover(CWD, { lockDir, all: true, ...options })
  expect(all).toHaveLength(1)
  return all[0] as Candidate
}

describe('candidates', () => {
  test('a folder that is not there or is empty has none', async () => {
    const lockDir = folder()
    expect(await discover(CWD, { lockDir, all: true })).toEqual([])
    expect(await discover(CWD, { lockDir: join(lockDir, 'a/b'), all: true })).toEqual([])
    expect(existsSync(join(lockDir, 'a'))).toBe(false)
  })

  test('a lock file becomes a candidate without its token', async () => {
    const lockDir = folder()
    const file = writeLock(lockDir, {
      port: ANSWERED_PORT,
      focusedAt: 1_780_963_200_000,
      workspaceFolders: ['/other', CWD],
    })
    const candidate = await only(lockDir)
    const { reason, ...rest } = candidate
    expect(rest).toEqual({
      id: file,
      transport: 'ws',
      ide: 'vscode',
      name: 'VS Code',
      pid: process.pid,
      host: '127.0.0.1',
      port: ANSWERED_PORT,
      workspaceFolder: CWD,
      workspaceFolders: ['/other', CWD],
      matchLength: 10_000 + CWD.length,
      direct: true,
      lastActivity: 1_780_963_200_000,
      verdict: 'usable',
      checks: { parsed: 'valid', pid: 'alive', probes: [{ host: '127.0.0.1', outcome: 'reachable' }] },
    })
    expect(reason).toContain(CWD)
    expectNoToken(candidate)
  })

  test('the lock folder of the home is the default', async () => {
    const home = ownHome()
    const lockDir = join(home, '.pi/pi-x-ide/lock')
    mkdirSync(lockDir, { recursive: true, mode: 0o700 })
    writeLock(lockDir, { name: 'at home' })
    expect(names(await discover(CWD))).toEqual(['at home'])
  })

  test('optional members may be missing, unknown ones may be there, and any ide name counts', async () => {
    const lockDir = folder()
    writeLock(lockDir, { ide: 'emacs', name: undefined, runningInWindows: undefined, zzz: { deep: [1] } })
    expect(await only(lockDir)).toMatchObject({
      ide: 'emacs',
      name: 'emacs',
      verdict: 'usable',
      direct: true,
    })
  })

  test('an empty host is this machine, and a byte order mark is no fault', async () => {
    const lockDir = folder()
    writeFileOf(join(lockDir, 'x.lock'), `\ufeff${JSON.stringify(lock({ host: '' }))}`)
    expect(await only(lockDir)).toMatchObject({ host: '127.0.0.1', verdict: 'usable' })
  })

  test('other files of the folder are not looked at', async () => {
    const lockDir = folder()
    for (const name of ['.lock-a1b2.tmp', 'vscode-1-1.lock.bak', 'notes.txt', 'lock'])
      writeFileOf(join(lockDir, name), 'x', 48 * HOUR_MS)
    expect(await discover(CWD, { lockDir, all: true })).toEqual([])
    expect(readdirSync(lockDir)).toHaveLength(4)
  })

  test('a folder or a path that depends on where the process stands is refused', async () => {
    const bad: [string, DiscoverOptions][] = [
      ['w/app', {}],
      ['', {}],
      ['.', {}],
      [CWD, { lockDir: 'lock' }],
      [CWD, { lockDir: '' }],
    ]
    for (const [cwd, options] of bad) {
      const error = await rejection(discover(cwd, options))
      expect(error).toBeInstanceOf(Error)
      expect(error.code).toBe('PIX_INVALID_ARGUMENT')
    }
  })
})

describe('rank', () => {
  test('a folder that contains pi comes before one inside it, then the others; deeper first', async () => {
    const lockDir = folder()
    const editors = {
      shallow: ['/w'],
      deep: ['/x', CWD],
      inside: [`${CWD}/packages/web`],
      other: ['/elsewhere'],
      root: ['/'],
    }
    let port = 100
    for (const [name, workspaceFolders] of Object.entries(editors))
      writeLock(lockDir, { name, workspaceFolders, port: port++, focusedAt: port })
    const found = await discover(CWD, { lockDir })
    expect(names(found)).toEqual(['deep', 'shallow', 'inside', 'root', 'other'])
    expect(found.map(({ matchLength }) => matchLength)).toEqual([10_006, 10_002, 6, 0, 0])
    expect(found.map(({ direct }) => direct)).toEqual([true, true, false, false, false])
    expect(found.map(({ workspaceFolder }) => workspaceFolder)).toEqual([
      CWD,
      '/w',
      `${CWD}/packages/web`,
      '/',
      '/elsewhere',
    ])
    expect(found.map(({ reason }) => reason)).toEqual([
      `${CWD} contains this folder`,
      '/w contains this folder',
      `${CWD}/packages/web lies inside ${CWD}; pick it by hand`,
      `is open for /, not for ${CWD}; pick it by hand`,
      expect.stringMatching(/^is open for \/elsewhere, which does not exist here/),
    ])
  })

  test('a tie goes to the last focus, then to the youngest file, then to the path', async () => {
    const lockDir = folder()
    writeLock(lockDir, { name: 'b', port: 2 }, { ageMs: 5000, name: 'b.lock' })
    age(writeLock(lockDir, { name: 'c', port: 3 }, { name: 'c.lock' }), 1000)
    const twins = ['a2', 'a1'].map((name) => writeLock(lockDir, { name }, { name: `${name}.lock` }))
    for (const file of twins) age(file, 10 * HOUR_MS)
    writeLock(lockDir, { name: 'focused', focusedAt: 5 }, { name: 'd.lock', ageMs: 20 * HOUR_MS })
    writeLock(lockDir, { name: 'focused later', focusedAt: 6 }, { name: 'e.lock', ageMs: 20 * HOUR_MS })
    expect(names(await discover(CWD, { lockDir }))).toEqual([
      'focused later',
      'focused',
      'c',
      'b',
      'a1',
      'a2',
    ])
  })

  test('a string that begins alike is no containment', async () => {
    const lockDir = folder()
    for (const [i, path] of [`${CWD}2`, '/w/ap', '/W/APP', '/w/app/../app2'].entries())
      writeLock(lockDir, { workspaceFolders: [path], port: i + 1 })
    const found = await discover(CWD, { lockDir })
    expect(found).toHaveLength(4)
    expect(found.every(({ direct, matchLength }) => !direct && matchLength === 0)).toBe(true)
  })

  test.each(['', '.', './', '..', 'w/app', 'app'])('the workspace folder %j never matches', async (path) => {
    const lockDir = folder()
    writeLock(lockDir, { workspaceFolders: [path] })
    expect(await only(lockDir)).toMatchObject({ direct: false, matchLength: 0, verdict: 'usable' })
    expect(await connectBest(CWD, { lockDir })).toBeNull()
  })

  test('neither does the root, also where pi runs in it or a link leads to it', async () => {
    const lockDir = folder()
    writeLock(lockDir, { workspaceFolders: ['/', '//', '/.', '/w/..'] })
    for (const cwd of [CWD, '/']) {
      const [candidate] = await discover(cwd, { lockDir })
      expect(candidate).toMatchObject({ direct: false, matchLength: 0 })
    }
    const work = folder()
    symlinkSync('/', join(work, 'everything'))
    writeLock(lockDir, { workspaceFolders: [join(work, 'everything')] })
    const [candidate] = await discover(work, { lockDir })
    expect(candidate?.direct).toBe(false)
  })

  test('no workspace folder at all never matches', async () => {
    const lockDir = folder()
    writeLock(lockDir, { workspaceFolders: [] })
    expect(await only(lockDir)).toMatchObject({ direct: false, matchLength: 0, workspaceFolders: [] })
  })

  test('a linked project matches by its real path, both ways round, and keeps the spelling', async () => {
    const lockDir = folder()
    const work = folder()
    mkdirSync(join(work, 'real/src'), { recursive: true })
    symlinkSync(join(work, 'real'), join(work, 'link'))
    for (const [theirs, ours] of [
      ['link', 'real'],
      ['real', 'link'],
      ['link', 'real/src'],
      ['real', 'link/src'],
    ]) {
      const workspace = join(work, theirs as string)
      writeLock(lockDir, { workspaceFolders: [workspace] })
      const [candidate] = await discover(join(work, ours as string), { lockDir })
      expect(candidate, `${theirs} ${ours}`).toMatchObject({ direct: true, workspaceFolder: workspace })
    }
  })

  test('a link to nowhere or to itself does no harm', async () => {
    const lockDir = folder()
    const work = folder()
    symlinkSync(join(work, 'gone'), join(work, 'dangling'))
    symlinkSync(join(work, 'loop'), join(work, 'loop'))
    writeLock(lockDir, { workspaceFolders: [join(work, 'dangling'), join(work, 'loop'), work] })
    expect((await discover(join(work, 'dangling'), { lockDir }))[0]?.direct).toBe(true)
    expect((await discover(join(work, 'loop'), { lockDir }))[0]?.direct).toBe(true)
  })
})

describe('bad files', () => {
  /** Makes one bad entry at the path; the verdict that it gets and a word of the reason. */
  const bad: Record<string, [make: (path: string) => unknown, verdict: string, reason: RegExp]> = {
    'an empty file': [(path) => writeFileOf(path, ''), 'malformed', /JSON/],
    'a truncated file': [
      (path) => writeFileOf(path, JSON.stringify(lock()).slice(0, -20)),
      'malformed',
      /JSON/,
    ],
    'a file with bad UTF-8': [
      (path) => writeFileOf(path, Buffer.from([0x7b, 0xff, 0x7d])),
      'untrusted',
      /UTF-8/,
    ],
    'a list': [(path) => writeFileOf(path, '[]'), 'malformed', /version/],
    null: [(path) => writeFileOf(path, 'null'), 'malformed', /version/],
    'no token': [
      (path) => writeFileOf(path, JSON.stringify(lock({ authToken: undefined }))),
      'malformed',
      /authToken/,
    ],
    'a port that is none': [
      (path) => writeFileOf(path, JSON.stringify(lock({ port: 65_536 }))),
      'malformed',
      /port/,
    ],
    'another transport': [
      (path) => writeFileOf(path, JSON.stringify(lock({ transport: 'tcp' }))),
      'malformed',
      /transport/,
    ],
    'deep nesting': [(path) => writeFileOf(path, '['.repeat(500_000)), 'malformed', /JSON/],
    'another version': [
      (path) => writeFileOf(path, JSON.stringify(lock({ version: 2 }))),
      'unsupported',
      /version/,
    ],
    'nothing but another version': [
      (path) => writeFileOf(path, '{"version":"next"}'),
      'unsupported',
      /version/,
    ],
    '50 MB': [(path) => truncateSync(writeFileOf(path, ''), 50_000_000), 'untrusted', /larger/],
    'a folder': [(path) => mkdirSync(path), 'untrusted', /regular file/],
    'a pipe': [(path) => spawnSync('mkfifo', [path]), 'untrusted', /regular file/],
    'a link to a good lock': [(path) => symlinkSync(writeLock(folder()), path), 'untrusted', /regular file/],
    'a link to nowhere': [(path) => symlinkSync('/nowhere/x', path), 'untrusted', /regular file/],
    'a link to an endless device': [(path) => symlinkSync('/dev/zero', path), 'untrusted', /regular file/],
  }

  const PARSED: Record<string, string> = {
    malformed: 'malformed',
    unsupported: 'unsupported',
    untrusted: 'unreadable',
  }

  test.each(Object.keys(bad))('%s is told with its reason, hidden by default, and stays', async (name) => {
    const [make, verdict, reason] = bad[name] as (typeof bad)[string]
    const lockDir = folder()
    const path = join(lockDir, `vscode-${process.pid}-9.lock`)
    make(path)
    writeLock(lockDir, { name: 'good' }, { name: 'good.lock' })
    expect(names(await discover(CWD, { lockDir }))).toEqual(['good'])
    const found = (await discover(CWD, { lockDir, all: true })).find(({ id }) => id === path)
    expect(found).toMatchObject({ verdict, direct: false, checks: { parsed: PARSED[verdict], probes: [] } })
    expect(found?.reason).toMatch(reason)
    expectNoToken(found)
    expect(readdirSync(lockDir)).toHaveLength(2)
  })

  test.skipIf(!isRoot)('a file of another user is told and left alone', async () => {
    const lockDir = folder()
    const path = writeLock(lockDir)
    chownSync(path, 12_345, 12_345)
    expect(await discover(CWD, { lockDir })).toEqual([])
    expect(await only(lockDir)).toMatchObject({
      id: path,
      verdict: 'untrusted',
      reason: expect.stringMatching(/user/),
    })
    expect(existsSync(path)).toBe(true)
  })

  const badFolders: Record<string, [make: (path: string) => unknown, reason: RegExp]> = {
    'that others may write to': [
      (path) => {
        mkdirSync(path)
        writeLock(path)
        writeLock(path, { pid: deadPid(), port: 1 })
        openToAll(path)
      },
      /other users/,
    ],
    'that is a link': [
      (path) => {
        const real = folder()
        writeLock(real)
        symlinkSync(real, path)
      },
      /regular folder/,
    ],
    'that is a file': [(path) => writeFileSync(path, ''), /regular folder/],
    'that is a pipe': [(path) => spawnSync('mkfifo', [path]), /regular folder/],
    'below a file': [(path) => writeFileSync(dirname(path), ''), /regular folder/],
    'of another user': [
      (path) => {
        mkdirSync(path)
        writeLock(path)
        if (isRoot) chownSync(path, 12_345, 12_345)
        else openToAll(path)
      },
      /other? user/,
    ],
  }

  test.each(Object.keys(badFolders))('a lock folder %s is not read, and told as a whole', async (name) => {
    const [make, reason] = badFolders[name] as (typeof badFolders)[string]
    const lockDir = name === 'below a file' ? join(folder(), 'file/lock') : join(folder(), 'lock')
    make(lockDir)
    expect(await discover(CWD, { lockDir })).toEqual([])
    const refusal = await only(lockDir)
    expect(refusal).toMatchObject({ id: lockDir, verdict: 'untrusted', direct: false })
    expect(refusal.reason).toMatch(reason)
    if (existsSync(lockDir) && statSync(lockDir).isDirectory())
      expect(readdirSync(lockDir)).toHaveLength(name.includes('write') ? 2 : 1)
    const refused = await rejection(connect(refusal))
    expect(refused.code).toBe('PIX_NOT_USABLE')
  })

  test('hostile names and sizes do no harm', async () => {
    const lockDir = folder()
    const name = '\u001b]0;owned\u0007\u202e\u2028"\\</script>\u0000'
    writeLock(
      lockDir,
      { ide: `${name}/../..`, name, workspaceFolders: [`/w/${name}`, CWD] },
      { name: 'a.lock' },
    )
    writeLock(
      lockDir,
      { name: 'n'.repeat(500_000), workspaceFolders: Array(10_000).fill('/x') },
      { name: 'b.lock' },
    )
    writeFileOf(
      join(lockDir, 'c.lock'),
      `{"__proto__":{"polluted":true},"constructor":1,${JSON.stringify(lock({ name: 'proto' })).slice(1)}`,
    )
    writeLock(lockDir, { focusedAt: 'soon', hostId: 7 }, { name: 'd.lock' })
    writeLock(lockDir, { name: 'half a pair \ud83d' }, { name: 'e.lock' })
    const found = await discover(CWD, { lockDir })
    expect(found).toHaveLength(4)
    expect(found.find(({ id }) => id.endsWith('a.lock'))).toMatchObject({ name, direct: true })
    expect(found.find(({ id }) => id.endsWith('b.lock'))?.workspaceFolders).toHaveLength(10_000)
    expect(found.find(({ id }) => id.endsWith('c.lock'))).toMatchObject({ name: 'proto', direct: true })
    expect({}).not.toHaveProperty('polluted')
    expect(JSON.parse(JSON.stringify(found))).toEqual(found)
  })

  test('file names that are no text or hold control characters do no harm', async () => {
    const lockDir = folder()
    writeFileOf(`${lockDir}/\u001b[31m\n.lock`, JSON.stringify(lock({ name: 'odd name' })))
    writeFileSync(
      Buffer.concat([Buffer.from(`${lockDir}/`), Buffer.from([0xff, 0xfe]), Buffer.from('.lock')]),
      JSON.stringify(lock()),
    )
    expect(names(await discover(CWD, { lockDir }))).toContain('odd name')
  })

  test('no verdict tells a token', async () => {
    const lockDir = folder()
    writeLock(lockDir, {}, { name: 'usable.lock' })
    writeLock(lockDir, { version: 2 }, { name: 'unsupported.lock' })
    writeLock(lockDir, { hostId: OTHER_MACHINE }, { name: 'foreign.lock' })
    writeLock(lockDir, { port: -1 }, { name: 'malformed.lock' })
    writeLock(lockDir, { port: TOKEN, workspaceFolders: TOKEN, ide: 7 }, { name: 'mixed-up.lock' })
    writeLock(lockDir, { transport: 'tcp' }, { name: 'transport.lock' })
    writeFileOf(join(lockDir, 'cut.lock'), `{"authToken":"${TOKEN}"`)
    writeFileOf(join(lockDir, 'bare.lock'), `${TOKEN}`)
    writeLock(lockDir, { pid: deadPid(), port: await closedPort() }, { name: 'dead.lock' })
    writeLock(lockDir, { port: await closedPort() }, { name: 'not-answering.lock' })
    const found = await discover(CWD, { lockDir, all: true })
    expect(found).toHaveLength(10)
    expect(JSON.stringify(found)).not.toContain(TOKEN)
    expectNoToken(found)
  })
})

describe('clean-up', () => {
  test('a dead process with a closed port: the file goes, at any age', async () => {
    const lockDir = folder()
    const port = await closedPort()
    const file = writeLock(lockDir, { pid: deadPid(), port })
    expect(await only(lockDir)).toMatchObject({
      id: file,
      verdict: 'removed',
      reason: `its process is gone and 127.0.0.1:${port} refuses; the file was removed`,
      checks: { parsed: 'valid', pid: 'dead', probes: [{ host: '127.0.0.1', outcome: 'refused' }] },
    })
    expect(existsSync(file)).toBe(false)
    expect(await discover(CWD, { lockDir, all: true })).toEqual([])
  })

  test('also where nobody asks for all', async () => {
    const lockDir = folder()
    const file = writeLock(lockDir, { pid: deadPid(), port: await closedPort() })
    expect(await discover(CWD, { lockDir })).toEqual([])
    expect(existsSync(file)).toBe(false)
  })

  test('a dead process with an open port: another process may own the socket, the file stays and is usable', async () => {
    const lockDir = folder()
    const { port } = await Listener.open()
    const file = writeLock(lockDir, { pid: deadPid(), port }, { ageMs: 48 * HOUR_MS })
    const candidate = { id: file, verdict: 'usable', direct: true, checks: { pid: 'dead' } }
    expect(await only(lockDir)).toMatchObject(candidate)
    expect(await discover(CWD, { lockDir })).toMatchObject([candidate])
    expect(existsSync(file)).toBe(true)
  })

  test('a live process: the file stays at any age, whatever its port says', async () => {
    const lockDir = folder()
    const port = await closedPort()
    const file = writeLock(lockDir, { port }, { ageMs: 1000 * HOUR_MS })
    expect(await discover(CWD, { lockDir })).toMatchObject([
      { id: file, verdict: 'usable', checks: { pid: 'alive', probes: [] } },
    ])
    expect(await only(lockDir)).toMatchObject({
      id: file,
      verdict: 'not-answering',
      direct: true,
      reason: `its process lives, but nothing answers: 127.0.0.1:${port} refuses`,
      checks: { pid: 'alive', probes: [{ host: '127.0.0.1', outcome: 'refused' }] },
    })
    expect(existsSync(file)).toBe(true)
  })

  test('the port of a live process is asked only by who wants to know all', async () => {
    const lockDir = folder()
    const listener = await Listener.open()
    writeLock(lockDir, { port: listener.port })
    const [candidate] = await discover(CWD, { lockDir })
    expect(candidate?.checks.probes).toEqual([])
    expect(listener.accepted).toEqual([])
  })

  test('editors that answer come first, those that may be tried second', async () => {
    const lockDir = folder()
    writeLock(lockDir, { name: 'gone', pid: deadPid(), port: await closedPort() })
    writeLock(lockDir, { name: 'quiet', port: await closedPort() })
    writeLock(lockDir, { name: 'elsewhere', workspaceFolders: ['/elsewhere'] })
    expect(names(await look(lockDir))).toEqual(['elsewhere', 'quiet', 'gone'])
  })

  test('process 1 of another user counts as alive', async () => {
    const lockDir = folder()
    writeLock(lockDir, { pid: 1, port: await closedPort() })
    expect(await discover(CWD, { lockDir })).toMatchObject([{ verdict: 'usable', checks: { pid: 'alive' } }])
    expect(await only(lockDir)).toMatchObject({ verdict: 'not-answering', checks: { pid: 'alive' } })
  })

  const NO_PIDS = {
    'no pid': '',
    zero: '0',
    negative: '-1',
    text: '"123"',
    fraction: '1.5',
    'over 2^53': '9007199254740993',
    null: 'null',
    list: '[1]',
    huge: '1e300',
  }
  test.each(Object.entries(NO_PIDS))('%s is no usable pid: only the age decides', async (_, pid) => {
    const lockDir = folder()
    const text = JSON.stringify(lock({ pid: undefined, port: await closedPort() }))
    const file = writeFileOf(
      join(lockDir, 'vscode-1-1.lock'),
      pid ? `${text.slice(0, -1)},"pid":${pid}}` : text,
    )
    const [fresh] = await discover(CWD, { lockDir })
    expect(fresh).toMatchObject({ verdict: 'usable', checks: { pid: 'unusable', probes: [] } })
    expect(fresh).not.toHaveProperty('pid')
    expect(await only(lockDir)).toMatchObject({
      verdict: 'not-answering',
      reason: expect.stringMatching(/^nothing answers/),
      checks: { pid: 'unusable' },
    })
    age(file, 23 * HOUR_MS)
    expect(await discover(CWD, { lockDir })).toMatchObject([{ verdict: 'usable' }])
    age(file, 25 * HOUR_MS)
    expect((await only(lockDir)).verdict).toBe('removed')
    expect(existsSync(file)).toBe(false)
  })

  test('a pid beyond what the system has is dead', async () => {
    const lockDir = folder()
    const file = writeLock(lockDir, { pid: 2 ** 53 - 1, port: await closedPort() })
    expect(await only(lockDir)).toMatchObject({ verdict: 'removed', checks: { pid: 'dead' } })
    expect(existsSync(file)).toBe(false)
  })

  test('a file of the future is young', async () => {
    const lockDir = folder()
    const file = writeLock(lockDir, { pid: undefined })
    age(file, -48 * HOUR_MS)
    expect((await only(lockDir)).verdict).toBe('usable')
  })

  test('text that is no lock goes only when its name tells a dead process and it is old enough', async () => {
    const lockDir = folder()
    const dead = deadPid()
    const write = (name: string, ageMs: number) => writeFileOf(join(lockDir, name), '{"version":1', ageMs)
    const gone = [
      write(`vscode-${dead}-1.lock`, 15_000),
      write(`my-own-ide-${dead}-65535.lock`, 48 * HOUR_MS),
    ]
    const kept = [
      write(`vscode-${dead}-2.lock`, 0),
      write(`vscode-${process.pid}-3.lock`, 48 * HOUR_MS),
      write('vscode-1-4.lock', 48 * HOUR_MS),
      write('notes.lock', 48 * HOUR_MS),
      write(`vscode-${dead}.lock`, 48 * HOUR_MS),
      write(`-${dead}-5.lock`, 48 * HOUR_MS),
      write(`vscode-${dead}-65536.lock`, 48 * HOUR_MS),
      write(`vscode-x${dead}-6.lock`, 48 * HOUR_MS),
      write('.lock', 48 * HOUR_MS),
    ]
    const all = await discover(CWD, { lockDir, all: true })
    const verdicts = Object.fromEntries(all.map(({ id, verdict }) => [id, verdict]))
    for (const file of gone) expect([verdicts[file], existsSync(file)], file).toEqual(['removed', false])
    for (const file of kept) expect([verdicts[file], existsSync(file)], file).toEqual(['malformed', true])
  })

  test('a lock of another version stays, whatever its process and age', async () => {
    const lockDir = folder()
    const file = writeLock(
      lockDir,
      { version: 2, pid: deadPid(), port: await closedPort() },
      { ageMs: 1000 * HOUR_MS },
    )
    expect((await only(lockDir)).verdict).toBe('unsupported')
    expect(existsSync(file)).toBe(true)
  })

  test('nothing is removed with `cleanUp: false`', async () => {
    const lockDir = folder()
    const [pid, port] = [deadPid(), await closedPort()]
    writeLock(lockDir, { pid, port })
    writeLock(lockDir, { pid: undefined }, { ageMs: 25 * HOUR_MS, name: 'old.lock' })
    writeFileOf(join(lockDir, `vscode-${pid}-1.lock`), '', 48 * HOUR_MS)
    const before = readdirSync(lockDir).sort()
    const all = await discover(CWD, { lockDir, all: true, cleanUp: false })
    expect(all.map(({ verdict }) => verdict).sort()).toEqual(['malformed', 'stale', 'stale'])
    expect(await discover(CWD, { lockDir, cleanUp: false })).toEqual([])
    expect(readdirSync(lockDir).sort()).toEqual(before)
  })

  test('a folder that may not be trusted loses nothing', async () => {
    const lockDir = folder()
    writeLock(lockDir, { pid: deadPid(), port: await closedPort() })
    openToAll(lockDir)
    await discover(CWD, { lockDir })
    expect(readdirSync(lockDir)).toHaveLength(1)
  })

  const SWITCHES: Record<string, DiscoverOptions> = {
    'PI_X_IDE_PID_CHECK=0': {},
    'checkPid: false': { checkPid: false },
  }
  test.each(Object.entries(SWITCHES))(
    'with %s a pid proves nothing, only the age does',
    async (name, options) => {
      if (name.includes('=')) environment({ PI_X_IDE_PID_CHECK: '0' })
      const lockDir = folder()
      const fresh = writeLock(lockDir, { pid: deadPid(), port: await closedPort() }, { name: 'fresh.lock' })
      const old = writeLock(lockDir, {}, { name: 'old.lock', ageMs: 25 * HOUR_MS })
      const all = await discover(CWD, { lockDir, all: true, ...options })
      expect(Object.fromEntries(all.map(({ id, verdict }) => [id, verdict]))).toEqual({
        [fresh]: 'not-answering',
        [old]: 'removed',
      })
      expect(all.map(({ checks }) => checks.pid)).toEqual(['not-checked', 'not-checked'])
      expect(await discover(CWD, { lockDir, ...options })).toMatchObject([
        { id: fresh, verdict: 'usable', checks: { pid: 'not-checked', probes: [] } },
      ])
      expect([existsSync(fresh), existsSync(old)]).toEqual([true, false])
    },
  )
})

describe('another machine', () => {
  const ours = MACHINE_ID
    ? createHash('sha256')
        .update(`pi-x-ide host ${readFileSync(MACHINE_ID, 'utf8').trim()}`)
        .digest('hex')
        .slice(0, 16)
    : ''

  test.skipIf(!MACHINE_ID)('its locks are listed with all, never dialled, never removed', async () => {
    const lockDir = folder()
    const listener = await Listener.open()
    const files = [
      writeLock(lockDir, { hostId: OTHER_MACHINE, port: listener.port }, { name: 'a.lock' }),
      writeLock(
        lockDir,
        { hostId: OTHER_MACHINE, pid: deadPid(), port: await closedPort() },
        { name: 'b.lock' },
      ),
      writeLock(
        lockDir,
        { hostId: OTHER_MACHINE, pid: undefined },
        { name: 'c.lock', ageMs: 1000 * HOUR_MS },
      ),
    ]
    expect(await discover(CWD, { lockDir })).toEqual([])
    const all = await discover(CWD, { lockDir, all: true })
    expect(all.map(({ id }) => id).sort()).toEqual(files)
    for (const candidate of all) {
      expect(candidate).toMatchObject({
        verdict: 'foreign-host',
        reason: expect.stringMatching(/another machine/),
        checks: { parsed: 'valid', pid: 'not-checked', probes: [] },
      })
      expect((await rejection(connect(candidate))).code).toBe('PIX_NOT_USABLE')
    }
    expect(await connectBest(CWD, { lockDir })).toBeNull()
    expect(files.every((file) => existsSync(file))).toBe(true)
    expect(listener.accepted).toHaveLength(0)
  })

  test.skipIf(!MACHINE_ID)(
    'a lock of this machine, or of one that has no id, is judged as usual',
    async () => {
      const lockDir = folder()
      writeLock(lockDir, { hostId: ours }, { name: 'a.lock' })
      writeLock(lockDir, { hostId: undefined }, { name: 'b.lock' })
      writeLock(lockDir, { hostId: ours, pid: deadPid(), port: await closedPort() }, { name: 'c.lock' })
      const all = await discover(CWD, { lockDir, all: true })
      expect(all.map(({ verdict }) => verdict).sort()).toEqual(['removed', 'usable', 'usable'])
    },
  )

  test.skipIf(!MACHINE_ID)(
    'with a host that the user named the port there decides, and still nothing is removed',
    async () => {
      environment({ PI_X_IDE_HOST_OVERRIDE: '127.0.0.1' })
      const lockDir = folder()
      writeLock(lockDir, { hostId: OTHER_MACHINE }, { name: 'a.lock' })
      writeLock(lockDir, { hostId: OTHER_MACHINE, pid: undefined }, { name: 'b.lock', ageMs: 1000 * HOUR_MS })
      writeLock(lockDir, { pid: deadPid(), port: await closedPort() }, { name: 'c.lock' })
      const all = await discover(CWD, { lockDir, all: true })
      const looked = all.map(({ id, verdict, checks }) => [basename(id), verdict, checks.pid, checks.probes])
      expect(looked.sort()).toEqual([
        ['a.lock', 'usable', 'not-checked', [{ host: '127.0.0.1', outcome: 'reachable' }]],
        ['b.lock', 'usable', 'not-checked', [{ host: '127.0.0.1', outcome: 'reachable' }]],
        ['c.lock', 'stale', 'not-checked', [{ host: '127.0.0.1', outcome: 'refused' }]],
      ])
      expect(readdirSync(lockDir)).toHaveLength(3)
    },
  )
})

describe('many, and at once', () => {
  test('1,000 lock files: all are found, the right one first, the dead ones go', async () => {
    const lockDir = folder()
    const [dead, port] = [deadPid(), await closedPort()]
    for (let i = 0; i < 1000; i++) {
      const isDead = i % 10 === 9
      writeLock(
        lockDir,
        {
          name: `${i}`,
          port: isDead ? port : i + 1,
          pid: isDead ? dead : process.pid,
          workspaceFolders: [i === 500 ? CWD : `/w/other${i}`],
        },
        { name: `vscode-${i}-${i}.lock` },
      )
    }
    const found = await discover(CWD, { lockDir })
    expect(found).toHaveLength(900)
    expect(found[0]).toMatchObject({ name: '500', direct: true })
    expect(new Set(names(found)).size).toBe(900)
    expect(readdirSync(lockDir)).toHaveLength(900)
  })

  test('dead locks with 300 different ports are judged in one scan', async () => {
    const lockDir = folder()
    const { port } = await Listener.open()
    const dead = deadPid()
    for (let i = 1; i <= 300; i++)
      writeLock(lockDir, { pid: dead, port: i }, { name: `vscode-${dead}-${i}.lock` })
    const kept = writeLock(lockDir, { pid: dead, port, name: 'kept' })
    expect(names(await discover(CWD, { lockDir }))).toContain('kept')
    expect(existsSync(kept)).toBe(true)
  })

  test('scans at once do not disturb each other', async () => {
    const lockDir = folder()
    for (let i = 1; i <= 20; i++) writeLock(lockDir, { port: i, name: `${i}` }, { ageMs: i * 1000 })
    for (let i = 1; i <= 20; i++) writeLock(lockDir, { port: i, pid: deadPid() })
    const all = await Promise.all(Array.from({ length: 40 }, () => discover(CWD, { lockDir })))
    for (const found of all) expect(names(found).slice(0, 3)).toEqual(['1', '2', '3'])
    expect(readdirSync(lockDir)).toHaveLength(20)
  })
})

describe('abort', () => {
  test('before: always rejects with the reason, however quick the work is, and leaves no listener', async () => {
    const lockDir = folder()
    const reason = new Error('enough')
    const signal = AbortSignal.abort(reason)
    // Several at once, so that the addon's threads have reason to interrupt each other.
    const scans = Array.from({ length: 500 }, () =>
      discover(CWD, { lockDir, signal }).catch((error) => error),
    )
    const outcomes = await Promise.all(scans)
    expect(outcomes.filter((outcome) => outcome !== reason)).toEqual([])
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })

  test('an abort without a reason rejects as the platform does', async () => {
    const signal = AbortSignal.abort()
    const error = await rejection(discover(CWD, { lockDir: folder(), signal }))
    expect(error).toBe(signal.reason)
    expect(error.name).toBe('AbortError')
  })

  test.each([['text'], [42], [null], [false], [10n]])(
    'the reason may be any value, such as %s',
    async (reason) => {
      const signal = AbortSignal.abort(reason)
      expect(await rejection(discover(CWD, { lockDir: folder(), signal }))).toBe(signal.reason)
    },
  )

  test('even a symbol as reason lets the promise settle', async () => {
    const signal = AbortSignal.abort(Symbol('why'))
    const scan = discover(CWD, { lockDir: folder(), signal }).then(
      () => 'resolved',
      (reason) => reason,
    )
    expect(await Promise.race([scan, sleep(3000).then(() => 'hangs')])).toBe(signal.reason)
  })

  test('a signal that is not aborted changes nothing, and no listener stays', async () => {
    const lockDir = folder()
    writeLock(lockDir)
    const { signal } = new AbortController()
    expect(await discover(CWD, { lockDir, signal })).toHaveLength(1)
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    expect((await rejection(discover('relative', { signal }))).code).toBe('PIX_INVALID_ARGUMENT')
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })

  test('an abort after the end does nothing', async () => {
    const controller = new AbortController()
    await discover(CWD, { lockDir: folder(), signal: controller.signal })
    controller.abort(new Error('late'))
    expect(await look(folder())).toEqual([])
  })

  test('something that is no signal is refused', async () => {
    for (const signal of [{}, 5, { addEventListener: 1 }] as unknown as AbortSignal[])
      expect(() => discover(CWD, { lockDir: folder(), signal })).toThrow(/addEventListener/)
  })
})

describe('a project that is not trusted', () => {
  // In a process of its own: a reader that hangs would hang this one's threads too.
  test.each(['mkfifo config.json', 'ln -s /dev/zero config.json'])(
    '`%s` in its settings folder neither hangs nor fills memory',
    async (command) => {
      const [cwd, lockDir] = [folder(), folder()]
      const settings = join(cwd, '.pi/pi-x-ide')
      mkdirSync(settings, { recursive: true })
      spawnSync('sh', ['-c', command], { cwd: settings })
      writeLock(lockDir, { workspaceFolders: [cwd] })
      const { stdout, signal } = await run(
        `const [cwd, lockDir] = args
       const found = addon.discover(cwd, { lockDir }).then((found) => found.length)
       say(await Promise.race([found, sleep(3000).then(() => 'hangs')]))
       say(process.memoryUsage().rss < 400e6)
       process.exit(0)`,
        { args: [cwd, lockDir] },
      )
      expect([stdout, signal]).toEqual(['1\ntrue\n', null])
    },
  )
})

test('a candidate may be looked up by its id again', async () => {
  const lockDir = folder()
  const file = writeLock(lockDir)
  expect((await candidateOf(file)).id).toBe(file)
})
