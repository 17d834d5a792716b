import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { afterAll, onTestFinished } from 'vitest'

/** The addon as a user's program requires it. */
export const ADDON = join(dirname(fileURLToPath(import.meta.url)), '../../index.js')

/** pi's folder in most tests; nothing needs it to exist. */
export const CWD = '/w/app'

/** How long a step may take before a test gives up. Nothing is ever asserted to be this fast. */
export const DEADLINE_MS = 20_000

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

/** Makes a folder that others may write to, whatever the umask. */
export function openToAll(path: string): void {
  chmodSync(path, 0o777)
}

export const isRoot = process.geteuid?.() === 0

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
