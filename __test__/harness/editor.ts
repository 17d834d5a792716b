import { type ChildProcess, spawn } from 'node:child_process'
import { dirname, join, posix, win32 } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ClientInfo, IdeServerOptions, SnapshotInput } from '../../index.d.ts'
import type { Box } from './box.ts'
import { REPO } from './hosts.ts'
import { end, resume, suspend, unguard } from './processes.ts'
import { until } from './until.ts'

const SCRIPT = join(dirname(fileURLToPath(import.meta.url)), 'editor-process.mjs')

/** The text that an editor of ours has selected; no test expects it in a request. */
export const SELECTED_TEXT = 'const selected = "never in the prompt"\n'

type Call = (method: string, params?: unknown) => Promise<unknown>

interface Answer {
  result?: unknown
  error?: { code?: string; message: string }
}

/**
 * An editor in a process of its own: it serves the box's project through the addon's IdeServer and writes its lock file
 * into the box's home. Lines are 1-based here, both ends included, as people count them.
 */
export class Editor {
  readonly port: number
  readonly lockFile: string
  #child: ChildProcess
  #folder: string
  #ide: string
  #call: Call

  private constructor(
    child: ChildProcess,
    options: IdeServerOptions,
    ready: { port: number; lockFile: string },
    call: Call,
  ) {
    this.#child = child
    this.#folder = options.workspaceFolders[0] ?? '/'
    this.#ide = options.ide
    this.port = ready.port
    this.lockFile = ready.lockFile
    this.#call = call
  }

  /** `inside`: a command in front, which runs the rest of its line somewhere else. */
  static async start(
    box: Box,
    options: Partial<IdeServerOptions> = {},
    inside: readonly string[] = [],
  ): Promise<Editor> {
    const full = { ide: 'vscode', name: 'VS Code', workspaceFolders: [box.cwd], ...options }
    const line = [...inside, process.execPath, SCRIPT, join(REPO, 'index.js'), JSON.stringify(full)]
    const child = spawn(line[0] as string, line.slice(1), { cwd: box.root, env: box.env })
    box.defer(() => end(child))
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text) => {
      stderr += text
    })
    child.stdin.on('error', () => {}) // an editor that has ended is reported by the call that finds it so
    let ready: { port: number; lockFile: string } | undefined
    const answers = new Map<number, Answer>()
    createInterface({ input: child.stdout }).on('line', (line) => {
      const message = JSON.parse(line)
      if (message.ready) ready = message.ready
      else answers.set(message.id, message)
    })
    const alive = (): undefined => {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`the editor ended with ${child.exitCode ?? child.signalCode}: ${stderr}`)
    }
    let calls = 0
    const call: Call = async (method, params) => {
      const id = ++calls
      child.stdin.write(`${JSON.stringify({ id, method, params })}\n`)
      const answer = await until(`the editor's ${method}`, () => answers.get(id) ?? alive(), {
        explain: () => stderr,
      })
      answers.delete(id)
      if (answer.error)
        throw Object.assign(new Error(`${method}: ${answer.error.message}`), { code: answer.error.code })
      return answer.result
    }
    return new Editor(
      child,
      full,
      await until('the editor', () => ready ?? alive(), { explain: () => stderr }),
      call,
    )
  }

  get pid(): number {
    return this.#child.pid as number
  }

  #snapshot(file: string, ...ranges: [first: number, last: number][]): SnapshotInput {
    // An editor that is played on another system names its files as it names its folder.
    const path = this.#folder.includes('\\') ? win32 : posix
    return {
      source: this.#ide,
      filePath: path.isAbsolute(file) ? file : path.join(this.#folder, file),
      workspaceFolder: this.#folder,
      ranges: ranges.map(([first, last]) => ({
        text: SELECTED_TEXT,
        selection: { start: { line: first - 1, character: 0 }, end: { line: last - 1, character: 3 } },
      })),
    }
  }

  /** Selects whole lines of a file; relative names are of the workspace folder. */
  async select(file: string, first: number, last: number): Promise<void> {
    await this.#call('publish', this.#snapshot(file, [first, last]))
  }

  /** Shows a file without selecting anything. */
  async open(file: string): Promise<void> {
    await this.#call('publish', this.#snapshot(file))
  }

  /** No editor is active any more. */
  async clear(): Promise<void> {
    await this.#call('clear')
  }

  /** Sends lines of a file to one pi, as the editor's own "mention" command does, and says to which. */
  async mention(file: string, first: number, last: number): Promise<ClientInfo | null> {
    return (await this.#call('mention', this.#snapshot(file, [first, last]))) as ClientInfo | null
  }

  async clients(): Promise<ClientInfo[]> {
    return (await this.#call('clients')) as ClientInfo[]
  }

  /** Waits until exactly `count` clients are connected, and returns them. */
  waitForClients(count: number): Promise<ClientInfo[]> {
    let seen: ClientInfo[] = []
    return until(
      `${count} client(s) of the editor`,
      async () => {
        seen = await this.clients()
        return seen.length === count ? seen : undefined
      },
      { explain: () => `there are ${JSON.stringify(seen)}` },
    )
  }

  async focus(): Promise<void> {
    await this.#call('focus')
  }

  /** Closes the server as an editor that ends does: clients are told, the lock file goes. */
  async close(): Promise<void> {
    await this.#call('close')
  }

  /** Ends the process as a user does who quits the editor: clients are told, the lock file goes. */
  async quit(): Promise<void> {
    const gone = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.stdin?.end()
    await gone
  }

  /** Hangs, with its socket open and its lock file there: it answers nothing, no call of this class either. */
  async suspend(): Promise<void> {
    await suspend(this.pid)
  }

  /** Goes on where it was suspended. */
  resume(): void {
    resume(this.pid)
  }

  /** Ends the process without any farewell: the lock file stays. */
  async kill(): Promise<void> {
    const gone = new Promise((resolve) => this.#child.once('exit', resolve))
    unguard(this.pid)
    this.#child.kill('SIGKILL')
    await gone
  }
}
