import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Connection, EditorSnapshot } from '../../index.d.ts'
import { discover, readZed, watchZed } from '../../index.js'
import { BUILD_MS, type Expected, fixture, LiveZed, makeZed, type ZedEvent } from '../harness/zed.ts'
import { closedAfterwards } from './bridge.ts'
import { environment, folder, ownHome, rejection, sleep, until } from './support.ts'

const GENERATIONS = ['2023', '2024', '2025a', '2025b', '2025c', '2026']
const read = (file: string): Expected => JSON.parse(readFileSync(file, 'utf8'))

beforeAll(() => void fixture(), BUILD_MS)

test('readZed gives the active editor of every generation and leaves the files alone', async () => {
  const out = folder()
  makeZed(out, ['--all-gens'])
  for (const generation of GENERATIONS) {
    const root = join(out, generation)
    const expected = read(join(root, 'expected.json'))
    const files = () =>
      readdirSync(dirname(expected.db)).map((name) => [name, readFileSync(join(dirname(expected.db), name))])
    const before = files()
    const options = { cwd: join(root, 'projects/alpha'), database: expected.db, checkPid: false, text: true }
    const shown = await readZed(options)
    expect(shown?.source).toBe('zed')
    expect(shown?.filePath).toBe(expected.active.path)
    expect(shown?.workspaceFolder).toBe(options.cwd)
    expect(shown?.ranges[0]?.text).toBe(expected.active.selected_text ?? undefined)
    expect((await readZed({ ...options, text: false }))?.ranges[0]?.text).toBeUndefined()
    expect(files()).toEqual(before)
  }
})

test('what cannot be read rejects with its code', async () => {
  const out = folder()
  makeZed(out, ['--close'])
  const { db } = read(join(out, 'expected.json'))
  const cwd = join(out, 'projects/alpha')
  const failure = async (options: object) =>
    (await rejection(readZed({ cwd, checkPid: false, ...options }))).code
  expect(await failure({ database: join(out, 'absent.sqlite') })).toBe('PIX_ZED_MISSING')
  expect(await failure({ database: join(out, 'expected.json') })).toBe('PIX_ZED_DAMAGED')
  expect(await failure({ database: 'relative' })).toBe('PIX_INVALID_ARGUMENT')
  expect(await failure({ cwd: 'relative' })).toBe('PIX_INVALID_ARGUMENT')
  expect(await readZed({ cwd: '/nowhere', database: db, checkPid: false })).toBeNull()
  // No Zed runs here.
  expect(await readZed({ cwd, database: db })).toBeNull()
  expect((await rejection(watchZed({ cwd, database: db }))).code).toBe('PIX_ZED_NOT_RUNNING')
  expect((await rejection(readZed({ cwd, signal: AbortSignal.abort(new Error('enough')) }))).message).toBe(
    'enough',
  )
})

test('every channel is a candidate, and PI_X_IDE_ZED switches it off', async () => {
  const home = ownHome()
  const out = folder()
  environment({ XDG_DATA_HOME: out, PI_X_IDE_PID_CHECK: '0', HOME: home })
  for (const channel of ['stable', 'preview']) makeZed(out, ['--channel', channel])
  const cwd = join(out, 'projects/alpha')
  const found = await discover(cwd, { all: true })
  expect(
    found.map(({ name, transport, direct, verdict }) => `${name}: ${transport} ${direct} ${verdict}`).sort(),
  ).toEqual(['Zed Preview: zed true usable', 'Zed: zed true usable'])
  environment({ PI_X_IDE_ZED: 'off' })
  expect(await discover(cwd, { all: true })).toEqual([])
})

/** The tick, and what the issue of a settled value may take after it, with room for a machine that is busy. */
const STANDS_MS = 1000
/** `npm run soak` sets a longer one. */
const RUN_MS = Number(process.env.PIX_ZED_RUN_MS ?? 20_000)
const RESTART_MS = 5_000

test('four writers that checkpoint, crash and come back: what is told was committed, what stands is told', {
  timeout: RUN_MS + 120_000,
}, async () => {
  environment({ PI_X_IDE_ZED_POLL_INTERVAL_MS: '100' })
  let late = 0
  let ticked = performance.now()
  const probe = setInterval(() => {
    late = Math.max(late, performance.now() - ticked)
    ticked = performance.now()
  }, 20)
  onTestFinished(() => clearInterval(probe))
  const writers = await Promise.all([0, 1, 2, 3].map((n) => Followed.start(folder(), n)))
  const end = performance.now() + RUN_MS
  for (let round = 0; performance.now() < end; round++) {
    await sleep(RESTART_MS)
    await writers[round % writers.length]?.restart(round % 2 === 0 ? 'kill' : 'close')
  }
  for (const writer of writers) {
    await writer.end()
    expect(writer.problems).toEqual([])
    // Where this process itself was held up nothing can be said of delays.
    if (late < 300) expect(writer.missed).toEqual([])
    expect(writer.told).toBeGreaterThan(5)
    const names = readdirSync(dirname(await writer.database()))
    expect(names.filter((name) => !/^db\.sqlite(-wal|-shm)?$/.test(name))).toEqual([])
    expect(writer.log.filter((line) => /busy/.test(line))).toEqual([])
  }
})

/** One writer, and what is told of it. The active editor stays the same file, which is plain ASCII. */
class Followed {
  readonly problems: string[] = []
  readonly missed: string[] = []
  told = 0
  #root: string
  #seed: number
  #zed!: LiveZed
  #connection!: Connection
  #committed = new Set<string>()
  #latest = ''

  private constructor(root: string, seed: number) {
    this.#root = root
    this.#seed = seed
  }

  static async start(root: string, seed: number): Promise<Followed> {
    const followed = new Followed(root, seed)
    followed.#write()
    const options = {
      cwd: join(root, 'projects/alpha'),
      database: await followed.database(),
      checkPid: false,
    }
    followed.#connection = closedAfterwards(await watchZed(options))
    followed.#connection.onEvent((event) => {
      if (event.type !== 'selection') return
      followed.told += 1
      const latest = followed.#connection.latest({ text: true })
      if (latest) followed.#check(latest)
    })
    return followed
  }

  database = (): Promise<string> => this.#zed.database()

  get log(): string[] {
    return this.#connection.log().map(({ message }) => message)
  }

  #write(): void {
    const args = ['--interval-ms', String(STANDS_MS), '--checkpoint-every', '3', '--seed', String(this.#seed)]
    const zed = new LiveZed(this.#root, args, (event) => this.#noted(event))
    this.#zed = zed
    onTestFinished(() => zed.end('kill'))
  }

  #noted(event: ZedEvent): void {
    if (event.event === 'ready') return void this.#committed.add('line 0042')
    if (event.event !== 'selection') return
    const text = readFileSync(join(this.#root, 'projects/alpha/src/main.py'), 'latin1')
    const said = event.ranges.map(([start, end]) => text.slice(start, end)).filter(Boolean)
    const state = said.join('|')
    this.#committed.add(state)
    setTimeout(() => {
      if (this.#zed.events.at(-1) === event && this.#latest !== state)
        this.missed.push(`${state} at ${event.n}`)
    }, STANDS_MS * 0.9)
  }

  #check(latest: EditorSnapshot): void {
    this.#latest = latest.ranges.map(({ text }) => text ?? '').join('|')
    const state = this.#latest
    // The writer's line may come after what we saw of it ourselves.
    setTimeout(() => {
      if (!this.#committed.has(state)) this.problems.push(`never committed: ${state}`)
    }, STANDS_MS * 0.9)
  }

  async restart(how: 'kill' | 'close'): Promise<void> {
    await this.#zed.end(how)
    this.#write()
    const told = this.told
    await until('told again after a restart', () => this.told > told)
  }

  async end(): Promise<void> {
    await this.#zed.end('close')
    await sleep(STANDS_MS)
  }
}
