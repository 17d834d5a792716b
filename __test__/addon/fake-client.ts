import { connect as dial } from 'node:net'
import { onTestFinished } from 'vitest'
import type { SnapshotInput } from '../../index.d.ts'
import type { IdeServer } from '../../index.js'
import { tokenOf } from './bridge.ts'
import { request } from './fake-editor.ts'
import type { Ws } from './sockets.ts'
import { WebSocket } from './sockets.ts'
import { CWD, until } from './support.ts'

/** A client made of npm's `ws`. */
export class Client {
  readonly link: Ws
  readonly messages: {
    id?: unknown
    method?: string
    params?: SnapshotInput
    result?: unknown
    error?: unknown
  }[] = []
  closed = false

  private constructor(link: Ws) {
    this.link = link
    link.on('error', () => {})
    link.on('close', () => {
      this.closed = true
    })
    link.on('message', (data: Buffer) => this.messages.push(JSON.parse(data.toString())))
    onTestFinished(() => link.terminate())
  }

  /** An open link that has not said anything yet. */
  static async open(port: number, token: string): Promise<Client> {
    const link = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { 'x-pi-x-ide-authorization': token } })
    const client = new Client(link)
    await new Promise<void>((resolve, reject) => {
      link.once('open', resolve)
      link.once('error', reject)
    })
    return client
  }

  /** An open link that has completed the handshake and knows the editor's state. */
  static async join(port: number, token: string, cwd: string | undefined = CWD): Promise<Client> {
    const client = await Client.open(port, token)
    client.initialize(cwd)
    await until('the first state', () => client.messages.length >= 2)
    return client
  }

  initialize(cwd?: string, id: unknown = 1): void {
    this.link.send(
      request(id, 'initialize', { protocolVersion: 1, client: { name: 'fake', version: '0' }, cwd }),
    )
  }

  of(method: string): SnapshotInput[] {
    return this.messages
      .filter((message) => message.method === method)
      .map(({ params }) => params as SnapshotInput)
  }
}

/** A client of a server that has completed the handshake. */
export const join_ = (server: IdeServer, cwd?: string): Promise<Client> =>
  Client.join(server.port, tokenOf(server), cwd)

/** Status of the answer to an upgrade request with these headers, 101 when it was granted. */
export async function upgradeStatus(port: number, headers: string[], method = 'GET'): Promise<number> {
  const lines = [
    `${method} / HTTP/1.1`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  ]
  const socket = dial(port, '127.0.0.1')
  socket.on('error', () => {})
  onTestFinished(() => {
    socket.destroy()
  })
  let answer = ''
  let ended = false
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1')
  })
  socket.on('close', () => {
    ended = true
  })
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  await until('an answer', () => ended || answer.includes('\r\n\r\n'))
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)
  socket.destroy()
  return status
}
