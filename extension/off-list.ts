/** The sessions that `/ide off` holds for. Kept per process, so that `/reload` and `/resume` do not undo it. */
import type { Context, SessionStartEvent } from './host.ts'

export interface OffList {
  has: (ctx: Context) => boolean
  add: (ctx: Context) => void
  delete: (ctx: Context) => void
  /** A fork goes on with the session that it came from, switched off or not. */
  inherit: (event: SessionStartEvent, ctx: Context) => void
}

export function createOffList(): OffList {
  const keys = new Set<string>()
  return {
    has: (ctx) => keysOf(ctx).some((key) => keys.has(key)),
    add: (ctx) => {
      for (const key of keysOf(ctx)) keys.add(key)
    },
    delete: (ctx) => {
      for (const key of keysOf(ctx)) keys.delete(key)
    },
    inherit: ({ reason, previousSessionFile }, ctx) => {
      if (reason !== 'fork' || previousSessionFile === undefined || !keys.has(previousSessionFile)) return
      for (const key of keysOf(ctx)) keys.add(key)
    },
  }
}

/** The id, and the file where there is one: a session kept in memory has none, and a fork is told only the file. */
function keysOf({ sessionManager }: Context): string[] {
  const file = sessionManager.getSessionFile()
  return file === undefined ? [sessionManager.getSessionId()] : [sessionManager.getSessionId(), file]
}
