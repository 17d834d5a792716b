import { onTestFinished } from 'vitest'
import type { Candidate, Connection, ConnectOptions, SnapshotInput } from '../../index.d.ts'
import { connect } from '../../index.js'
import { closedAfterwards } from './bridge.ts'
import type { Lock } from './lock-files.ts'
import { candidateOf, writeLock } from './lock-files.ts'
import type { Ws } from './sockets.ts'
import { WebSocketServer } from './sockets.ts'
import { CWD, folder } from './support.ts'

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
