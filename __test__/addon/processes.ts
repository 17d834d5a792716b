import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import { ADDON, DEADLINE_MS, until } from './support.ts'

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
