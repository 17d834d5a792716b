import { getEventListeners } from 'node:events'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { connect, connectBest } from '../../index.js'
import { closedAfterwards } from './bridge.ts'
import { FakeEditor } from './fake-editor.ts'
import { candidateAt, closedPort, expectNoToken, writeLock } from './lock-files.ts'
import { Listener } from './sockets.ts'
import { CWD, folder, quiet, rejection, until } from './support.ts'

describe('connectBest', () => {
  test('gives null where no editor has the folder open, and dials nobody', async () => {
    const editor = await FakeEditor.start({
      lock: { workspaceFolders: ['/elsewhere', `${CWD}/packages/web`, '/'] },
    })
    expect(await connectBest(CWD, { lockDir: editor.lockDir })).toBeNull()
    expect(await connectBest(CWD, { lockDir: folder() })).toBeNull()
    expect(editor.links).toHaveLength(0)
  })

  test('takes the best one and no other', async () => {
    const near = await FakeEditor.start({ lock: { name: 'near' } })
    const far = await FakeEditor.start({
      lock: { name: 'far', workspaceFolders: ['/w'] },
      lockDir: near.lockDir,
    })
    const connection = closedAfterwards(await connectBest(CWD, { lockDir: near.lockDir }))
    expect(connection?.candidate?.name).toBe('near')
    expect([near.links.length, far.links.length]).toEqual([1, 0])
  })

  test('takes the next one where the best cannot be reached', async () => {
    const lockDir = folder()
    writeLock(lockDir, { name: 'dead', port: await closedPort() })
    const silent = await Listener.open()
    writeLock(lockDir, { name: 'silent', port: silent.port, workspaceFolders: [CWD] })
    const editor = await FakeEditor.start({ lock: { name: 'alive', workspaceFolders: ['/w'] }, lockDir })
    const connection = closedAfterwards(await connectBest(CWD, { lockDir, timeoutMs: 300 }))
    expect(connection?.candidate?.name).toBe('alive')
    expect(connection?.state).toBe('connected')
    expect(editor.links).toHaveLength(1)
    expect(silent.open).toBe(0)
  })

  test('rejects with a cause per editor when all fail', async () => {
    const lockDir = folder()
    writeLock(lockDir, { name: 'nobody', port: await closedPort() })
    const { port } = await Listener.open((socket) => socket.end())
    writeLock(lockDir, { name: 'hangs up', port, workspaceFolders: ['/w'] })
    writeLock(lockDir, { name: 'of another folder', port: 1, workspaceFolders: ['/x'] })
    const error = await rejection(connectBest(CWD, { lockDir }))
    expect(error.code).toBe('PIX_UNREACHABLE')
    expect(error.message).toMatch(/nobody.*hangs up/)
    const causes = error.cause as (Error & { code: string })[]
    expect(causes.map(({ code }) => code)).toEqual(['PIX_UNREACHABLE', 'PIX_CLOSED'])
    for (const [i, name] of ['nobody', 'hangs up'].entries()) {
      expect(causes[i]).toBeInstanceOf(Error)
      expect(causes[i]?.message).toContain(name)
    }
    expectNoToken(error)
  })

  test('rejects with the one cause when one fails', async () => {
    const lockDir = folder()
    writeLock(lockDir, { port: await closedPort() })
    const error = await rejection(connectBest(CWD, { lockDir }))
    expect(error.code).toBe('PIX_UNREACHABLE')
    const causes = [error.cause].flat() as (Error & { code: string })[]
    expect(causes.map(({ code }) => code)).toEqual(['PIX_UNREACHABLE'])
  })

  test('a relative folder is refused', async () => {
    expect((await rejection(connectBest('app'))).code).toBe('PIX_INVALID_ARGUMENT')
    expect((await rejection(connectBest(CWD, { lockDir: 'lock', keepAlive: true }))).code).toBe(
      'PIX_INVALID_ARGUMENT',
    )
  })
})

describe('abort', () => {
  test('before: rejects with the reason and dials nobody', async () => {
    const listener = await Listener.open()
    const reason = new Error('enough')
    const signal = AbortSignal.abort(reason)
    expect(await rejection(connect(await candidateAt(listener.port), { signal }))).toBe(reason)
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    expect(listener.open).toBe(0)
  })

  test.each(['connect', 'connectBest'] as const)(
    'during %s: rejects with the reason, closes the socket, leaves no listener',
    async (name) => {
      const listener = await Listener.open()
      const candidate = await candidateAt(listener.port)
      const controller = new AbortController()
      const { signal } = controller
      const attempt =
        name === 'connect'
          ? connect(candidate, { signal })
          : connectBest(CWD, { lockDir: dirname(candidate.id), signal })
      const outcome = rejection(attempt)
      await until('the socket', () => listener.accepted.length === 1)
      expect(getEventListeners(signal, 'abort')).toHaveLength(1)
      const reason = { any: 'object' }
      controller.abort(reason)
      expect(await outcome).toBe(reason)
      expect(getEventListeners(signal, 'abort')).toHaveLength(0)
      await until('the socket to be closed', () => listener.open === 0)
      expect(listener.accepted).toHaveLength(1)
    },
  )

  test('afterwards: changes nothing, and no listener stays in any outcome', async () => {
    const editor = await FakeEditor.start()
    const controller = new AbortController()
    const { signal } = controller
    const connection = await editor.connect({ signal })
    await rejection(connect(await candidateAt(await closedPort()), { signal }))
    await rejection(connect(await editor.candidate, { signal, timeoutMs: -1 }))
    const followed = closedAfterwards(await connectBest(CWD, { lockDir: folder(), keepAlive: true, signal }))
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
    controller.abort()
    await quiet()
    expect([connection.state, followed?.state]).toEqual(['connected', 'searching'])
  })
})

test('connections that are dropped while they are made leave no socket', async () => {
  const listener = await Listener.open()
  const candidate = await candidateAt(listener.port)
  const attempts = Array.from({ length: 20 }, () => rejection(connect(candidate, { timeoutMs: 100 })))
  for (const error of await Promise.all(attempts)) expect(error.code).toBe('PIX_TIMEOUT')
  await until('all sockets to be closed', () => listener.open === 0)
  expect(listener.accepted).toHaveLength(20)
})
