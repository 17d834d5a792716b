import { describe, expect, test } from 'vitest'
import type { DiagnosticFix, SnapshotInput } from '../../index.d.ts'
import { ideServer, tokenOf } from './bridge.ts'
import { Client, join_ } from './fake-client.ts'
import { notification, request, snapshot } from './fake-editor.ts'
import { frame, TEXT } from './sockets.ts'
import { CWD, quiet, thrown, until } from './support.ts'

const file = (name: string) => `${CWD}/${name}`

function snapshotAt(line: number): SnapshotInput {
  const at = { line, character: 0 }
  return { filePath: '/a', ranges: [{ text: '', selection: { start: at, end: at } }] }
}

describe('the conversation', () => {
  test('initialize is answered, then the present state follows', async () => {
    const server = await ideServer({ version: '1.2.3' })
    const empty = await join_(server)
    expect(empty.messages).toEqual([
      {
        jsonrpc: '2.0',
        id: 1,
        result: {
          protocolVersion: 1,
          server: { name: 'VS Code', version: '1.2.3', ide: 'vscode' },
          capabilities: { promptSubmitted: true },
        },
      },
      {
        jsonrpc: '2.0',
        method: 'selection_cleared',
        params: { source: 'vscode', reason: 'no-active-editor' },
      },
    ])
    server.publish(snapshot(file('a.ts'), 1, 2, 'x'))
    await until('the selection', () => empty.of('selection_changed').length > 0)
    const { receivedAt, ...rest } = empty.of('selection_changed')[0] as SnapshotInput
    expect(rest).toEqual(snapshot(file('a.ts'), 1, 2, 'x'))
    const later = await join_(server)
    expect(later.of('selection_changed')).toHaveLength(1)
    server.clear()
    await until('clearing', () => later.of('selection_cleared').length > 0)
    expect((await join_(server)).messages[1]?.method).toBe('selection_cleared')
    expect(server.clients().map(({ name, version, cwd }) => ({ name, version, cwd }))).toEqual(
      Array(3).fill({ name: 'fake', version: '0', cwd: CWD }),
    )
  })

  test('the id is repeated as it is, and a repeated initialize is answered again', async () => {
    const server = await ideServer()
    const client = await join_(server)
    for (const id of ['text', 0, -7, 1.5, 'ü']) client.initialize(CWD, id)
    await until('all answers', () => client.messages.filter(({ result }) => result).length === 6)
    expect(client.messages.filter(({ result }) => result).map(({ id }) => id)).toEqual([
      1,
      'text',
      0,
      -7,
      1.5,
      'ü',
    ])
    await until('the last state', () => client.messages.at(-1)?.method === 'selection_cleared')
    expect(server.clients()).toHaveLength(1)
  })

  test('who has not said initialize is told nothing', async () => {
    const server = await ideServer()
    const silent = await Client.open(server.port, tokenOf(server))
    const member = await join_(server)
    server.publish(snapshot(file('a.ts'), 1))
    expect(server.mention(snapshot(file('a.ts'), 1))?.id).toBe(server.clients()[0]?.id)
    await until(
      'both at the member',
      () => member.of('at_mentioned').length === 1 && member.of('selection_changed').length === 1,
    )
    await quiet()
    expect(silent.messages).toEqual([])
    expect(server.clients()).toHaveLength(1)
    silent.initialize()
    await until('its answer and the state', () => silent.messages.length === 2)
    expect(silent.messages[1]?.method).toBe('selection_changed')
  })

  test('a request that nobody knows gets an error, a notification gets nothing', async () => {
    const server = await ideServer()
    const client = await join_(server)
    const before = client.messages.length
    client.link.send(request('a', 'tools/list'))
    client.link.send(request(2, 'shutdown', {}))
    client.link.send(notification('initialized', {}))
    await until('both errors', () => client.messages.length >= before + 2)
    await quiet()
    expect(client.messages.slice(before)).toEqual([
      { jsonrpc: '2.0', id: 'a', error: { code: -32_601, message: expect.any(String) } },
      { jsonrpc: '2.0', id: 2, error: { code: -32_601, message: expect.any(String) } },
    ])
  })

  test('what makes no sense is ignored', async () => {
    const server = await ideServer()
    const client = await join_(server)
    const before = client.messages.length
    const garbage = [
      '',
      'x',
      '7',
      'null',
      '[]',
      `[${request(1, 'initialize')}]`,
      '{',
      '['.repeat(100_000),
      '{"jsonrpc":"1.0","id":1,"method":"initialize"}',
      '{"id":1,"method":"initialize"}',
      request(null, 'initialize'),
      request({}, 'initialize'),
      request([], 'x'),
      request(true, 'x'),
      '{"jsonrpc":"2.0","id":1}',
      '{"jsonrpc":"2.0","id":1,"method":7}',
      '{"jsonrpc":"2.0","id":1,"result":{}}',
    ]
    for (const text of garbage) client.link.send(text)
    client.link.send(Buffer.from([0, 255]), { binary: true })
    client.link.ping('still there?')
    await quiet()
    expect(client.messages).toHaveLength(before)
    server.publish(snapshot(file('a.ts'), 1))
    await until('the selection', () => client.of('selection_changed').length === 1)
    expect(client.closed).toBe(false)
  })

  test.each<[string, Buffer]>([
    ['a text that is no UTF-8', frame(TEXT, Buffer.from([0xff]), { mask: true })],
    ['a frame without a mask', frame(TEXT, request(1, 'initialize'))],
    ['a reserved bit', frame(TEXT, 'x', { mask: true, rsv: 4 })],
    ['a reserved opcode', frame(3, 'x', { mask: true })],
    ['a message that is too long', frame(TEXT, '', { mask: true, length: 17n * 1024n * 1024n })],
  ])('%s costs the client its place, and nobody else', async (_, bytes) => {
    const server = await ideServer()
    const good = await join_(server)
    const bad = await join_(server)
    const raw = (bad.link as unknown as { _socket: { write(bytes: Buffer): void } })._socket
    raw.write(bytes)
    await until('the end of the bad one', () => bad.closed && server.clients().length === 1)
    server.publish(snapshot(file('a.ts'), 1))
    await until('the selection', () => good.of('selection_changed').length === 1)
  })

  test('parameters that cannot be read count as absent', async () => {
    const server = await ideServer()
    const client = await Client.open(server.port, tokenOf(server))
    client.link.send(request(1, 'initialize', { protocolVersion: 'x', client: 7, cwd: [] }))
    await until('the answer', () => client.messages.length === 2)
    expect(server.clients()).toEqual([{ id: expect.any(Number), name: '', version: '' }])
  })
})

describe('published values', () => {
  test.each<[string, unknown]>([
    ['an empty path', { filePath: '', ranges: [] }],
    ['a negative line', snapshotAt(-1)],
    ['a fraction', snapshotAt(1.5)],
    ['NaN', snapshotAt(Number.NaN)],
    ['infinity', snapshotAt(Number.POSITIVE_INFINITY)],
    ['2^32', snapshotAt(2 ** 32)],
  ])('%s is refused at once', async (_, bad) => {
    const server = await ideServer()
    for (const call of [
      () => server.publish(bad as SnapshotInput),
      () => server.mention(bad as SnapshotInput),
    ])
      expect(thrown(call).code).toBe('PIX_INVALID_ARGUMENT')
  })

  test('a wrong type is refused at once', async () => {
    const server = await ideServer()
    for (const bad of [
      undefined,
      null,
      5,
      {},
      { filePath: 5, ranges: [] },
      { filePath: '/a' },
      { filePath: '/a', ranges: [{}] },
      { filePath: '/a', ranges: [{ text: 5, selection: {} }] },
    ]) {
      expect(() => server.publish(bad as SnapshotInput), JSON.stringify(bad)).toThrow()
      expect(() => server.requestFix(bad as unknown as DiagnosticFix), JSON.stringify(bad)).toThrow()
    }
    expect(
      thrown(() =>
        server.requestFix({
          filePath: '/a',
          triggerRange: snapshotAt(0).ranges[0]?.selection as never,
          diagnostics: [],
        }),
      ).code,
    ).toBe('PIX_INVALID_ARGUMENT')
  })

  test('odd text arrives as whole characters', async () => {
    const server = await ideServer()
    const client = await join_(server)
    const text = 'π😀e\u0301\u0000\u2028"\\\ud83d'
    server.publish(snapshot(file('ü\n"\\.ts'), 1, 1, text))
    await until('the selection', () => client.of('selection_changed').length === 1)
    const [got] = client.of('selection_changed')
    expect(got?.filePath).toBe(file('ü\n"\\.ts'))
    expect(got?.ranges[0]?.text).toBe(text.replace(/.$/, '\ufffd'))
  })

  test('the kind of editor is filled in', async () => {
    const server = await ideServer({ ide: 'nvim' })
    const client = await join_(server)
    server.publish({ filePath: '/a', ranges: [] })
    await until('the selection', () => client.of('selection_changed').length === 1)
    expect(client.of('selection_changed')[0]).toMatchObject({ source: 'nvim', filePath: '/a', ranges: [] })
  })
})
