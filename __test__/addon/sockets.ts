import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import type { AddressInfo, Server, Socket } from 'node:net'
import { createServer } from 'node:net'
import { onTestFinished } from 'vitest'

export interface Ws {
  readyState: number
  send(data: string | Buffer, sent?: () => void): void
  send(data: string | Buffer, options: { binary?: boolean }): void
  ping(data?: string | Buffer): void
  close(code?: number, reason?: string): void
  terminate(): void
  pause(): void
  on(event: string, listener: (...args: never[]) => void): this
  once(event: string, listener: (...args: never[]) => void): this
  off(event: string, listener: (...args: never[]) => void): this
}

interface WsModule {
  WebSocket: new (url: string, options?: object) => Ws
  WebSocketServer: new (options: object) => Ws & { address(): AddressInfo; clients: Set<Ws>; close(): void }
}

export const { WebSocket, WebSocketServer } = createRequire(import.meta.url)('ws') as WsModule

/** A TCP server on loopback that counts and keeps its sockets. */
export class Listener {
  /** Every socket that was ever accepted. */
  readonly accepted: Socket[] = []
  #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async open(onSocket: (socket: Socket) => void = () => {}, host = '127.0.0.1'): Promise<Listener> {
    const server = createServer()
    const listener = new Listener(server)
    server.on('connection', (socket) => {
      listener.accepted.push(socket)
      socket.on('error', () => {}) // a peer that resets the socket is what several tests are about
      socket.setNoDelay()
      socket.resume() // so that its end is noticed
      onSocket(socket)
    })
    server.listen(0, host)
    await once(server, 'listening')
    onTestFinished(() => listener.close())
    return listener
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Sockets that are open now. */
  get open(): number {
    return this.accepted.filter((socket) => !socket.closed).length
  }

  close(): void {
    this.#server.close()
    for (const socket of this.accepted) socket.destroy()
  }
}

/** Reads an upgrade request, answers it as a WebSocket server does, and returns its head. */
export async function upgrade(socket: Socket): Promise<string> {
  const head = await requestHead(socket)
  const key = /sec-websocket-key: *(\S+)/i.exec(head)?.[1] ?? ''
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  )
  return head
}

/** Head of an HTTP request. */
export async function requestHead(socket: Socket): Promise<string> {
  let head = ''
  while (!head.includes('\r\n\r\n')) {
    const [chunk] = await once(socket, 'data')
    head += chunk.toString('latin1')
  }
  return head
}

export interface FrameOptions {
  fin?: boolean
  rsv?: number
  mask?: boolean
  /** Length to claim instead of the payload's. */
  length?: bigint
}

/** One WebSocket frame, whether or not it is allowed. */
export function frame(opcode: number, payload: string | Buffer = '', options: FrameOptions = {}): Buffer {
  const { fin = true, rsv = 0, mask = false } = options
  const body = Buffer.from(payload)
  const length = options.length ?? BigInt(body.length)
  const first = (fin ? 0x80 : 0) | (rsv << 4) | opcode
  const masked = mask ? 0x80 : 0
  let head: Buffer
  if (length < 126n) head = Buffer.from([first, masked | Number(length)])
  else if (length < 65_536n)
    head = Buffer.from([first, masked | 126, Number(length >> 8n), Number(length & 255n)])
  else {
    head = Buffer.alloc(10)
    head.writeUInt8(first, 0)
    head.writeUInt8(masked | 127, 1)
    head.writeBigUInt64BE(length, 2)
  }
  if (!mask) return Buffer.concat([head, body])
  const key = randomBytes(4)
  return Buffer.concat([head, key, body.map((byte, i) => byte ^ (key[i % 4] as number))])
}

export const TEXT = 1
export const BINARY = 2
export const CLOSE = 8
export const PING = 9
export const PONG = 10

/** Frames that a client sent, unmasked, as they come in. */
export class FrameReader {
  readonly frames: { opcode: number; payload: Buffer }[] = []
  #rest = Buffer.alloc(0)

  constructor(socket: Socket) {
    socket.on('data', (chunk) => {
      this.#rest = Buffer.concat([this.#rest, chunk])
      for (let next = this.#take(); next; next = this.#take()) this.frames.push(next)
    })
  }

  #take() {
    const data = this.#rest
    if (data.length < 6) return undefined
    let length = (data[1] as number) & 127
    let at = 2
    if (length === 126) {
      length = data.readUInt16BE(2)
      at = 4
    } else if (length === 127) throw new Error('no client of ours sends so much')
    if (data.length < at + 4 + length) return undefined
    const key = data.subarray(at, at + 4)
    const payload = Buffer.from(data.subarray(at + 4, at + 4 + length)).map(
      (byte, i) => byte ^ (key[i % 4] as number),
    )
    this.#rest = data.subarray(at + 4 + length)
    return { opcode: (data[0] as number) & 15, payload: Buffer.from(payload) }
  }
}
