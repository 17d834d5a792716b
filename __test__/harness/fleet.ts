import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Box } from './box.ts'
import { Editor } from './editor.ts'
import { resume, suspend } from './processes.ts'
import type { Random } from './random.ts'

/** One editor of a fleet. */
export interface Member {
  /** Never used twice, so that what pi says tells which editor it means. */
  readonly name: string
  readonly editor: Editor
  /** Text of its lock file. */
  readonly lock: string
  isSuspended: boolean
  /** Since when pi could connect to it, in milliseconds since the epoch. */
  availableSince: number
}

/** More would only be more of the same: one that pi has, one that it fails over to. */
const MOST = 2

/** Editors that live in one box at the same time, in whatever state. */
export class Fleet {
  #box: Box
  #piPid: number
  #members: Member[] = []
  #count = 0
  #crashed: Member | undefined

  constructor(box: Box, piPid: number) {
    this.#box = box
    this.#piPid = piPid
  }

  /** Those that pi can connect to. */
  get running(): readonly Member[] {
    return this.#members.filter(({ isSuspended }) => !isSuspended)
  }

  get suspended(): readonly Member[] {
    return this.#members.filter(({ isSuspended }) => isSuspended)
  }

  get members(): readonly Member[] {
    return this.#members
  }

  get hasRoom(): boolean {
    return this.#members.length < MOST
  }

  get hasCrashed(): boolean {
    return this.#crashed !== undefined
  }

  async start(): Promise<Member> {
    const name = `Editor ${++this.#count}`
    const editor = await Editor.start(this.#box, { name })
    const lock = readFileSync(editor.lockFile, 'utf8')
    const availableSince = statSync(editor.lockFile).mtimeMs
    const member = { name, editor, lock, isSuspended: false, availableSince }
    this.#members.push(member)
    return member
  }

  /**
   * Starts an editor on the port of one that crashed, whose lock file still lies there, and had the focus later. Nobody
   * can choose the port of an editor, so it is the old lock file that is given the port; pi sleeps until it is there.
   */
  async startBesideOldLock(): Promise<Member> {
    await suspend(this.#piPid)
    try {
      const member = await this.start()
      this.#leaveOldLock(member)
      return Object.assign(member, { availableSince: Date.now() })
    } finally {
      resume(this.#piPid)
    }
  }

  #leaveOldLock({ editor }: Member) {
    if (!this.#crashed) throw new Error('no editor has crashed yet')
    const old = this.#crashed.editor
    const file = join(
      dirname(editor.lockFile),
      basename(old.lockFile).replace(`-${old.port}.lock`, `-${editor.port}.lock`),
    )
    const text = JSON.stringify({
      ...JSON.parse(this.#crashed.lock),
      port: editor.port,
      focusedAt: Date.now(),
    })
    writeFileSync(`${file}.tmp`, text, { mode: 0o600 })
    renameSync(`${file}.tmp`, file)
  }

  async kill(member: Member): Promise<void> {
    this.#forget(member)
    this.#crashed = member
    await member.editor.kill()
  }

  async quit(member: Member): Promise<void> {
    this.#forget(member)
    await member.editor.quit()
  }

  async suspend(member: Member): Promise<void> {
    member.isSuspended = true
    await member.editor.suspend()
  }

  resume(member: Member): void {
    member.isSuspended = false
    member.availableSince = Date.now()
    member.editor.resume()
  }

  #forget(member: Member) {
    this.#members = this.#members.filter((one) => one !== member)
  }
}

/** Something that happens to a fleet. */
export interface Step {
  readonly title: string
  readonly isPossible: (fleet: Fleet) => boolean
  /** Returns the name of the editor that it is about. */
  readonly run: (fleet: Fleet, random: Random) => Promise<string>
}

const START: Step = {
  title: 'start',
  isPossible: (fleet) => fleet.hasRoom,
  run: async (fleet) => (await fleet.start()).name,
}

const STEPS: readonly Step[] = [
  START,
  START, // twice, since there are more ways to end
  {
    title: 'start beside old lock',
    isPossible: (fleet) => fleet.hasRoom && fleet.hasCrashed,
    run: async (fleet) => (await fleet.startBesideOldLock()).name,
  },
  onOne('kill', 'members', (fleet, member) => fleet.kill(member)),
  onOne('suspend', 'running', (fleet, member) => fleet.suspend(member)),
  onOne('resume', 'suspended', async (fleet, member) => fleet.resume(member)),
  onOne('quit', 'running', (fleet, member) => fleet.quit(member)),
  onOne('kill and start', 'members', async (fleet, member) => {
    await fleet.kill(member)
    await fleet.start()
  }),
  onOne('quit and start', 'running', async (fleet, member) => {
    await fleet.quit(member)
    await fleet.start()
  }),
]

function onOne(
  title: string,
  among: 'members' | 'running' | 'suspended',
  act: (fleet: Fleet, member: Member) => Promise<void>,
): Step {
  return {
    title,
    isPossible: (fleet) => fleet[among].length > 0,
    run: async (fleet, random) => {
      const member = random.pick(fleet[among])
      await act(fleet, member)
      return member.name
    },
  }
}

/** Deals steps in random order, each of them before any comes again where that is possible. */
export class StepDeck {
  #random: Random
  #cards: Step[] = []

  constructor(random: Random) {
    this.#random = random
  }

  next(fleet: Fleet): Step {
    if (!this.#cards.some((step) => step.isPossible(fleet))) this.#cards = this.#random.shuffled(STEPS)
    const index = this.#cards.findIndex((step) => step.isPossible(fleet))
    // A fleet has either room for another editor or one that can be ended.
    return this.#cards.splice(index, 1)[0] as Step
  }
}
