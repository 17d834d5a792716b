import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import { userInfo } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../..')

/** Selections of an editor of a made database, see crates/zed-fixture. */
export interface Expected {
  db: string
  active: { workspace_id: number; item_id: number; path: string; selected_text?: string }
}

export type ZedEvent =
  | { event: 'ready'; db: string; pid: number; workspace_id: number; item_id: number }
  | { event: 'activate'; t: number; item_id: number }
  | { event: 'selection'; n: number; t: number; item_id: number; ranges: [number, number][] }
  | { event: 'stop'; n: number }

let program: string | undefined

/** For the first build, which takes a while; that of the Rust tests serves as well. */
export const BUILD_MS = 300_000

/** The maker of databases, built at first use; quick when nothing changed. */
export function fixture(): string {
  if (!program) {
    const args = ['build', '--quiet', '--workspace', '--bin', 'zed-fixture']
    // Tests have a home folder of their own, in which there is no toolchain.
    const env = { ...process.env, HOME: userInfo().homedir }
    const { status, stderr } = spawnSync('cargo', args, { cwd: ROOT, encoding: 'utf8', env })
    if (status !== 0) throw new Error(`zed-fixture does not build: ${stderr}`)
    program = join(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target'), 'debug/zed-fixture')
  }
  return program
}

/** Makes databases; `-wal` and `-shm` stay beside them as beside a running Zed. */
export function makeZed(out: string, args: readonly string[] = []): void {
  const { status, stderr } = spawnSync(fixture(), ['--out', out, ...args], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`zed-fixture: ${stderr}`)
}

/** A program that makes a database and goes on writing to it as Zed does. */
export class LiveZed {
  #process: ChildProcess
  #ready: Promise<Extract<ZedEvent, { event: 'ready' }>>
  readonly events: ZedEvent[] = []

  constructor(out: string, args: readonly string[], onEvent: (event: ZedEvent) => void = () => {}) {
    this.#process = spawn(fixture(), ['--out', out, '--live', ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#ready = new Promise((resolve, reject) => {
      const lines = createInterface({ input: this.#process.stdout as NodeJS.ReadableStream })
      lines.on('line', (line) => {
        const event = JSON.parse(line) as ZedEvent
        this.events.push(event)
        if (event.event === 'ready') resolve(event)
        onEvent(event)
      })
      this.#process.once('exit', (code) => reject(new Error(`zed-fixture ended with ${code}`)))
    })
    this.#ready.catch(() => {})
  }

  /** The path of its database, once that is there. */
  async database(): Promise<string> {
    return (await this.#ready).db
  }

  /** `SIGKILL`, or the end of its input: then it closes the database. */
  async end(how: 'kill' | 'close'): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const exited = new Promise((resolve) => this.#process.once('exit', resolve))
    if (how === 'kill') this.#process.kill('SIGKILL')
    else this.#process.stdin?.end()
    await exited
  }
}

/** A process whose executable has the name of Zed's; Linux only. Returns what ends it. */
export function pretendThatZedRuns(folder: string): () => void {
  mkdirSync(folder, { recursive: true })
  const executable = join(folder, 'zed-editor')
  copyFileSync('/bin/sleep', executable)
  const child = spawn(executable, ['600'], { stdio: 'ignore' })
  return () => void child.kill('SIGKILL')
}
