import type { Socket } from 'node:net'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Connection } from '../../index.d.ts'
import { connect } from '../../index.js'
import { closedAfterwards, Heard } from './bridge.ts'
import {
  cleared,
  initialized,
  mentioned,
  notification,
  request,
  selectionChanged,
  snapshot,
} from './fake-editor.ts'
import { candidateOf, writeLock } from './lock-files.ts'
import { Process } from './processes.ts'
import { BINARY, CLOSE, FrameReader, frame, Listener, PING, PONG, TEXT, upgrade } from './sockets.ts'
import { CWD, folder, quiet, until } from './support.ts'

const MIB = 1024 * 1024

/** An editor whose bytes are written by hand, and a connection to it. */
interface Wire {
  socket: Socket
  sent: FrameReader
  connection: Connection
  heard: Heard
  write: (...frames: (string | Buffer)[]) => void
  /** Waits until a valid selection has come through. */
  works: () => Promise<void>
}

let wire: Wire
let serial = 0

beforeEach(async () => {
  let sent: FrameReader | undefined
  const listener = await Listener.open((socket) => {
    void upgrade(socket).then(() => {
      const reader = new FrameReader(socket)
      sent = reader
      socket.on('data', () => {
        if (reader.frames.some(({ opcode }) => opcode === CLOSE)) socket.end(frame(CLOSE))
      })
      socket.write(frame(TEXT, initialized()))
    })
  })
  const candidate = await candidateOf(writeLock(folder(), { port: listener.port }))
  const connection = closedAfterwards(await connect(candidate, { cwd: CWD }))
  const heard = new Heard(connection)
  const [socket] = listener.accepted
  if (!socket || !sent) throw new Error('no socket')
  const write = (...frames: (string | Buffer)[]) => {
    for (const one of frames) socket.write(typeof one === 'string' ? frame(TEXT, one) : one)
  }
  const works = async () => {
    const file = `${CWD}/valid${++serial}.ts`
    write(selectionChanged(snapshot(file, 1)))
    await until('a valid selection', () => heard.of('selection').at(-1)?.snapshot.filePath === file)
    expect(connection.latest()?.filePath).toBe(file)
    expect(connection.state).toBe('connected')
  }
  wire = { socket, sent, connection, heard, write, works }
})

describe('what breaks the protocol ends the connection with a reason', () => {
  const text = Buffer.from(selectionChanged(snapshot(`${CWD}/never.ts`, 1)))
  const close = (code: number, reason = '') => {
    const payload = Buffer.alloc(2)
    payload.writeUInt16BE(code)
    return frame(CLOSE, Buffer.concat([payload, Buffer.from(reason)]))
  }

  const broken: Record<string, () => Buffer[]> = {
    'a text that is no UTF-8': () => [frame(TEXT, Buffer.concat([text, Buffer.from([0xff, 0xfe])]))],
    'a text that ends within a character': () => [frame(TEXT, Buffer.from([0xe2, 0x82]))],
    'a text with an encoded surrogate': () => [frame(TEXT, Buffer.from([0xed, 0xa0, 0x80]))],
    'the first reserved bit': () => [frame(TEXT, text, { rsv: 4 })],
    'the second reserved bit': () => [frame(TEXT, text, { rsv: 2 })],
    'the third reserved bit': () => [frame(TEXT, text, { rsv: 1 })],
    'the reserved opcode 3': () => [frame(3, text)],
    'the reserved opcode 11': () => [frame(11)],
    'a text of 17 MiB': () => [frame(TEXT, Buffer.alloc(17 * MIB, 'x'))],
    'fragments of 17 MiB together': () => [
      frame(TEXT, Buffer.alloc(9 * MIB, 'x'), { fin: false }),
      frame(0, Buffer.alloc(8 * MIB, 'x')),
    ],
    'a frame that claims 2^62 bytes': () => [frame(BINARY, text, { length: 2n ** 62n })],
    'a frame that claims 2^63 bytes': () => [frame(TEXT, text, { length: 2n ** 63n })],
    'a ping of 200 bytes': () => [frame(PING, Buffer.alloc(200))],
    'a ping in fragments': () => [frame(PING, 'x', { fin: false })],
    'a masked frame': () => [frame(TEXT, text, { mask: true })],
    'a continuation of nothing': () => [frame(0, text)],
    'a text within a text': () => [frame(TEXT, text, { fin: false }), frame(TEXT, text)],
    'a close frame of one byte': () => [frame(CLOSE, 'x')],
    'a close frame with bad UTF-8': () => [frame(CLOSE, Buffer.from([0x03, 0xe8, 0xff]))],
    'HTTP in the middle': () => [Buffer.from('HTTP/1.1 200 OK\r\n\r\n')],
  }

  test.each(Object.keys(broken))('%s', async (name) => {
    const frames = (broken[name] as () => Buffer[])()
    await wire.works()
    wire.write(...frames, selectionChanged(snapshot(`${CWD}/after.ts`, 1)))
    const { reason } = await wire.heard.first('closed')
    expect(reason).toMatch(/^the editor sent what is no valid message: \w/)
    await until('the socket to be closed', () => wire.socket.closed)
    expect(wire.heard.types.at(-1)).toBe('closed')
    expect(wire.heard.of('selection').map(({ snapshot }) => snapshot.filePath)).toEqual([
      `${CWD}/valid${serial}.ts`,
    ])
    expect([wire.connection.state, wire.connection.latest(), wire.connection.attachState]).toEqual([
      'closed',
      null,
      'idle',
    ])
    expect(await wire.connection.prepareContext()).toBeNull()
  })

  test.each<[string, Buffer, number]>([
    ['a bad text', frame(TEXT, Buffer.from([0xff])), 1007],
    ['a reserved opcode', frame(3), 1002],
    ['a text that is too long', frame(TEXT, '', { length: BigInt(17 * MIB) }), 1009],
  ])('the editor is told by the close code: %s', async (_, bytes, code) => {
    wire.write(bytes)
    await wire.heard.first('closed')
    await until('the socket to be closed', () => wire.socket.closed)
    const farewells = wire.sent.frames.filter(({ opcode }) => opcode === CLOSE)
    expect(farewells.map(({ payload }) => payload.readUInt16BE(0))).toEqual([code])
  })

  test.each<[string, () => Buffer | null, RegExp]>([
    ['a close frame with code and text', () => close(1001, 'window closed'), /1001.*window closed/],
    ['a close frame without a code', () => frame(CLOSE), /closed/],
    ['the end of the stream', () => null, /closed/],
  ])('so does a farewell: %s', async (_, bytes, words) => {
    await wire.works()
    const farewell = bytes()
    if (farewell) wire.write(farewell)
    else wire.socket.end()
    expect((await wire.heard.first('closed')).reason).toMatch(words)
    await until('the socket to be closed', () => wire.socket.closed)
    expect(wire.connection.latest()).toBeNull()
  })

  test('a reset of the stream', async () => {
    await wire.works()
    wire.socket.resetAndDestroy()
    expect((await wire.heard.first('closed')).reason).toMatch(/\w/)
    expect(wire.connection.latest()).toBeNull()
  })

  test('an end within a frame', async () => {
    await wire.works()
    wire.socket.end(frame(TEXT, text).subarray(0, 20))
    expect((await wire.heard.first('closed')).reason).toMatch(/\w/)
    expect(wire.heard.of('selection')).toHaveLength(1)
  })
})

describe('what makes no sense is ignored, and the link stays', () => {
  const good = snapshot(`${CWD}/ignored.ts`, 1)
  const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
  const at = (changes: object) => notification('selection_changed', { ...good, ...changes })
  const ranges = (start: unknown, end: unknown) => [{ text: 'x', selection: { start, end } }]

  const ignored: Record<string, string | Buffer> = {
    'an empty text': '',
    'no JSON': 'selection_changed',
    'half a message': selectionChanged(good).slice(0, -5),
    'two messages in one': selectionChanged(good) + selectionChanged(good),
    'a number': '7',
    null: 'null',
    'a list': '[]',
    'a batch': `[${selectionChanged(good)}]`,
    'lists 100,000 deep': '['.repeat(100_000),
    'objects 100,000 deep': '{"a":'.repeat(100_000),
    'a deep member where a path should be': at({ filePath: 0 }).replace(
      '"filePath":0',
      `"filePath":${deep(100_000)}`,
    ),
    'a message with id and method': request(1, 'selection_changed', good),
    'a message with a null id and method': request(null, 'selection_changed', good),
    'a request that pi does not know': request(7, 'workspace/configuration', {}),
    'a notification that pi does not know': notification('foo/bar', good),
    'a method that is no string': '{"jsonrpc":"2.0","method":["selection_changed"]}',
    'another JSON-RPC': selectionChanged(good).replace('"2.0"', '"1.0"'),
    'no JSON-RPC': JSON.stringify({ method: 'selection_changed', params: good }),
    'no parameters': notification('selection_changed'),
    'parameters in a list': notification('selection_changed', [good]),
    'no path': at({ filePath: undefined }),
    'a path that is a number': at({ filePath: 7 }),
    'no ranges': at({ ranges: undefined }),
    'ranges that are null': at({ ranges: null }),
    'a negative line': at({ ranges: ranges({ line: -1, character: 0 }, { line: 0, character: 0 }) }),
    'a line that is text': at({ ranges: ranges({ line: '1', character: 0 }, { line: 1, character: 0 }) }),
    'a selection without an end': at({ ranges: ranges({ line: 1, character: 0 }, undefined) }),
    'an empty source': at({ source: '' }),
    'another reason for clearing': notification('selection_cleared', { source: 'vscode', reason: 'closed' }),
    'a mention without its text': notification('at_mentioned', good),
    'a fix without diagnostics': notification('diagnostic_fix_requested', {
      source: 'vscode',
      filePath: '/a',
      triggerRange: {},
      diagnostics: [],
    }),
    'a second answer to initialize': initialized({ protocolVersion: 1, server: { name: 'Other' } }),
    'an answer of another version': initialized({ protocolVersion: 2, server: { name: 'Other' } }),
    'an error answer': JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -1, message: 'no' } }),
    'a binary frame that is no text': frame(BINARY, Buffer.from([0, 0xff])),
    'an empty binary frame': frame(BINARY),
    'an empty fragment': Buffer.concat([frame(TEXT, '', { fin: false }), frame(0)]),
    'a pong that nobody asked for': frame(PONG, 'hello'),
  }

  test.each(Object.keys(ignored))('%s', async (name) => {
    await wire.works()
    const before = [wire.connection.latest(), wire.connection.server]
    wire.write(ignored[name] as string | Buffer)
    await quiet()
    expect([wire.connection.latest(), wire.connection.server]).toEqual(before)
    await wire.works()
    const files = wire.heard.of('selection').map(({ snapshot }) => snapshot.filePath)
    expect(files).toEqual([`${CWD}/valid${serial - 1}.ts`, `${CWD}/valid${serial}.ts`])
    expect(wire.heard.types).not.toContain('closed')
    expect(wire.heard.types).not.toContain('mention')
    expect(wire.heard.types).not.toContain('cleared')
    expect(wire.sent.frames.filter(({ opcode }) => opcode !== TEXT)).toEqual([])
    expect(wire.sent.frames).toHaveLength(1) // initialize: pi answers nothing of all this
  })
})

describe('what real editors send', () => {
  const file = `${CWD}/good.ts`
  const arrives = () => until('the selection', () => wire.connection.latest()?.filePath === file)

  test('a text in fragments, with a ping between them', async () => {
    const text = Buffer.from(selectionChanged(snapshot(file, 1, 1, 'ünï😀')))
    const pieces = Array.from({ length: text.length }, (_, i) => text.subarray(i, i + 1))
    wire.write(frame(TEXT, pieces[0], { fin: false }))
    for (const piece of pieces.slice(1, -1)) wire.write(frame(0, piece, { fin: false }))
    wire.write(frame(PING, 'alive?'), frame(0, pieces.at(-1)))
    await arrives()
    expect(wire.connection.latest({ text: true })?.ranges[0]?.text).toBe('ünï😀')
    const pong = await until('the pong', () => wire.sent.frames.find(({ opcode }) => opcode === PONG))
    expect(pong.payload.toString()).toBe('alive?')
  })

  test('a ping of 125 bytes is answered with the same', async () => {
    wire.write(frame(PING, Buffer.alloc(125, 'p')))
    const pong = await until('the pong', () => wire.sent.frames.find(({ opcode }) => opcode === PONG))
    expect(pong.payload.toString()).toBe('p'.repeat(125))
    await wire.works()
  })

  test('frames that come byte by byte, or many in one packet', async () => {
    for (const byte of frame(TEXT, selectionChanged(snapshot(file, 1))))
      wire.socket.write(Buffer.from([byte]))
    await arrives()
    const many = Array.from({ length: 300 }, (_, i) =>
      frame(TEXT, selectionChanged(snapshot(`${CWD}/${i}.ts`, 1))),
    )
    wire.socket.write(Buffer.concat(many))
    await until('the last one', () => wire.connection.latest()?.filePath === `${CWD}/299.ts`)
  })

  test('a binary frame with valid JSON is ignored or counts, and the link stays', async () => {
    wire.write(frame(BINARY, selectionChanged(snapshot(file, 1))))
    await quiet()
    expect([undefined, file]).toContain(wire.connection.latest()?.filePath)
    await wire.works()
  })

  test('a selection of 10 MiB', async () => {
    wire.write(selectionChanged(snapshot(file, 1, 2, 'é'.repeat(5 * MIB))))
    await arrives()
    expect(wire.connection.latest()?.ranges[0]).toMatchObject({ textLength: 5 * MIB })
    expect(wire.connection.latest({ text: true })?.ranges[0]?.text).toHaveLength(5 * MIB)
  })

  test('half a surrogate pair', async () => {
    wire.write(selectionChanged(snapshot(file, 1, 1, 'x')).replace('"text":"x"', '"text":"a\\ud83d"'))
    await arrives()
    expect(wire.connection.latest({ text: true })?.ranges[0]?.text).toBe('a\ufffd')
  })

  test.each<[string, string]>([
    ['unknown', '"later":{"a":[1,null]}'],
    ['deep unknown', `"later":${'['.repeat(50_000)}${']'.repeat(50_000)}`],
    ['doubled', '"filePath":7'],
  ])('%s members', async (_, member) => {
    wire.write(selectionChanged(snapshot(file, 1)).replace('"params":{', `"params":{${member},`))
    await arrives()
  })

  test('fractions and huge numbers as positions', async () => {
    const at = (line: number) => ({ line, character: line })
    wire.write(
      notification('selection_changed', {
        ...snapshot(file),
        ranges: [
          { text: '', selection: { start: at(1.9), end: at(2.1) } },
          { text: '', selection: { start: at(1e300), end: at(1e300) } },
        ],
      }),
    )
    await arrives()
    const [first, second] = wire.connection.latest()?.ranges ?? []
    expect(first?.selection).toEqual({ start: { line: 1, character: 1 }, end: { line: 2, character: 2 } })
    expect(second?.selection.start.line).toBe(2 ** 32 - 1)
    expect(wire.connection.mentions()).toHaveLength(2)
  })

  test('10,000 ranges', async () => {
    const { ranges } = snapshot(file, 7)
    wire.write(
      notification('selection_changed', { ...snapshot(file), ranges: Array(10_000).fill(ranges[0]) }),
    )
    await arrives()
    expect(wire.connection.mentions()).toHaveLength(10_000)
  })

  test('a mention whose text disagrees is computed anew', async () => {
    wire.write(notification('at_mentioned', { ...snapshot(file, 3, 5), rangeText: '@/etc/passwd#L1' }))
    expect((await wire.heard.first('mention')).mentions).toEqual(['@good.ts#L3-L5'])
  })

  test('mentions and clearing right after each other', async () => {
    wire.write(mentioned(snapshot(file, 1)), cleared(), mentioned(snapshot(file, 2)), cleared())
    await until(
      'both mentions',
      () => wire.heard.of('mention').length === 2 && wire.heard.types.at(-1) === 'cleared',
    )
    expect(wire.heard.of('mention').map(({ mentions }) => mentions)).toEqual([
      ['@good.ts#L1'],
      ['@good.ts#L2'],
    ])
    expect([wire.connection.latest(), wire.connection.attachState]).toEqual([null, 'idle'])
  })
})

test('memory stays flat over 200 links that break the protocol', async () => {
  const bad = [
    frame(3),
    frame(TEXT, Buffer.from([0xff])),
    frame(TEXT, 'x', { rsv: 4 }),
    frame(PING, Buffer.alloc(200)),
    frame(BINARY, '', { length: BigInt(17 * MIB) }),
    frame(TEXT, '', { length: 2n ** 62n }),
    frame(TEXT, `[${'{"a":'.repeat(200_000)}`),
    frame(TEXT, Buffer.alloc(4 * MIB, 'x'), { fin: false }),
  ]
  let links = 0
  const listener = await Listener.open((socket) => {
    void upgrade(socket).then(() => {
      socket.write(frame(TEXT, initialized()))
      socket.end(bad[links++ % bad.length] as Buffer)
    })
  })
  const candidate = await candidateOf(writeLock(folder(), { port: listener.port }))
  // The client alone in its process, so that nothing but its memory is measured.
  const client = new Process(
    `const [candidate] = args
     const cycle = async () => {
       const connection = await addon.connect(candidate, { cwd: '/w/app' }).catch(() => null)
       if (connection) await new Promise((resolve) => connection.onEvent(({ type }) => type === 'closed' && resolve()) && connection.state === 'closed' && resolve())
     }
     const rss = async () => { gc(); await sleep(50); gc(); return process.memoryUsage().rss }
     setInterval(() => {}, 1000)
     for (let i = 0; i < 40; i++) await cycle()
     const before = await rss()
     for (let i = 0; i < 200; i++) await cycle()
     say((await rss()) - before)
     process.exit(0)`,
    { flags: ['--expose-gc'], args: [candidate] },
  )
  expect(await client.line<number>()).toBeLessThan(40 * MIB)
  expect((await client.ended).code).toBe(0)
  expect(links).toBe(240)
  await until('all links to be closed', () => listener.open === 0)
})
