import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Connection, connectBest } from '../../index.js'
import { closedAfterwards, Heard, ideServer } from './bridge.ts'
import { FakeEditor, selectionChanged, snapshot } from './fake-editor.ts'
import { candidateAt, closedPort, expectNoToken, writeLock } from './lock-files.ts'
import { CWD, folder, quiet, rejection, removeBusy, sleep, until } from './support.ts'

describe('keepAlive', () => {
  async function follow(lockDir: string) {
    const connection = closedAfterwards(await connectBest(CWD, { lockDir, keepAlive: true }))
    if (!connection) throw new Error('null')
    return { connection, heard: new Heard(connection) }
  }

  test('is never null: it searches, finds an editor that comes, and searches again when it leaves', async () => {
    const lockDir = join(folder(), 'not/there/yet')
    const { connection, heard } = await follow(lockDir)
    await until('searching', () => connection.state === 'searching')
    expect(connection.candidate).toBeNull()
    for (const name of ['first', 'second']) {
      const server = await ideServer({ lockDir, name })
      server.publish(snapshot(`${CWD}/${name}.ts`))
      await until(name, () => connection.latest()?.filePath.endsWith(`${name}.ts`))
      expect([connection.state, connection.server?.name, connection.candidate?.name]).toEqual([
        'connected',
        name,
        name,
      ])
      await server.close()
      await until('searching again', () => connection.state === 'searching')
      expect([connection.latest(), connection.server, connection.attachState]).toEqual([null, null, 'idle'])
    }
    // A state may be asked for before its event is here; the end comes after all events.
    await connection.close()
    expect(heard.types.at(-1)).toBe('closed')
    const states = heard.of('status').map(({ state, server }) => (server ? server.name : state))
    expect(states.filter((state) => state !== 'connecting').slice(-5)).toEqual([
      'first',
      'searching',
      'second',
      'searching',
      'closed',
    ])
  })

  test('goes to the next window of the folder when the first one ends', async () => {
    const first = await ideServer({ name: 'first' })
    const lockDir = dirname(first.lockFile)
    const { connection } = await follow(lockDir)
    await until('first', () => connection.server?.name === 'first')
    await ideServer({ name: 'second', workspaceFolders: ['/w'], lockDir })
    await first.close()
    await until('second', () => connection.server?.name === 'second')
  })

  test('finds an editor that appears while another one does not answer', async () => {
    const lockDir = folder()
    writeLock(lockDir, { name: 'dead', port: await closedPort() })
    const { connection } = await follow(lockDir)
    await until('waiting', () => connection.state === 'waiting')
    expect(connection.candidate?.name).toBe('dead')
    await FakeEditor.start({ lock: { name: 'alive', workspaceFolders: ['/w'] }, lockDir })
    await until('alive', () => connection.state === 'connected')
    expect(connection.candidate?.name).toBe('alive')
  })

  test('finds editors in a lock folder that was removed and made again', async () => {
    const parent = folder()
    const lockDir = join(parent, 'lock')
    const { connection } = await follow(lockDir)
    await until('searching', () => connection.state === 'searching')
    for (const name of ['first', 'second', 'third']) {
      const server = await ideServer({ lockDir, name })
      await until(name, () => connection.server?.name === name)
      await server.close()
      removeBusy(lockDir)
      await until('searching', () => connection.state === 'searching')
    }
  })

  test('tries again with growing delays, and tells the user once when editors do not answer, one or several', async () => {
    const counts = [1, 2, 3]
    const all = await Promise.all(
      counts.map(async (editors) => {
        const lockDir = folder()
        for (let i = 0; i < editors; i++)
          writeLock(lockDir, { name: `dead ${i}`, port: await closedPort() }, { name: `${i}.lock` })
        return await follow(lockDir)
      }),
    )
    // One that answers and hangs up at once must not reset the delays.
    const flapping = await FakeEditor.start({ onReady: (link) => setTimeout(() => link.close(), 20) })
    const start = Date.now()
    await follow(flapping.lockDir)
    const told = () => all.map(({ heard }) => heard.of('status').flatMap(({ message }) => message ?? []))
    await until('word of each', () => told().every((messages) => messages.length > 0), 10_000).catch(() => {})
    // Tries at 0, 1 and 3 s; the next one comes at 7 s.
    await sleep(400)
    const { length } = flapping.links
    expect(length).toBeLessThanOrEqual(Date.now() - start < 6500 ? 3 : 4)
    expect(told()).toEqual(counts.map(() => [expect.stringContaining('dead')]))
  })

  test('holds one socket at most while an editor comes and goes and the user presses on', async () => {
    const editor = await FakeEditor.start({
      onReady: (link) => setTimeout(() => link.close(), Math.random() * 20),
    })
    const candidate = await editor.candidate
    const { connection } = await follow(editor.lockDir)
    let most = 0
    const timer = setInterval(() => {
      most = Math.max(most, editor.open)
    }, 1)
    for (let i = 0; i < 20; i++) {
      connection.switchTo(candidate).catch(() => {})
      await sleep(10)
    }
    clearInterval(timer)
    expect(most).toBe(1)
    await connection.close()
    await until('all links to be closed', () => editor.open === 0)
    const made = editor.links.length
    await sleep(1200)
    expect(editor.links).toHaveLength(made)
  })
})

describe('switchTo', () => {
  test('leaves the present editor and takes the other one, whatever its folder', async () => {
    const [one, other] = [
      await FakeEditor.start(),
      await FakeEditor.start({ lock: { workspaceFolders: ['/elsewhere'] } }),
    ]
    const connection = await one.connect()
    const heard = new Heard(connection)
    one.send(selectionChanged(snapshot(`${CWD}/a.ts`)))
    await heard.first('selection')
    await connection.switchTo(await other.candidate)
    expect([connection.state, connection.candidate?.id, connection.latest()]).toEqual([
      'connected',
      other.lockFile,
      null,
    ])
    await until('the first link to be closed', () => one.open === 0)
    other.send(selectionChanged(snapshot('/elsewhere/b.ts')))
    await until('the other selection', () => connection.latest()?.filePath === '/elsewhere/b.ts')
    expect(heard.types).not.toContain('closed')
    expect([one.links.length, other.links.length]).toEqual([1, 1])
  })

  test('rejects as connect does, and a connection that follows goes back', async () => {
    const editor = await FakeEditor.start()
    const dead = await candidateAt(await closedPort())
    const connection = closedAfterwards(await connectBest(CWD, { lockDir: editor.lockDir, keepAlive: true }))
    await until('connected', () => connection?.state === 'connected')
    const error = await rejection((connection as Connection).switchTo(dead))
    expect(error.code).toBe('PIX_UNREACHABLE')
    expectNoToken(error)
    await until('connected again', () => connection?.state === 'connected')
    expect(connection?.candidate?.id).toBe(editor.lockFile)
  })

  test('of several at once the last one counts, and the others say so', async () => {
    const [one, other] = [await FakeEditor.start(), await FakeEditor.start()]
    const silent = await FakeEditor.start({ answer: null })
    const connection = await one.connect()
    const superseded = [
      rejection(connection.switchTo(await silent.candidate)),
      rejection(connection.switchTo(await silent.candidate)),
    ]
    await connection.switchTo(await other.candidate)
    for (const error of await Promise.all(superseded)) expect(error.code).toBe('PIX_SUPERSEDED')
    expect([connection.state, connection.candidate?.id]).toEqual(['connected', other.lockFile])
    await until('the others to be closed', () => one.open === 0 && silent.open === 0)
    const last = rejection(connection.switchTo(await silent.candidate))
    await connection.close()
    expect((await last).code).toMatch(/^PIX_(SUPERSEDED|CLOSED|NOT_USABLE)$/)
  })

  test('a closed connection does not open again', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    await connection.close()
    expect((await rejection(connection.switchTo(await editor.candidate))).code).toMatch(/^PIX_/)
    await quiet()
    expect(editor.links).toHaveLength(1)
    expect(connection.state).toBe('closed')
  })
})
