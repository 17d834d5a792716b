import { existsSync, readdirSync } from 'node:fs'
import { connect as dial } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { connectBest, discover } from '../../index.js'
import { closedAfterwards, Heard, ideServer } from './bridge.ts'
import { Client, join_ } from './fake-client.ts'
import { snapshot } from './fake-editor.ts'
import { expectNoToken } from './lock-files.ts'
import { Process, run } from './processes.ts'
import { CWD, folder, quiet, sleep, until } from './support.ts'

const file = (name: string) => `${CWD}/${name}`

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
