/** One attempt to follow the editors of a folder. A link that was closed never calls back again. */
import type { Connection, EditorEvent } from '../index.js'
import { isStale, messageOf } from './background.ts'
import type { Addon } from './native.ts'

export interface Link {
  /** Null until the addon has answered, and after `close()`. */
  readonly connection: Connection | null
  /** What went wrong last, as a sentence for the user. */
  readonly problem: string | null
  /** Settles, never rejects, when `connection` or `problem` is known. */
  readonly ready: Promise<void>
  /** Idempotent; settles when the addon has let go, never rejects. */
  close: () => Promise<void>
}

/**
 * Starts to connect and returns at once. `listener` gets every event of the editor, and null when the attempt itself
 * has settled. It is called from native code, where an exception would end pi: they are caught here.
 */
export function openLink(
  addon: Addon,
  cwd: string,
  lastInjected: string | undefined,
  listener: (event: EditorEvent | null) => void,
): Link {
  let closed = false
  let connection: Connection | null = null
  let problem: string | null = null
  let unsubscribe: (() => void) | undefined
  let closing: Promise<void> | undefined

  function deliver(event: EditorEvent | null): void {
    if (closed) return
    try {
      if (event?.type === 'status' && event.state === 'connected') problem = null
      listener(event)
    } catch (error) {
      if (!isStale(error)) problem = messageOf(error)
    }
  }

  async function open(): Promise<void> {
    try {
      const opened = await addon.connectBest(cwd, { keepAlive: true, ...(lastInjected && { lastInjected }) })
      if (closed) return await opened?.close()
      connection = opened
      unsubscribe = opened?.onEvent(deliver)
    } catch (error) {
      problem = messageOf(error)
    }
    deliver(null)
  }

  const ready = open()
  return {
    get connection() {
      return connection
    },
    get problem() {
      return problem
    },
    ready,
    close: () => {
      closed = true
      closing ??= letGo(connection)
      connection = null
      return closing
    },
  }

  async function letGo(held: Connection | null): Promise<void> {
    try {
      unsubscribe?.()
      await ready
      await held?.close()
    } catch {
      // It is gone either way.
    }
  }
}
