import { getEventListeners } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { discover } from '../../index.js'
import { closedPort, deadPid, look, names, writeLock } from './lock-files.ts'
import { Listener } from './sockets.ts'
import { CWD, folder, rejection, sleep } from './support.ts'

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
