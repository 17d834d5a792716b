import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { afterAll, expect, onTestFinished } from 'vitest'
import type {
  Candidate,
  Connection,
  ConnectOptions,
  DiscoverOptions,
  EditorEvent,
  IdeServerOptions,
  SnapshotInput,
} from '../../index.d.ts'
import { connect, connectBest, discover, IdeServer } from '../../index.js'

/** The addon as a user's program requires it. */
export const ADDON = join(dirname(fileURLToPath(import.meta.url)), '../../index.js')

/** pi's folder in most tests; nothing needs it to exist. */
export const CWD = '/w/app'

/** How long a step may take before a test gives up. Nothing is ever asserted to be this fast. */
const DEADLINE_MS = 20_000

// Nothing of the machine's own editors and settings may get into a test, nor the other way round.
for (const name of Object.keys(process.env)) {
  if (name.startsWith('PI_X_IDE_') && name !== 'PI_X_IDE_NATIVE_LIBRARY') delete process.env[name]
}
process.env.HOME = newFolder()
const home = process.env.HOME
afterAll(() => removeBusy(home))

function newFolder(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'pix-addon-')))
}

/** A private folder (0700) that is gone after the test. */
export function folder(): string {
  const path = newFolder()
  onTestFinished(() => removeBusy(path))
  return path
}

/** Removes a folder although somebody may be writing to it. */
export function removeBusy(path: string): void {
  for (let tries = 50; ; tries--) {
    try {
      rmSync(path, { recursive: true, force: true })
      return
    } catch (error) {
      if (tries === 0) throw error
    }
  }
}

/** Gives the test a home of its own, for itself and for the processes that it starts. */
export function ownHome(): string {
  const home = folder()
  environment({ HOME: home })
  return home
}

/** Writes the user's configuration into a home folder and returns its path. */
export function configure(home: string, config: object): string {
  const own = join(home, '.pi/pi-x-ide')
  mkdirSync(own, { recursive: true, mode: 0o700 })
  return writeFileOf(join(own, 'config.json'), JSON.stringify(config))
}

/** Sets variables until the end of the test; undefined removes one. */
export function environment(variables: Record<string, string | undefined>): void {
  const set = (name: string, value: string | undefined) => {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
  for (const [name, value] of Object.entries(variables)) {
    const before = process.env[name]
    set(name, value)
    onTestFinished(() => set(name, before))
  }
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Lets everything that is on its way to this thread arrive, as far as one can know. */
export const quiet = (): Promise<void> => sleep(60)

/** Polls until `probe` gives something truthy, and returns that. */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  ms = DEADLINE_MS,
): Promise<NonNullable<T>> {
  const end = Date.now() + ms
  for (;;) {
    const value = await probe()
    if (value) return value
    if (Date.now() > end) throw new Error(`waited ${ms} ms for ${what}, last seen: ${inspect(value)}`)
    await sleep(5)
  }
}

/** Keeps this thread busy until `done`; what arrives meanwhile has to wait. */
export function block(done: () => boolean): void {
  const end = Date.now() + DEADLINE_MS
  while (!done()) if (Date.now() > end) throw new Error('blocked the thread in vain')
}

/** What a promise rejects with; a promise that resolves fails the test. */
export async function rejection(
  promise: Promise<unknown>,
): Promise<Error & { code?: string; cause?: unknown }> {
  const value = await promise.then(
    (resolved) => Promise.reject(new Error(`resolved with ${inspect(resolved)}`)),
    (reason) => reason,
  )
  return value
}

/** What a call throws; a call that returns fails the test. */
export function thrown(call: () => unknown): Error & { code?: string } {
  try {
    call()
  } catch (error) {
    return error as Error & { code?: string }
  }
  throw new Error('did not throw')
}

// Lock files

/** A lock file's content. */
export type Lock = Record<string, unknown>

/** A token that no other text holds. */
export const TOKEN = 'feedc0de'.repeat(8)

/** Somebody answers at this port, and hangs up. */
const answering = createServer((socket) => socket.destroy())
  .listen(0, '127.0.0.1')
  .unref()
await once(answering, 'listening')
export const ANSWERED_PORT = (answering.address() as AddressInfo).port

export function lock(changes: Lock = {}): Lock {
  return {
    version: 1,
    ide: 'vscode',
    name: 'VS Code',
    transport: 'ws',
    host: '127.0.0.1',
    port: ANSWERED_PORT,
    authToken: TOKEN,
    workspaceFolders: [CWD],
    pid: process.pid,
    runningInWindows: false,
    ...changes,
  }
}

/** Writes a lock file; members that are undefined are left out. Returns its path. */
export function writeLock(dir: string, changes: Lock = {}, { name = '', ageMs = 0 } = {}): string {
  const content = lock(changes)
  const file = name || `${content.ide}-${content.pid ?? 1}-${content.port}.lock`
  return writeFileOf(join(dir, file), JSON.stringify(content), ageMs)
}

/** Writes a file of this age, 0600. Returns its path. */
export function writeFileOf(path: string, content: string | Buffer, ageMs = 0): string {
  writeFileSync(path, content, { mode: 0o600 })
  if (ageMs > 0) age(path, ageMs)
  return path
}

export function age(path: string, ms: number): void {
  const time = new Date(Date.now() - ms)
  utimesSync(path, time, time)
}

export const HOUR_MS = 3_600_000

/** The id of a machine that is not this one. */
export const OTHER_MACHINE = '0123456789abcdef'

/** The pid of a process that has ended. */
export function deadPid(): number {
  return spawnSync('true').pid
}

/** A port that nobody listens on. */
export async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** The candidate of one lock file. Nobody's port is asked, if it is usable. */
export async function candidateOf(lockFile: string, cwd = CWD): Promise<Candidate> {
  const options = { lockDir: dirname(lockFile), cleanUp: false }
  const named = ({ id }: Candidate) => id === lockFile
  const found =
    (await discover(cwd, options)).find(named) ?? (await discover(cwd, { ...options, all: true })).find(named)
  if (!found) throw new Error(`no candidate for ${lockFile}`)
  return found
}

/** A candidate for whatever listens on a port. */
export const candidateAt = (port: number, changes: Lock = {}): Promise<Candidate> =>
  candidateOf(writeLock(folder(), { port, ...changes }))

/** Everything that a scan sees, without touching it. */
export const look = (lockDir: string, cwd = CWD): Promise<Candidate[]> =>
  discover(cwd, { lockDir, all: true, cleanUp: false })

/** The only candidate of a folder. */
export async function only(lockDir: string, options: DiscoverOptions = {}): Promise<Candidate> {
  const all = await discover(CWD, { lockDir, all: true, ...options })
  expect(all).toHaveLength(1)
  return all[0] as Candidate
}

export const names = (candidates: Candidate[]): string[] => candidates.map(({ name }) => name)

/** Fails where a token stands in anything that a value shows or hides. */
export function expectNoToken(value: unknown, token = TOKEN): void {
  const stack = value instanceof Error ? value.stack : ''
  expect(inspect(value, { depth: null, showHidden: true, maxStringLength: null }) + stack).not.toContain(
    token,
  )
}

// Fake editors

/** The part of the npm package `ws` that the tests use. */
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

export const request = (id: unknown, method: string, params?: unknown): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params })

export const notification = (method: string, params?: unknown): string =>
  JSON.stringify({ jsonrpc: '2.0', method, params })

export const selectionChanged = (snapshot: SnapshotInput): string =>
  notification('selection_changed', snapshot)

export const mentioned = (snapshot: SnapshotInput): string =>
  notification('at_mentioned', { ...snapshot, rangeText: '' })

export const cleared = (): string =>
  notification('selection_cleared', { source: 'vscode', reason: 'no-active-editor' })

export const initialized = (result: unknown = { protocolVersion: 1, server: { name: 'Fake' } }): string =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, result })

/** Lines are 1-based, both ends included; without lines the file is open and nothing is selected. */
export function snapshot(file: string, first?: number, last = first, text = 'secret text'): SnapshotInput {
  const ranges = first
    ? [
        {
          text,
          selection: {
            start: { line: first - 1, character: 0 },
            end: { line: (last as number) - 1, character: 4 },
          },
        },
      ]
    : []
  return { source: 'vscode', filePath: file, workspaceFolder: CWD, ranges }
}

export interface FakeEditorOptions {
  /** What `initialize` is answered with; null for no answer. */
  answer?: string | null
  /** Called once a client has sent `initialize` and was answered. */
  onReady?: (link: Ws) => void
  /** Members of its lock file. */
  lock?: Lock
  lockDir?: string
  /** Address that it listens on instead of 127.0.0.1, which its lock file does not tell. */
  address?: string
}

/** An editor made of npm's `ws`, with its lock file in a folder of its own unless it is told otherwise. */
export class FakeEditor {
  readonly port: number
  readonly lockFile: string
  readonly lockDir: string
  /** Every link that was ever made. */
  readonly links: Ws[] = []
  /** Every message that came in. */
  readonly received: string[] = []
  /** Heads of the upgrade requests. */
  readonly headers: Record<string, string>[] = []

  private constructor(port: number, lockDir: string, lockFile: string) {
    this.port = port
    this.lockDir = lockDir
    this.lockFile = lockFile
  }

  static async start(options: FakeEditorOptions = {}): Promise<FakeEditor> {
    const { answer = initialized(), onReady = () => {}, lockDir = folder(), address = '127.0.0.1' } = options
    const server = new WebSocketServer({ port: 0, host: address })
    await new Promise<void>((resolve) => server.once('listening', resolve))
    const { port } = server.address()
    const editor = new FakeEditor(port, lockDir, writeLock(lockDir, { port, ...options.lock }))
    onTestFinished(() => {
      for (const link of editor.links) link.terminate()
      server.close()
    })
    server.on('connection', (link: Ws, head: { headers: Record<string, string> }) => {
      editor.links.push(link)
      editor.headers.push(head.headers)
      link.on('error', () => {})
      link.on('message', (data: Buffer) => {
        const message = data.toString()
        editor.received.push(message)
        if (JSON.parse(message).method !== 'initialize') return
        if (answer !== null) link.send(answer)
        onReady(link)
      })
    })
    return editor
  }

  get candidate(): Promise<Candidate> {
    return candidateOf(this.lockFile)
  }

  /** The link made last. */
  get link(): Ws {
    const link = this.links.at(-1)
    if (!link) throw new Error('nobody has connected')
    return link
  }

  /** Links that are open now. */
  get open(): number {
    return this.links.filter(({ readyState }) => readyState === 1).length
  }

  send(...messages: string[]): void {
    for (const message of messages) this.link.send(message)
  }

  async connect(options: ConnectOptions = {}): Promise<Connection> {
    return closedAfterwards(await connect(await this.candidate, { cwd: CWD, ...options }))
  }
}

/** A connection that follows the editors of a folder until the test is over. */
export async function follow(lockDir?: string, cwd = CWD): Promise<Connection> {
  const connection = await connectBest(cwd, { keepAlive: true, ...(lockDir && { lockDir }) })
  if (!connection) throw new Error('null')
  return closedAfterwards(connection)
}

/** Closes a connection when the test is over. */
export function closedAfterwards<T extends Connection | null>(connection: T): T {
  onTestFinished(() => connection?.close())
  return connection
}

/** A real server of the addon that is closed when the test is over. */
export async function ideServer(options: Partial<IdeServerOptions> = {}): Promise<IdeServer> {
  const server = await IdeServer.start({
    ide: 'vscode',
    name: 'VS Code',
    workspaceFolders: [CWD],
    lockDir: join(folder(), 'lock'),
    ...options,
  })
  onTestFinished(() => server.close())
  return server
}

/** The token in a server's lock file. */
export const tokenOf = (server: IdeServer): string =>
  JSON.parse(readFileSync(server.lockFile, 'utf8')).authToken

// Listeners

/** Everything that a connection tells. */
export class Heard {
  readonly events: EditorEvent[] = []
  readonly unsubscribe: () => void

  constructor(connection: Connection) {
    this.unsubscribe = connection.onEvent((event) => this.events.push(event))
  }

  get types(): string[] {
    return this.events.map(({ type }) => type)
  }

  of<T extends EditorEvent['type']>(type: T): Extract<EditorEvent, { type: T }>[] {
    return this.events.filter((event) => event.type === type) as Extract<EditorEvent, { type: T }>[]
  }

  /** The first event of a type, as soon as it is there. */
  async first<T extends EditorEvent['type']>(type: T): Promise<Extract<EditorEvent, { type: T }>> {
    const found = await until(`${type} among ${inspect(this.types)}`, () => this.of(type)[0])
    return found as Extract<EditorEvent, { type: T }>
  }
}

// Fake clients

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

// Other processes

export interface RunOptions {
  env?: Record<string, string>
  flags?: string[]
  args?: unknown[]
  /** A command that runs the one given to it, such as `unshare`. */
  under?: string[]
  /** Leaves it to the script to load the addon. */
  lazy?: boolean
  /** A process that has not ended by then is killed, and tells so by its signal. */
  ms?: number
}

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

/** What every script of a child process starts with. */
const PRELUDE = `
const addon = process.env.PIX_LAZY ? undefined : require(process.env.PIX_ADDON)
const args = JSON.parse(process.env.PIX_ARGS)
const say = (value) => require('node:fs').writeSync(1, JSON.stringify(value) + '\\n')
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const until = async (probe) => { while (!(await probe())) await sleep(10) }
process.on('unhandledRejection', (error) => { console.error('unhandled', error); process.exit(70) })
`

/** A process of its own that runs a CommonJS script (an async function's body) and tells JSON lines. */
export class Process {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  readonly said: unknown[] = []
  #stdout = ''
  #stderr = ''

  constructor(script: string, options: RunOptions = {}) {
    const { env = {}, flags = [], args = [], under = [], lazy = false, ms = DEADLINE_MS } = options
    const node = [process.execPath, ...flags, '-e', `${PRELUDE};(async () => {${script}})()`]
    const [command = process.execPath, ...rest] = [...under, ...node]
    this.child = spawn(command, rest, {
      env: {
        ...process.env,
        ...env,
        PIX_ADDON: ADDON,
        PIX_ARGS: JSON.stringify(args),
        PIX_LAZY: lazy ? '1' : '',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const timer = setTimeout(() => this.child.kill('SIGKILL'), ms)
    const { stdout, stderr } = this.child
    if (!stdout || !stderr) throw new Error('no pipes')
    createInterface({ input: stdout }).on('line', (line) => {
      this.#stdout += `${line}\n`
      this.said.push(JSON.parse(line))
    })
    stderr.setEncoding('utf8').on('data', (text) => {
      this.#stderr += text
    })
    this.ended = new Promise((resolve) => {
      this.child.once('close', (code, signal) => {
        clearTimeout(timer)
        resolve({ code, signal, stdout: this.#stdout, stderr: this.#stderr })
      })
    })
    onTestFinished(() => {
      this.child.kill('SIGKILL')
    })
  }

  get pid(): number {
    return this.child.pid as number
  }

  /** The n-th line that it says. */
  async line<T>(n = 0): Promise<T> {
    await until(`line ${n} of a process (${this.#stderr})`, () => {
      const { exitCode, signalCode } = this.child
      if (this.said.length <= n && (exitCode !== null || signalCode !== null))
        throw new Error(`ended with ${exitCode ?? signalCode}: ${this.#stderr}`)
      return this.said.length > n
    })
    return this.said[n] as T
  }
}

/** Runs a script in a process of its own to its end. */
export const run = (script: string, options?: RunOptions): Promise<Ended> =>
  new Process(script, options).ended

/** The JSON lines that a process said. */
export const lines = ({ stdout }: Ended): unknown[] =>
  stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

/** Makes a folder that others may write to, whatever the umask. */
export function openToAll(path: string): void {
  chmodSync(path, 0o777)
}

export const isRoot = process.geteuid?.() === 0
