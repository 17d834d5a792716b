import { type ChildProcess, spawn } from 'node:child_process'
import type { Box } from './box.ts'
import { end } from './processes.ts'
import { type UntilOptions, until } from './until.ts'

/** One line of pi's output; the members depend on `type` and `method`. */
export interface RpcLine {
  type: string
  id?: string
  method?: string
  // biome-ignore lint/suspicious/noExplicitAny: pi's own protocol, looked into by the tests only
  [member: string]: any
}

/** `pi --mode rpc`: JSON lines both ways. */
export class Rpc {
  readonly lines: RpcLine[] = []
  stderr = ''
  readonly exit: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  #child: ChildProcess
  #box: Box
  #calls = 0

  constructor(box: Box, args: readonly string[] = [], env: Record<string, string> = {}) {
    const [command, ...first] = box.host.command
    const child = spawn(command as string, [...first, '--mode', 'rpc', ...args], {
      cwd: box.cwd,
      env: { ...box.env, ...env },
    })
    this.#child = child
    this.#box = box
    box.defer(() => end(child))
    child.stdin.on('error', () => {}) // a pi that has ended is seen by whoever waits for its answer
    child.stderr.setEncoding('utf8').on('data', (text) => {
      this.stderr += text
    })
    let rest = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const parts = (rest + text).split('\n')
      rest = parts.pop() ?? ''
      for (const part of parts) this.lines.push(this.#parse(part))
    })
    this.exit = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })))
  }

  #parse(line: string): RpcLine {
    try {
      return JSON.parse(line)
    } catch {
      return { type: 'not-json', line }
    }
  }

  get pid(): number {
    return this.#child.pid as number
  }

  /** Requests of extensions to the user interface, in order. */
  ui(method: string): RpcLine[] {
    return this.lines.filter((line) => line.type === 'extension_ui_request' && line.method === method)
  }

  /** Our line as it stands now, '' when there is none. */
  get statusLine(): string {
    return (
      this.ui('setWidget')
        .findLast((line) => line.widgetKey === 'pi-x-ide')
        ?.widgetLines?.join('\n') ?? ''
    )
  }

  seeStatus(pattern: RegExp, options?: UntilOptions): Promise<string> {
    return this.until(
      `the status line to match ${pattern}`,
      () => (pattern.test(this.statusLine) ? this.statusLine || ' ' : undefined),
      options,
    )
  }

  until<T>(what: string, probe: () => T | Promise<T>, options: UntilOptions = {}): Promise<NonNullable<T>> {
    const explain = () =>
      `${this.#box.host.label}, exit ${this.#child.exitCode ?? this.#child.signalCode}; stderr: ${this.stderr || 'empty'}; last lines:\n${this.lines
        .slice(-15)
        .map((line) => JSON.stringify(line).slice(0, 300))
        .join('\n')}`
    return until(what, probe, { explain, ...options })
  }

  send(command: object): void {
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`)
  }

  /** One command, its `data`; rejects when pi refuses it. */
  // biome-ignore lint/suspicious/noExplicitAny: pi's own protocol, looked into by the tests only
  async call(type: string, members: object = {}): Promise<any> {
    const id = `call-${++this.#calls}`
    this.send({ id, type, ...members })
    const answer = await this.until(`the answer to ${type}`, () =>
      this.lines.find((line) => line.type === 'response' && line.id === id),
    )
    if (!answer.success) throw new Error(`${type}: ${answer.error}`)
    return answer.data
  }

  /** Sends a prompt and waits until pi is idle again. */
  async prompt(message: string): Promise<void> {
    const last = this.#box.host.pi === 'old' ? 'agent_end' : 'agent_settled'
    const before = this.lines.filter((line) => line.type === last).length
    await this.call('prompt', { message })
    await this.until(
      `${last} of "${message}"`,
      () => this.lines.filter((line) => line.type === last).length > before,
    )
  }

  /** Ends pi as a client does, by closing its input. */
  close(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    this.#child.stdin?.end()
    return this.exit
  }
}
