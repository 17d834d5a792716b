import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Box } from './box.ts'
import { isAlive, run } from './processes.ts'
import { type UntilOptions, until } from './until.ts'

const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

const statusLineOf = (screen: string) =>
  screen
    .split('\n')
    .findLast((line) => line.includes('⧉'))
    ?.trim() ?? ''

/** Names the terminals of one process, so that several fit into one box. */
let count = 0

export interface TuiOptions {
  columns?: number
  rows?: number
}

/** Interactive pi in a tmux server of its own: own socket, no configuration of the user, no tmux around it. */
export class Tui {
  #box: Box
  #socket: string
  #pidFile: string

  private constructor(box: Box) {
    const id = ++count
    this.#box = box
    this.#socket = join(box.root, `tmux-${id}`)
    this.#pidFile = join(box.root, `tui-${id}.pid`)
  }

  static async start(
    box: Box,
    args: readonly string[] = [],
    { columns = 110, rows = 40 }: TuiOptions = {},
  ): Promise<Tui> {
    const tui = new Tui(box)
    const config = join(box.root, 'tmux.conf')
    writeFileSync(config, 'set -g escape-time 0\nset -g status off\nset -g remain-on-exit off\n')
    // The inner shell becomes pi, so that its number is known; the outer one stays to tell how pi ended.
    const pi = [...box.host.command, ...args].map(quote).join(' ')
    const script = `sh -c 'echo $$ > "$0"; exec "$@"' ${quote(tui.#pidFile)} ${pi} 2> ${quote(join(box.root, 'tui.err'))}; echo "PI-EXIT $?"; exec sleep 900`
    box.defer(() => tui.#tmux(['kill-server']).catch(() => {}))
    await tui.#tmux([
      '-f',
      config,
      'new-session',
      '-d',
      '-s',
      'pi',
      '-x',
      String(columns),
      '-y',
      String(rows),
      script,
    ])
    // Should this process be killed, its server must not outlive it for long.
    await tui.#tmux(['run-shell', '-b', '-C', '-d', '900', 'kill-server'])
    return tui
  }

  async #tmux(args: readonly string[]): Promise<string> {
    const env = { ...this.#box.env, TERM: 'xterm-256color' }
    const result = await run(['tmux', '-u', '-S', this.#socket], args, {
      cwd: this.#box.cwd,
      env,
      ms: 20_000,
    })
    if (result.code !== 0) throw new Error(`tmux ${args.join(' ')}: ${result.stderr || result.signal}`)
    return result.stdout
  }

  /** The process number of pi itself. */
  get pid(): Promise<number> {
    return until('the process number of pi', () =>
      existsSync(this.#pidFile) ? Number(readFileSync(this.#pidFile, 'utf8')) : 0,
    )
  }

  async isRunning(): Promise<boolean> {
    return isAlive(await this.pid)
  }

  /** Presses keys by their tmux names: `Enter`, `C-M-k`. */
  async keys(...names: string[]): Promise<void> {
    await this.#tmux(['send-keys', '-t', 'pi', ...names])
  }

  async type(text: string): Promise<void> {
    await this.#tmux(['send-keys', '-t', 'pi', '-l', '--', text])
  }

  /** Types a line, waits until it stands in the input box, and submits it. */
  async submit(text: string): Promise<void> {
    await this.type(text)
    await this.until(`"${text}" in the input box`, async () => (await this.input()).includes(text))
    await this.keys('Enter')
  }

  async resize(columns: number, rows = 40): Promise<void> {
    await this.#tmux(['resize-window', '-t', 'pi', '-x', String(columns), '-y', String(rows)])
  }

  screen(): Promise<string> {
    return this.#tmux(['capture-pane', '-p', '-t', 'pi'])
  }

  /** What stands between the two rules of the input box. */
  async input(): Promise<string> {
    const lines = (await this.screen()).split('\n')
    const rules = lines.flatMap((line, index) => (/^─{10,}/.test(line) ? [index] : []))
    const [top, bottom] = rules.slice(-2)
    return top === undefined || bottom === undefined ? '' : lines.slice(top + 1, bottom).join('\n')
  }

  /** Our line above the input box, '' when there is none. */
  async statusLine(): Promise<string> {
    return statusLineOf(await this.screen())
  }

  seeStatus(pattern: RegExp, options?: UntilOptions): Promise<string> {
    return this.#look(`the status line to match ${pattern}`, options, (screen) => {
      const line = statusLineOf(screen)
      return pattern.test(line) ? line || ' ' : undefined
    })
  }

  see(pattern: RegExp, options?: UntilOptions): Promise<string> {
    return this.#look(`the screen to match ${pattern}`, options, (screen) =>
      pattern.test(screen) ? screen : undefined,
    )
  }

  /** Waits for something on the screen; a pi that has ended will not show it any more. */
  #look(
    what: string,
    options: UntilOptions | undefined,
    found: (screen: string) => string | undefined,
  ): Promise<string> {
    return this.until(
      what,
      async () => {
        const screen = await this.screen()
        const result = found(screen)
        if (result === undefined && screen.includes('PI-EXIT'))
          throw new Error(`pi ended before ${what}:\n${screen}`)
        return result
      },
      options,
    )
  }

  until<T>(what: string, probe: () => T | Promise<T>, options: UntilOptions = {}): Promise<NonNullable<T>> {
    const explain = async () => {
      const errors = join(this.#box.root, 'tui.err')
      return `${this.#box.host.label}; stderr: ${existsSync(errors) ? readFileSync(errors, 'utf8') : ''}\n--- screen\n${await this.screen()}\n---`
    }
    return until(what, probe, { explain, ...options })
  }

  /** Sends a prompt and waits until its answer is on the screen. */
  async prompt(message: string): Promise<void> {
    const answer = `REPLY-${this.#box.model.requests.length + 1}`
    await this.submit(message)
    await this.see(new RegExp(answer))
  }

  /** Leaves pi as a user does, and returns its exit code. */
  async quit(): Promise<number> {
    await this.keys('C-c')
    await this.keys('C-d')
    const screen = await this.see(/PI-EXIT \d+/)
    return Number(/PI-EXIT (\d+)/.exec(screen)?.[1])
  }
}
