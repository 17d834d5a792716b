import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { DiscoverOptions } from '../../index.d.ts'
import { connect, connectBest, discover } from '../../index.js'
import {
  closedPort,
  deadPid,
  HOUR_MS,
  lock,
  look,
  names,
  OTHER_MACHINE,
  only,
  writeLock,
} from './lock-files.ts'
import { Listener } from './sockets.ts'
import { age, CWD, environment, folder, openToAll, rejection, writeFileOf } from './support.ts'

const MACHINE_ID = ['/etc/machine-id', '/var/lib/dbus/machine-id'].find((file) => existsSync(file))

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
