import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Connection } from '../../index.d.ts'
import { connectBest, discover } from '../../index.js'
import { closedAfterwards, Heard, ideServer } from './bridge.ts'
import { FakeEditor, snapshot } from './fake-editor.ts'
import { candidateOf, writeLock } from './lock-files.ts'
import { lines, Process, run } from './processes.ts'
import { CWD, folder, until } from './support.ts'

/** Counts the turns of the event loop until a promise is settled. */
async function turnsDuring(promise: Promise<unknown>): Promise<number> {
  let turns = 0
  let isDone = false
  const turn = () => {
    turns++
    if (!isDone) setImmediate(turn)
  }
  setImmediate(turn)
  await promise.finally(() => {
    isDone = true
  })
  return turns
}

describe('the event loop', () => {
  test('keeps turning while 1,000 lock files are read and 200 selections a second arrive', async () => {
    const lockDir = join(folder(), 'lock')
    const editor = new Process(
      `const server = await addon.IdeServer.start({ ide: 'nvim', name: 'busy', workspaceFolders: ['${CWD}'], lockDir: args[0] })
       say(1)
       await until(() => server.clients().length === 1)
       const selection = { start: { line: 0, character: 0 }, end: { line: 99, character: 0 } }
       const text = 'x'.repeat(4096)
       let n = 0
       setInterval(() => server.publish({ filePath: '${CWD}/' + ++n, ranges: [{ text, selection }] }), 5)`,
      { args: [lockDir] },
    )
    await editor.line()
    const connection = closedAfterwards((await connectBest(CWD, { lockDir })) as Connection)
    const heard = new Heard(connection)
    for (let i = 1; i <= 1000; i++) writeLock(lockDir, { port: i }, { name: `x-${i}-${i}.lock` })
    await heard.first('selection')
    for (let round = 0; round < 5; round++) {
      const before = heard.events.length
      const scan = discover(CWD, { lockDir, all: true })
      expect(await turnsDuring(scan)).toBeGreaterThan(20)
      expect(await scan).toHaveLength(1001)
      await until('more selections', () => heard.events.length > before)
    }
    const shown = heard.of('selection').map(({ snapshot }) => Number(snapshot.filePath.slice(CWD.length + 1)))
    expect(shown).toEqual([...shown].sort((a, b) => a - b))
  })

  test('keeps turning while everything waits', async () => {
    const editor = await FakeEditor.start({ answer: null })
    const waits = [
      editor.connect({ timeoutMs: 200 }).catch(() => {}),
      connectBest(CWD, { lockDir: editor.lockDir, timeoutMs: 200 }).catch(() => {}),
    ]
    for (const turns of await Promise.all(waits.map(turnsDuring))) expect(turns).toBeGreaterThan(20)
    for (let i = 0; i < 5; i++)
      expect(await turnsDuring(ideServer().then((server) => server.close()))).toBeGreaterThan(1)
  })

  test('is not filled by selections: those that are superseded are never delivered', async () => {
    const server = await ideServer()
    const connection = closedAfterwards(
      (await connectBest(CWD, { lockDir: dirname(server.lockFile) })) as Connection,
    )
    const heard = new Heard(connection)
    for (let i = 1; i <= 2000; i++) server.publish(snapshot(`${CWD}/${i}`, 1))
    await until('the last one', () => heard.of('selection').at(-1)?.snapshot.filePath === `${CWD}/2000`)
    expect(heard.events.length).toBeLessThan(1000)
  })
})

describe('what is left behind', () => {
  /** Counts of this process, without the threads and files that Node.js itself starts when it likes. */
  const COUNT = `
    const { readdirSync, readFileSync } = require('node:fs')
    const threads = () => readdirSync('/proc/self/task').map((id) => { try { return readFileSync('/proc/self/task/' + id + '/comm', 'utf8').trim() } catch { return '' } })
      .filter((name) => /pi-x-ide|notify|tokio/.test(name)).sort()
    const fds = () => readdirSync('/proc/self/fd').length
    // Threads of the blocking pool are kept for 5 s.
    const settled = async (wanted) => {
      const end = Date.now() + 15000
      while (Date.now() < end && !wanted()) await sleep(50)
      return { threads: threads(), fds: fds() }
    }`

  /** What a process has before and after it has done its work often. */
  async function beforeAndAfter(work: string, often: string, args: unknown[]) {
    const { stdout, stderr, code } = await run(
      `${COUNT}
       ${work}
       await sleep(300)
       const before = fds()
       ${often}
       say([before, await settled(() => threads().length <= 1 && fds() <= before)])
       process.exit(0)`,
      { args, ms: 60_000 },
    )
    expect([code, stderr]).toEqual([0, ''])
    return JSON.parse(stdout)
  }

  // Both at once, since most of their time is the pool's.
  test.skipIf(process.platform !== 'linux')(
    'no thread and no descriptor, of connections that were closed, of servers, and of attempts that failed',
    async () => {
      const server = await ideServer()
      const silent = await FakeEditor.start({ answer: null })
      const connections = beforeAndAfter(
        `const [candidate, lockDir] = args
         const cycle = async () => {
           const connection = await addon.connect(candidate, { cwd: '${CWD}' })
           connection.onEvent(() => {})
           await connection.prepareContext()
           await connection.close()
         }
         const follow = async () => {
           const connection = await addon.connectBest('${CWD}', { lockDir, keepAlive: true })
           connection.onEvent(() => {})
           await until(() => connection.state === 'connected')
           await connection.close()
         }
         await cycle()
         await follow()`,
        `for (let i = 0; i < 50; i++) await cycle()
         for (let i = 0; i < 20; i++) await follow()
         await Promise.all(Array.from({ length: 20 }, follow))`,
        [await candidateOf(server.lockFile), dirname(server.lockFile)],
      )
      const others = beforeAndAfter(
        `const [lockDir, silent] = args
         const work = async () => {
           const server = await addon.IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: ['${CWD}'], lockDir })
           const connection = await addon.connectBest('${CWD}', { lockDir })
           for (let i = 0; i < 10; i++) connection.onEvent(() => {})()
           server.publish({ filePath: '${CWD}/a', ranges: [] })
           await server.close()
           await until(() => connection.state === 'closed')
           await connection.close()
           const [candidate] = await addon.discover('${CWD}', { lockDir: silent })
           await addon.connect(candidate, { timeoutMs: 20 }).catch(() => {})
           const controller = new AbortController()
           const aborted = addon.connect(candidate, { signal: controller.signal }).catch(() => {})
           controller.abort()
           await aborted
         }
         await work()`,
        'for (let i = 0; i < 20; i++) await work()',
        [join(folder(), 'lock'), silent.lockDir],
      )
      // Without the pool's threads there is one of the addon's left: its worker.
      for (const [fds, after] of await Promise.all([connections, others]))
        expect(after).toEqual({ fds, threads: ['pi-x-ide'] })
      await until('no client', () => server.clients().length === 0)
    },
    60_000,
  )

  test.skipIf(process.platform !== 'linux')('no thread is there before the first use', async () => {
    const { stdout } = await run(
      `${COUNT}
       addon.formatMention({ filePath: '/w/a', ranges: [] }, '/w')
       addon.truncateToWidth('x', 1)
       say(threads())`,
    )
    expect(stdout).toBe('[]\n')
  })

  test('memory stays flat over many events and listeners', async () => {
    const editor = await FakeEditor.start()
    const { stdout, code } = await run(
      `const lockDir = args[0]
       const server = await addon.IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: ['/x'], lockDir })
       const connection = await addon.connectBest('/x', { lockDir })
       const selection = { start: { line: 0, character: 0 }, end: { line: 99, character: 0 } }
       let heard = 0
       const burst = async (count) => {
         for (let i = 0; i < count; i++) {
           const unsubscribe = connection.onEvent(({ type }) => { if (type === 'mention') heard++ })
           const target = heard + 1
           server.publish({ filePath: '/x/a' + i, ranges: [{ text: 'y'.repeat(20000), selection }] })
           server.mention({ filePath: '/x/b' + i, ranges: [{ text: 'y'.repeat(20000), selection }] })
           await new Promise((resolve) => { const look = () => heard >= target ? resolve() : setImmediate(look); look() })
           await connection.prepareContext()
           unsubscribe()
         }
       }
       const rss = async () => { gc(); await sleep(50); gc(); return process.memoryUsage().rss }
       await burst(300)
       const before = await rss()
       await burst(1000)
       say((await rss()) - before < 40e6 ? 'flat' : 'grows')
       process.exit(0)`,
      { args: [join(folder(), 'lock'), editor.lockDir], flags: ['--expose-gc'] },
    )
    expect([stdout, code]).toEqual(['"flat"\n', 0])
  })
})

describe('worker threads', () => {
  /** The script of a worker that uses the addon in every way. */
  const WORKER = `
    const { parentPort, workerData } = require('node:worker_threads')
    const addon = require(workerData.addon)
    const { candidate, lockDir } = workerData
    ;(async () => {
      const found = await addon.discover('${CWD}', { lockDir })
      const connection = await addon.connect(candidate, { cwd: '${CWD}' })
      const unsubscribe = connection.onEvent(() => {})
      const followed = await addon.connectBest('${CWD}', { lockDir, keepAlive: true })
      followed.onEvent(() => {})
      const context = await followed.prepareContext({ waitMs: 10000 })
      globalThis.kept = [connection, followed]
      if (workerData.polite) { await followed.close(); await connection.close() }
      parentPort.postMessage({ found: found.length, state: connection.state, file: context?.displayPath })
      if (workerData.stays) setInterval(() => {}, 1000)
    })()`

  const PARENT = (body: string) => `
    const { Worker } = require('node:worker_threads')
    const { once } = require('node:events')
    const [candidate, lockDir] = args
    const start = (data) => {
      const worker = new Worker(${JSON.stringify(WORKER)}, { eval: true, workerData: { addon: process.env.PIX_ADDON, candidate, lockDir, ...data } })
      const failed = once(worker, 'error').then(([error]) => Promise.reject(error))
      const message = Promise.race([once(worker, 'message').then(([message]) => message), failed])
      failed.catch(() => {})
      return { worker, message, exit: once(worker, 'exit').then(([code]) => code) }
    }
    ${body}`
  const said = { found: 1, file: 'a.ts' }

  async function inWorkers(body: string, lazy = false) {
    const server = await ideServer()
    server.publish(snapshot(`${CWD}/a.ts`, 1))
    const lockDir = dirname(server.lockFile)
    const ended = await run(PARENT(body), { args: [await candidateOf(server.lockFile), lockDir], lazy })
    await until('no client', () => server.clients().length === 0)
    expect(readdirSync(lockDir)).toHaveLength(1)
    return ended
  }

  test.each([
    ['has loaded it', false],
    ['has not loaded it', true],
  ])('five one after another, each to its end, under a parent that %s', async (_, lazy) => {
    const ended = await inWorkers(
      `for (let i = 0; i < 5; i++) {
         const { message, exit } = start({ polite: true })
         say({ ...(await message), exit: await exit })
       }
       say((await require(process.env.PIX_ADDON).discover('${CWD}', { lockDir })).length)`,
      lazy,
    )
    expect([ended.code, ended.signal, ended.stderr]).toEqual([0, null, ''])
    expect(lines(ended)).toEqual([...Array(5).fill({ ...said, state: 'closed', exit: 0 }), 1])
  })

  test('five at once, each to its end, though their connections are open', async () => {
    const ended = await inWorkers(
      `const workers = Array.from({ length: 5 }, () => start({}))
       for (const { message, exit } of workers) say({ ...(await message), exit: await exit })`,
    )
    expect([ended.code, ended.signal, ended.stderr]).toEqual([0, null, ''])
    expect(lines(ended)).toEqual(Array(5).fill({ ...said, state: 'connected', exit: 0 }))
  })

  test('one that is terminated with open connections lets go of them, and the process goes on', async () => {
    const server = await ideServer()
    server.publish(snapshot(`${CWD}/a.ts`, 1))
    const lockDir = dirname(server.lockFile)
    const parent = new Process(
      PARENT(`
        for (let i = 0; i < 3; i++) {
          const { worker, message } = start({ stays: true })
          say(await message)
          say(await worker.terminate())
        }
        const connection = await addon.connect(candidate, { cwd: '${CWD}' })
        say((await connection.prepareContext({ waitMs: 10000 })).displayPath)
        await until(() => false)`),
      { args: [await candidateOf(server.lockFile), lockDir] },
    )
    for (let i = 0; i < 3; i++) {
      expect(await parent.line(2 * i)).toEqual({ ...said, state: 'connected' })
      expect(await parent.line(2 * i + 1)).toBe(1)
    }
    expect(await parent.line(6)).toBe('a.ts')
    await until('only the client of the main thread', () => server.clients().length === 1)
    const followed = closedAfterwards(await connectBest(CWD, { lockDir }))
    expect(followed?.state).toBe('connected')
  })

  test('one that is terminated in the middle of a storm does not take the process along', async () => {
    const ended = await inWorkers(
      `const storm = \`
         const { workerData } = require('node:worker_threads')
         const addon = require(workerData.addon)
         const { candidate, lockDir } = workerData
         const go = async () => { for (;;) {
           await Promise.all([
             addon.discover('${CWD}', { lockDir }),
             addon.connect(candidate).then((c) => { c.onEvent(() => {}); return c.close() }).catch(() => {}),
             addon.connectBest('${CWD}', { lockDir, keepAlive: true }).then((c) => c.onEvent(() => {})),
             addon.IdeServer.start({ ide: 'storm', name: 'x', workspaceFolders: [], lockDir: lockDir + '/storm' }),
           ])
         } }
         go()\`
       for (let i = 0; i < 8; i++) {
         const worker = new Worker(storm, { eval: true, workerData: { addon: process.env.PIX_ADDON, candidate, lockDir } })
         await sleep(20 + i * 20)
         await worker.terminate()
       }
       say((await addon.discover('${CWD}', { lockDir })).length)
       require('node:fs').rmSync(lockDir + '/storm', { recursive: true, force: true })
       process.exit(0)`,
    )
    expect([ended.code, ended.signal, ended.stderr]).toEqual([0, null, ''])
    expect(lines(ended)).toEqual([1])
  })
})

describe('the environment', () => {
  test('may change while the addon works', async () => {
    // A program that sets variables must not be able to crash itself by that. Three tries, since it would be chance.
    const tries = Array.from({ length: 3 }, () =>
      run(
        `let isDone = false
         const work = async () => { while (!isDone) await addon.discover('/w', { lockDir: args[0] }) }
         const working = Array.from({ length: 8 }, work)
         let n = 0
         const end = Date.now() + 1500
         while (Date.now() < end) {
           for (let i = 0; i < 50; i++) {
             const k = n++ % 400
             process.env['PIX_TEST_' + k] = 'x'.repeat(n % 2 ? 5000 : 50)
             if (n % 2) delete process.env['PIX_TEST_' + (k * 7) % 400]
           }
           await new Promise(setImmediate)
         }
         isDone = true
         await Promise.all(working)`,
        { args: [folder()] },
      ),
    )
    for (const { code, signal } of await Promise.all(tries)) expect([code, signal]).toEqual([0, null])
  })
})
