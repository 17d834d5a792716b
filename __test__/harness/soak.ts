import { readdirSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Box } from './box.ts'
import { block, CHECKOUT, expectBlocks } from './extension.ts'
import { Fleet, type Member, type Step, StepDeck } from './fleet.ts'
import { residentMiB, type Socket, usage } from './processes.ts'
import { Random } from './random.ts'
import { Rpc } from './rpc.ts'
import { SocketWatch } from './socket-watch.ts'
import { Tally } from './tally.ts'
import { settled, until } from './until.ts'

/**
 * For pi to be where it has to be after a step: longer than the longest delay between two tries (30 s), with two editors
 * before that which accept a connection and say nothing (5 s each).
 */
const STEP_MS = 90_000

/** More than this above what pi took after the warm-up is a leak; its collector alone moves it by a few MiB. */
const GROWTH_MIB = 40

/** Milliseconds that one round may take, with what is around it; for the limit of the whole test. */
export const ROUND_MS = STEP_MS + 60_000

export interface SoakOptions {
  rounds: number
  /** The same seed makes the same steps. */
  seed: number
  /** Between two pings of pi, in milliseconds. */
  pingMs: number
  /** Told what happens, line by line. */
  log?: (line: string) => void
}

/** What there is of editors, as pi, its sockets and the editors themselves see it. */
interface View {
  /** First line of `/ide status`. */
  status: string
  sockets: Socket[]
  /** Clients of each editor that can be asked, by its name. */
  clients: Record<string, number>
}

type Usage = ReturnType<typeof usage> & { sockets: number }

interface Place {
  view: View
  /** Since when nothing has changed, in milliseconds since the epoch; some hundred of them late. */
  since: number
  /** The editor that pi is connected to. */
  holder: Member | undefined
}

/** Lets editors start, hang, crash and end beside one pi, and checks after each step that pi is where it should be. */
export async function soak(box: Box, options: SoakOptions): Promise<string[]> {
  const env = { PI_X_IDE_PING_INTERVAL_MS: String(options.pingMs) }
  const rpc = new Rpc(box, CHECKOUT, env)
  await rpc.call('get_state')
  return new Soak(box, rpc, options).run()
}

class Soak {
  #box: Box
  #rpc: Rpc
  #options: SoakOptions
  #random: Random
  #deck: StepDeck
  #fleet: Fleet
  #watch: SocketWatch
  #reconnects = new Tally()
  #farewells = new Tally()
  #journal: string[] = []
  /** The socket that pi had to an editor after the last step. */
  #held: string | undefined

  constructor(box: Box, rpc: Rpc, options: SoakOptions) {
    this.#box = box
    this.#rpc = rpc
    this.#options = options
    this.#random = new Random(options.seed)
    this.#deck = new StepDeck(this.#random)
    this.#fleet = new Fleet(box, rpc.pid)
    this.#watch = new SocketWatch(rpc.pid)
    box.defer(() => this.#watch.stop())
  }

  async run(): Promise<string[]> {
    const started = Date.now()
    const { rounds, seed, pingMs } = this.#options
    await this.#explained('before the first round', () => this.#begin())
    const before = await this.#usage()
    const warmUp = Math.min(rounds, Math.max(4, Math.floor(rounds / 5)))
    let warmMiB = 0
    for (let round = 1; round <= rounds; round++) {
      await this.#round(round)
      if (round === warmUp) warmMiB = residentMiB(this.#rpc.pid)
    }
    const end = await this.#explained('after the last round', () => this.#end(before, warmMiB))
    const seconds = Math.round((Date.now() - started) / 1000)
    return [
      `soak: seed ${seed}, ${rounds} rounds on ${this.#box.host.label}, ping every ${pingMs} ms, ${seconds} s`,
      'ms until connected again, by step:',
      ...this.#reconnects.table(),
      'ms until the connection to an editor that ended or hangs was given up, by step:',
      ...this.#farewells.table(),
      ...end,
    ]
  }

  /** As it will be at the end: one editor, connected. */
  async #begin() {
    await this.#fleet.start()
    this.#held = (await this.#arrive()).view.sockets[0]?.inode
  }

  async #round(round: number) {
    const step = this.#deck.next(this.#fleet)
    await this.#explained(`round ${round}, step "${step.title}"`, async () => {
      const at = Date.now()
      const name = await step.run(this.#fleet, this.#random)
      this.#note(`round ${round}: ${step.title}, ${name}`)
      const place = await this.#arrive()
      this.#measure(step, at, place)
      await this.#expectSelections(round, place)
      this.#note(`  ${place.view.status}, ${residentMiB(this.#rpc.pid).toFixed(1)} MiB`)
    })
  }

  #note(line: string) {
    this.#journal.push(line)
    this.#options.log?.(line)
  }

  /** Whoever reads of a failure has to be able to repeat it. */
  async #explained<T>(where: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (cause) {
      const { seed, rounds } = this.#options
      const journal = this.#journal.slice(-20).join('\n')
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new Error(
        `soak with seed ${seed}, ${rounds} rounds: ${where}: ${reason}\nBefore that:\n${journal}`,
        {
          cause,
        },
      )
    }
  }

  /** Waits until everybody agrees on where pi is, and that it may be there, and stays so for some pings. */
  async #arrive(): Promise<Place> {
    const quietMs = Math.min(Math.max(500, 2 * this.#options.pingMs), 1000)
    let place: Place | undefined
    let wrong: string | undefined
    await until(
      'pi to be where it should be',
      async () => {
        const view = await this.#look()
        const next = { view, since: Date.now(), holder: this.#holderIn(view) }
        const before = wrong === undefined ? place : undefined
        wrong = this.#wrongIn(next)
        const isSame = before && this.#isSame(before, next)
        place = isSame ? { ...next, since: before.since } : next
        return wrong === undefined && Date.now() - place.since >= quietMs
      },
      { ms: STEP_MS, explain: () => this.#explain(place, wrong ?? 'it does not stay where it is') },
    )
    return place as Place
  }

  async #look(): Promise<View> {
    const status = await this.#status()
    const clients = this.#fleet.running.map(
      async ({ name, editor }) => [name, (await editor.clients()).length] as const,
    )
    return {
      status,
      sockets: this.#watch.established(),
      clients: Object.fromEntries(await Promise.all(clients)),
    }
  }

  async #status(): Promise<string> {
    const before = this.#rpc.ui('notify').length
    await this.#rpc.call('prompt', { message: '/ide status' })
    const report = await this.#rpc.until('the answer to /ide status', () =>
      this.#rpc
        .ui('notify')
        .slice(before)
        .find(({ message }) => message.startsWith('IDE:')),
    )
    return report.message.split('\n')[0]
  }

  #holderIn({ status }: View): Member | undefined {
    return this.#fleet.members.find(({ name }) => status === `IDE: ${name} (connected)`)
  }

  #isSame(one: Place, other: Place): boolean {
    return one.holder === other.holder && this.#holdsSocket(one) === this.#holdsSocket(other)
  }

  #holdsSocket({ view, holder }: Place): string | undefined {
    return holder && view.sockets[0]?.inode
  }

  /** Why pi may not stay as it is; undefined when all is well. */
  #wrongIn({ view: { status, sockets, clients }, holder }: Place): string | undefined {
    // One that hangs may be dialled, again and again, but with one socket at a time.
    if (sockets.length > 1) return `pi has ${sockets.length} sockets`
    if (this.#fleet.running.length === 0)
      return status.includes('(connected)') ? 'pi counts as connected, and no editor is alive' : undefined
    if (!holder || holder.isSuspended) return 'pi is connected to no editor that is alive'
    if (sockets[0]?.remotePort !== holder.editor.port) return `pi has no socket to ${holder.name}`
    const counts = Object.entries(clients).filter(([name, count]) => count !== Number(name === holder.name))
    return counts.length > 0 ? `wrong number of clients: ${JSON.stringify(counts)}` : undefined
  }

  #explain(place: Place | undefined, wrong: string): string {
    const editors = this.#fleet.members.map(
      ({ name, editor, isSuspended }) =>
        `${name}: process ${editor.pid}, port ${editor.port}${isSuspended ? ', suspended' : ''}`,
    )
    const seen = `seen last: ${JSON.stringify(place?.view)}`
    const locks = `lock files: ${this.#locks().join(', ') || 'none'}`
    return [wrong, ...editors, seen, locks, `stderr of pi: ${this.#rpc.stderr || 'empty'}`].join('\n')
  }

  #locks(): string[] {
    const [member] = this.#fleet.members
    return member ? readdirSync(dirname(member.editor.lockFile)) : []
  }

  /** How long it took since the step, or since there was an editor to connect to. */
  #measure({ title }: Step, at: number, place: Place) {
    const inode = this.#holdsSocket(place)
    if (inode === this.#held) return
    const lost = this.#held && this.#watch.lifeOf(this.#held)
    const found = inode && this.#watch.lifeOf(inode)
    if (lost) this.#farewells.add(title, Math.max(0, lost.lastSeen - at))
    if (found && place.holder)
      this.#reconnects.add(title, this.#delay(at, place, place.holder, found.firstSeen))
    this.#held = inode
  }

  /** A socket that was opened to an editor while it hung tells nothing of when the editor answered. */
  #delay(at: number, { since }: Place, { availableSince }: Member, opened: number): number {
    const connected = opened < availableSince ? since : opened
    return Math.max(0, connected - Math.max(at, availableSince))
  }

  /**
   * A connection is one through which something comes: each round selects another line. Every editor does, since a pi
   * that pings as often as here changes to another one when the machine is busy.
   */
  async #expectSelections(round: number, { holder }: Place) {
    if (!holder) return
    await Promise.all(this.#fleet.running.map(({ editor }) => editor.select('src/foo.ts', round, round)))
    await this.#rpc.seeStatus(new RegExp(`foo\\.ts#L${round}$`))
  }

  #usage(): Promise<Usage> {
    return settled('threads and descriptors', () => this.#usageNow(), { quietMs: 2000 })
  }

  #usageNow(): Usage {
    return { ...usage(this.#rpc.pid), sockets: this.#watch.established().length }
  }

  async #end(before: Usage, warmMiB: number): Promise<string[]> {
    for (const member of this.#fleet.suspended) this.#fleet.resume(member)
    for (const member of this.#fleet.running) await this.#fleet.quit(member)
    const last = await this.#fleet.start()
    await this.#arrive()
    await this.#expectOnlyLockOf(last)
    const after = await this.#expectUsage(before)
    const endMiB = residentMiB(this.#rpc.pid)
    const memory = `resident ${warmMiB.toFixed(0)} MiB after the warm-up, ${endMiB.toFixed(0)} MiB at the end`
    if (endMiB > warmMiB + GROWTH_MIB) throw new Error(`pi grows: ${memory}`)
    // The prompt's own sockets, to the model, are none of ours.
    this.#watch.stop()
    await this.#expectPrompt(last)
    return [
      `pi before the first round ${JSON.stringify(before)}, after the last ${JSON.stringify(after)}`,
      `pi ${memory}`,
      `most sockets of pi to editors at one moment: ${this.#watch.most}`,
    ]
  }

  /** What the dead left behind was removed, since pi has looked after the last of them died. */
  #expectOnlyLockOf({ editor }: Member) {
    const own = JSON.stringify([basename(editor.lockFile)])
    return until('the lock files of dead editors to go', () => JSON.stringify(this.#locks()) === own, {
      explain: () => `there are ${this.#locks().join(', ')}`,
    })
  }

  async #expectUsage(before: Usage) {
    let now = this.#usageNow()
    await until(
      'threads, descriptors and sockets of pi to go back',
      () => {
        now = this.#usageNow()
        return (
          now.threads <= before.threads &&
          now.descriptors <= before.descriptors &&
          now.sockets === before.sockets
        )
      },
      { explain: () => `before the first round ${JSON.stringify(before)}, now ${JSON.stringify(now)}` },
    )
    return now
  }

  /** pi is still good for what it is there for, and ends as it should. */
  async #expectPrompt({ editor }: Member) {
    await editor.select('src/foo.ts', 10, 20)
    await this.#rpc.seeStatus(/⇡ foo\.ts#L10-L20$/)
    await this.#rpc.prompt('after all that')
    expectBlocks(this.#box, block('src/foo.ts', 'L10-L20'))
    const errors = this.#rpc.lines.filter(({ type }) => type === 'extension_error')
    if (errors.length > 0) throw new Error(`the extension failed: ${JSON.stringify(errors)}`)
    const { code, signal } = await this.#rpc.close()
    if (code !== 0) throw new Error(`pi ended with ${code ?? signal}: ${this.#rpc.stderr}`)
    await editor.waitForClients(0)
  }
}
