import { setTimeout as sleep } from 'node:timers/promises'

/** How long a step may take before the test gives up. Nothing is ever asserted to be this fast. */
export const DEADLINE_MS = 30_000

export interface UntilOptions {
  ms?: number
  /** Asked once, when the deadline has passed: what was there instead. */
  explain?: () => string | Promise<string>
}

/** Polls `probe` until it returns something truthy, and returns that. A probe that throws ends the wait. */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  { ms = DEADLINE_MS, explain }: UntilOptions = {},
): Promise<NonNullable<T>> {
  const end = Date.now() + ms
  for (;;) {
    const value = await probe()
    if (value) return value
    if (Date.now() > end) {
      const detail = explain ? `\n${await explain()}` : ''
      throw new Error(`waited ${ms} ms for ${what}${detail}`)
    }
    await sleep(50)
  }
}

/** Waits until `read` gives the same answer for `quietMs`, and returns it: for counts that have to settle first. */
export async function settled<T>(
  what: string,
  read: () => T | Promise<T>,
  { quietMs = 1000, ms = DEADLINE_MS } = {},
): Promise<T> {
  let last = await read()
  let since = Date.now()
  await until(
    `${what} to settle`,
    async () => {
      const now = await read()
      if (JSON.stringify(now) !== JSON.stringify(last)) {
        last = now
        since = Date.now()
      }
      return Date.now() - since >= quietMs
    },
    { ms, explain: () => `last seen: ${JSON.stringify(last)}` },
  )
  return last
}
