import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Candidate, Connection } from '../../index.d.ts'
import { connectBest } from '../../index.js'
import { follow, Heard, ideServer } from './bridge.ts'
import { FakeEditor, initialized, notification, selectionChanged, snapshot } from './fake-editor.ts'
import { candidateOf, writeLock } from './lock-files.ts'
import { Process } from './processes.ts'
import { CLOSE, FrameReader, frame, Listener, PING, TEXT, upgrade } from './sockets.ts'
import { CWD, configure, environment, folder, ownHome, quiet, rejection, sleep, until } from './support.ts'

const file = (name: string) => `${CWD}/${name}`

/** Ways to be there and not to stay; each ends a socket some milliseconds after it came. */
const FLAPS: Record<string, [end: (socket: Socket) => void, words: RegExp]> = {
  'closes before the upgrade': [(socket) => socket.end(), /closed/],
  'resets before the upgrade': [(socket) => socket.resetAndDestroy(), /closed|broke|nothing answers/],
  'closes with 1000 after the handshake': [
    (socket) => socket.end(frame(CLOSE, Buffer.from([0x03, 0xe8]))),
    /closed by the editor \(code 1000\)/,
  ],
  'resets after the handshake': [(socket) => socket.resetAndDestroy(), /closed|broke/],
}

interface Flapping {
  connection: Connection
  candidate: Candidate
  heard: Heard
  /** When each socket came. */
  times: number[]
}

async function flapping(name: string): Promise<Flapping> {
  const [end] = FLAPS[name] as (typeof FLAPS)[string]
  const times: number[] = []
  const { port } = await Listener.open((socket) => {
    times.push(performance.now())
    const answered = name.includes('after')
      ? upgrade(socket).then(() => socket.write(frame(TEXT, initialized())))
      : Promise.resolve()
    void answered.then(() => setTimeout(() => end(socket), 20))
  })
  const lockFile = writeLock(folder(), { port, name: 'Flapping' })
  const candidate = await candidateOf(lockFile)
  const connection = await follow(dirname(lockFile))
  return { connection, candidate, heard: new Heard(connection), times }
}

test('an editor that never stays is tried with growing delays, told of once, and tried by hand', async () => {
  const names = Object.keys(FLAPS)
  const all = await Promise.all(names.map(flapping))
  // Tries at 0, 1, 3 and 7 s; one each second would be nine of them.
  await Promise.all(
    all.map(({ times }, i) => until(`four tries: ${names[i]}`, () => times.length >= 4, 12_000)),
  )
  await sleep(1000)
  for (const [i, { connection, heard, times }] of all.entries()) {
    const name = names[i] as string
    const [, words] = FLAPS[name] as (typeof FLAPS)[string]
    expect(times.length, name).toBeLessThanOrEqual(5)
    const gaps = times.slice(1).map((time, n) => time - (times[n] as number))
    expect(gaps, `${name}: the gaps grow`).toEqual([...gaps].sort((a, b) => a - b))
    expect(connection.state, name).toBe('waiting')
    expect(connection.message, name).toMatch(words)
    const told = heard.of('status').flatMap(({ message }) => message ?? [])
    expect(told, name).toEqual([expect.stringMatching(words)])
    expect(told[0], name).toContain('Flapping')
    expect(heard.types, name).not.toContain('closed')
    const logged = connection.log().filter(({ message }) => words.test(message))
    expect(logged.length, name).toBeGreaterThanOrEqual(1)
    expect(logged.length, name).toBeLessThanOrEqual(times.length)
  }
  for (const [i, { connection, candidate, times }] of all.entries()) {
    const before = times.length
    const outcome = await connection.switchTo(candidate).then(
      () => 'connected',
      ({ code }) => code,
    )
    expect(outcome).toMatch(names[i]?.includes('after') ? /^(connected|PIX_CLOSED)$/ : /^PIX_/)
    expect(times.length).toBeGreaterThan(before)
  }
})

test('a link that breaks the protocol is closed with its code, and made again', async () => {
  const broken: [number, Buffer][] = [
    [1002, frame(3, 'x')],
    [1002, frame(TEXT, 'x', { rsv: 4 })],
    [1007, frame(TEXT, Buffer.from([0xc3, 0x28]))],
    [1002, frame(PING, Buffer.alloc(200))],
  ]
  await Promise.all(
    broken.map(async ([code, bytes]) => {
      const readers: FrameReader[] = []
      const listener = await Listener.open((socket) => {
        void upgrade(socket).then(() => {
          readers.push(new FrameReader(socket))
          const isFirst = readers.length === 1
          socket.write(frame(TEXT, initialized()))
          if (isFirst) socket.write(bytes)
          socket.write(frame(TEXT, selectionChanged(snapshot(file(isFirst ? 'lost.ts' : 'valid.ts'), 1))))
        })
      })
      const connection = await follow(dirname(writeLock(folder(), { port: listener.port })))
      const heard = new Heard(connection)
      await heard.first('selection')
      const farewells = readers[0]?.frames.filter(({ opcode }) => opcode === CLOSE)
      expect(farewells?.map(({ payload }) => payload.readUInt16BE(0))).toEqual([code])
      expect(heard.of('selection').map((event) => event.snapshot.filePath)).toEqual([file('valid.ts')])
      expect([connection.message, listener.open]).toEqual([null, 1])
    }),
  )
})

const PI = `
  const connection = await addon.connectBest('${CWD}', { lockDir: args[0], keepAlive: true })
  connection.onEvent((event) => { if (event.type !== 'status') say([event.type, (event.snapshot ?? event.request)?.filePath]) })
  await until(() => connection.state === 'connected')
  say('ready')
  setInterval(() => {}, 1000)`

test('two pi in one workspace: both stay and hear selections, a mention and a fix go to one', async () => {
  const server = await ideServer()
  const pis = [1, 2].map(() => new Process(PI, { args: [dirname(server.lockFile)] }))
  await until('both', () => server.clients().length === 2)
  server.publish(snapshot(file('a.ts'), 1))
  const heard = (pi: Process, type: string, path: string) =>
    pi.said.some((said) => JSON.stringify(said) === JSON.stringify([type, path]))
  for (const pi of pis) await until('the selection', () => heard(pi, 'selection', file('a.ts')))
  const at = { line: 0, character: 0 }
  const range = { start: at, end: at }
  const mentionFor = server.mention(snapshot(file('m.ts'), 1))
  const fixFor = server.requestFix({
    filePath: file('f.ts'),
    triggerRange: range,
    diagnostics: [{ severity: 'error', message: 'm', range, selectedText: 't', contextLines: [] }],
  })
  for (const [type, path] of [
    ['mention', file('m.ts')],
    ['diagnosticFix', file('f.ts')],
  ] as const)
    await until(type, () => pis.some((pi) => heard(pi, type, path)))
  server.publish(snapshot(file('b.ts'), 1))
  for (const pi of pis) await until('the next selection', () => heard(pi, 'selection', file('b.ts')))
  for (const [type, path] of [
    ['mention', file('m.ts')],
    ['diagnosticFix', file('f.ts')],
  ] as const)
    expect(pis.filter((pi) => heard(pi, type, path))).toHaveLength(1)
  const ids = server.clients().map(({ id }) => id)
  expect(ids).toHaveLength(2)
  expect([ids.includes(mentionFor?.id ?? 0), ids.includes(fixFor?.id ?? 0)]).toEqual([true, true])
})

describe('keep-alive', () => {
  test('a frozen editor is given up, what it said is not injected, and the next one is taken', async () => {
    environment({ PI_X_IDE_PING_INTERVAL_MS: '200' })
    const lockDir = join(folder(), 'lock')
    const frozen = new Process(
      `const server = await addon.IdeServer.start({ ide: 'nvim', name: 'Frozen', workspaceFolders: ['${CWD}'], lockDir: args[0] })
       const at = { line: 0, character: 0 }
       server.publish({ filePath: '${file('stale.ts')}', ranges: [{ text: 'x', selection: { start: at, end: at } }] })
       say(server.lockFile)
       setInterval(() => {}, 1000)`,
      { args: [lockDir] },
    )
    await frozen.line()
    const connection = await follow(lockDir)
    const heard = new Heard(connection)
    await until('the selection', () => connection.latest()?.filePath === file('stale.ts'))
    expect(await connection.prepareContext()).not.toBeNull()
    frozen.child.kill('SIGSTOP')
    await until('the link to be given up', () => connection.state !== 'connected')
    expect([connection.latest(), connection.mentions(), connection.attachState]).toEqual([null, [], 'idle'])
    expect(await connection.prepareContext()).toBeNull()
    expect(connection.message).toMatch(/Frozen.*does not answer/)
    const server = await ideServer({ lockDir, name: 'Next', workspaceFolders: [CWD] })
    server.publish(snapshot(file('fresh.ts'), 1))
    await until('the next editor', () => connection.latest()?.filePath === file('fresh.ts'))
    expect([connection.server?.name, connection.message]).toEqual(['Next', null])
    expect((await connection.prepareContext())?.displayPath).toBe('fresh.ts')
    expect(heard.types).not.toContain('closed')
  })

  test('is a WebSocket ping, and what is not understood does not touch the selection', async () => {
    environment({ PI_X_IDE_PING_INTERVAL_MS: '100' })
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    const heard = new Heard(connection)
    let pings = 0
    editor.link.on('ping', () => {
      pings++
    })
    editor.send(selectionChanged(snapshot(file('a.ts'), 3)))
    await heard.first('selection')
    const before = [connection.latest(), connection.label(), connection.attachState]
    const nonsense = [
      notification('foo/bar', { filePath: file('b.ts') }),
      initialized(),
      initialized({ protocolVersion: 1, server: { name: 'Other' } }),
      notification('$/keepalive'),
    ]
    for (let i = 0; i < 3; i++) editor.send(...nonsense)
    editor.link.ping('theirs')
    await until('pings', () => pings >= 3)
    expect([connection.latest(), connection.label(), connection.attachState]).toEqual(before)
    expect(connection.server).toEqual({ name: 'Fake' })
    const context = await connection.prepareContext()
    expect(context?.displayPath).toBe('a.ts')
    if (context) connection.markInjected(context)
    editor.send(...nonsense)
    await quiet()
    expect([connection.attachState, await connection.prepareContext()]).toEqual(['sent', null])
    expect(heard.types).toEqual(['selection'])
    // Not one message was sent to keep the link alive.
    expect(editor.received.map((message) => JSON.parse(message).method)).toEqual(['initialize'])
  })
})

test('a pi that is killed while the user selects is dropped without a word, the others go on', async () => {
  const lockDir = join(folder(), 'lock')
  const editor = new Process(
    `const server = await addon.IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: ['${CWD}'], lockDir: args[0] })
     await until(() => server.clients().length === 2)
     const at = { line: 0, character: 0 }
     const selection = { start: at, end: at }
     say('selecting')
     let i = 0
     while (server.clients().length === 2 || i < 20) {
       server.publish({ filePath: '${CWD}/' + i++, ranges: [{ text: 'x'.repeat(10000), selection }] })
       server.mention({ filePath: '${CWD}/m', ranges: [] })
       await sleep(2)
     }
     server.publish({ filePath: '${file('last.ts')}', ranges: [] })
     await until(() => server.clients().length === 0)
     await server.close()
     say(i)`,
    { args: [lockDir] },
  )
  await until('the editor', () => {
    try {
      return readdirSync(lockDir).some((name) => name.endsWith('.lock'))
    } catch {
      return false
    }
  })
  const [victim, other] = [1, 2].map(() => new Process(PI, { args: [lockDir] })) as [Process, Process]
  await editor.line(0)
  victim.child.kill('SIGKILL')
  const isLast = (said: unknown) => JSON.stringify(said) === JSON.stringify(['selection', file('last.ts')])
  await until('the last selection', () => other.said.some(isLast))
  other.child.kill('SIGKILL')
  const { code, signal, stderr } = await editor.ended
  expect([code, signal, stderr]).toEqual([0, null, ''])
  expect(editor.said).toEqual(['selecting', expect.any(Number)])
})

test('failures change nothing that is saved, and the next start connects', async () => {
  const home = ownHome()
  const config = configure(home, { share: 'full', icons: 'ascii' })
  const lockDir = folder()
  const silent = await Listener.open()
  const lockFile = writeLock(lockDir, { port: silent.port })
  const saved = () => readdirSync(home, { recursive: true, encoding: 'utf8' }).sort()
  const before = [saved(), readFileSync(config, 'utf8')]
  const failed = await rejection(connectBest(CWD, { lockDir, timeoutMs: 150 }))
  expect([failed.cause].flat()).toMatchObject([{ code: 'PIX_TIMEOUT' }])
  const connection = await connectBest(CWD, { lockDir, keepAlive: true, timeoutMs: 150 })
  await until('failures', () => (connection as Connection).log().length > 0)
  await connection?.close()
  expect([saved(), readFileSync(config, 'utf8')]).toEqual(before)
  const editor = await FakeEditor.start({ lockDir })
  writeLock(lockDir, { port: editor.port }, { name: lockFile.split('/').at(-1) ?? '' })
  const restarted = await follow(lockDir)
  await until('connected', () => restarted.state === 'connected')
})

/** A server on one port that goes down and comes up again, and answers its clients more or less. */
class Flapper {
  port = 0
  accepted = 0
  #server: Server | undefined
  #sockets = new Set<Socket>()

  async up(): Promise<void> {
    const server = createServer((socket) => {
      const turn = this.accepted++ % 3
      this.#sockets.add(socket)
      socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket))
      if (turn === 0) return void socket.resume()
      const answer = () => {
        if (turn === 2 && socket.writable) socket.write(frame(TEXT, initialized()))
        socket.resume()
      }
      // A client that changes its mind ends its request in the middle.
      upgrade(socket).then(answer, () => {})
    })
    server.listen(this.port, '127.0.0.1')
    await once(server, 'listening')
    this.#server = server
    this.port = (server.address() as { port: number }).port
  }

  down(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    return new Promise((resolve) => this.#server?.close(() => resolve()))
  }

  /** Sockets that the kernel holds established towards it. */
  get established(): number {
    const port = this.port.toString(16).toUpperCase().padStart(4, '0')
    const table = readFileSync('/proc/self/net/tcp', 'utf8')
    return [...table.matchAll(/^ *\d+: [0-9A-F]+:[0-9A-F]+ [0-9A-F]+:([0-9A-F]+) 01 /gm)].filter(
      ([, remote]) => remote === port,
    ).length
  }
}

test.skipIf(process.platform !== 'linux')(
  'a server that flaps while the user presses on has one socket at most, and none in the end',
  async () => {
    const server = new Flapper()
    await server.up()
    onTestFinished(() => server.down())
    const lockFile = writeLock(folder(), { port: server.port })
    const candidate = await candidateOf(lockFile)
    await until('the probe to be gone', () => server.established === 0)
    const connection = await follow(dirname(lockFile))
    let most = 1
    const timer = setInterval(() => {
      if (server.established <= most) return
      // A loop that was held up hears of new sockets before it hears of the end of old ones.
      setImmediate(() =>
        setImmediate(() => {
          most = Math.max(most, server.established)
        }),
      )
    }, 1)
    for (let round = 0; round < 20; round++) {
      for (let press = 0; press < 3; press++) {
        connection.switchTo(candidate).catch(() => {})
        await sleep(8)
      }
      await server.down()
      await sleep(5)
      await server.up()
    }
    clearInterval(timer)
    expect(most).toBe(1)
    // The end comes while a connection is being made.
    const last = rejection(connection.switchTo(candidate)).catch(() => {})
    await connection.close()
    await last
    await until('no socket', () => server.established === 0)
    await quiet() // what was made before may be accepted now
    const made = server.accepted
    expect(made).toBeGreaterThan(5)
    await sleep(1500)
    expect([server.accepted, server.established]).toEqual([made, 0])
    // And so it is for connections that are closed as soon as they were asked for.
    for (let i = 0; i < 20; i++) {
      const short = await follow(dirname(lockFile))
      await sleep(i % 4)
      await short.close()
    }
    await until('no socket', () => server.established === 0)
    await quiet()
    const closed = server.accepted
    await sleep(1500)
    expect([server.accepted, server.established]).toEqual([closed, 0])
  },
)
