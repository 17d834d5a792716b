/** Small helpers for work that nobody waits for: it may neither hang pi nor end it. */
import type { NoticeType, Ui } from './host.ts'

/** The result of `promise`, or undefined after `ms`. A rejection within that time is passed on. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined)
  })
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** What 1.6.0 throws when a context outlives its session: not a fault, and nothing the user could act on. */
export const isStale = (error: unknown): boolean => messageOf(error).includes('stale')

/** A notice that must not fail: no UI, or one of a session that is gone. */
export function tell(ui: () => Ui, message: string, type: NoticeType): void {
  try {
    ui().notify(message, type)
  } catch {
    // Nobody is left to be told.
  }
}

export interface Notices {
  once: (ui: () => Ui, message: string, type: NoticeType) => void
}

/** Tells each cause once per process, however often sessions start again. */
export function createNotices(): Notices {
  const told = new Set<string>()
  return {
    once: (ui, message, type) => {
      if (told.has(message)) return
      told.add(message)
      tell(ui, message, type)
    },
  }
}
