import { spawnSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { connect, discover } from '../../index.js'
import {
  closedPort,
  deadPid,
  expectNoToken,
  lock,
  names,
  OTHER_MACHINE,
  only,
  TOKEN,
  writeLock,
} from './lock-files.ts'
import { run } from './processes.ts'
import { CWD, folder, isRoot, openToAll, rejection, writeFileOf } from './support.ts'

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
