import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { DiscoverOptions } from '../../index.d.ts'
import { connectBest, discover } from '../../index.js'
import {
  ANSWERED_PORT,
  candidateOf,
  expectNoToken,
  HOUR_MS,
  lock,
  names,
  only,
  writeLock,
} from './lock-files.ts'
import { age, CWD, folder, ownHome, rejection, writeFileOf } from './support.ts'

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

test('a candidate may be looked up by its id again', async () => {
  const lockDir = folder()
  const file = writeLock(lockDir)
  expect((await candidateOf(file)).id).toBe(file)
})
