/** Loads the native addon, at the first session and never before: the factory also runs for `pi --help`. */
import { createRequire } from 'node:module'

type Native = typeof import('../index.js')

/** What the extension uses of the addon. */
export type Addon = Pick<Native, 'connectBest' | 'diagnose' | 'discover' | 'loadConfig' | 'truncateToWidth'>

export type LoadResult = { addon: Addon; error?: never } | { addon?: never; error: Error }

export interface NativeLoader {
  load: () => LoadResult
  /** The addon if a session has already loaded it. Never loads it. */
  peek: () => Addon | undefined
}

/** The code is what a search or a bug report finds, whatever the words are. */
export function withCode(error: Error): string {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? `${error.message}\n(${code})` : error.message
}

/** `dist/extension.mjs` lies one folder below `index.js`, and so does this file. */
const requireAddon = (): Addon => createRequire(import.meta.url)('../index.js') as Addon

/** Remembers the outcome, good or bad: a half-loaded library does not get better within one process. */
export function createNativeLoader(open: () => Addon = requireAddon): NativeLoader {
  let result: LoadResult | undefined
  return {
    load: () => {
      if (!result) {
        try {
          result = { addon: open() }
        } catch (cause) {
          result = { error: explained(cause) }
        }
      }
      return result
    },
    peek: () => result?.addon,
  }
}

/** Our own loader explains itself (`PIX_…`); anything else, such as a missing `index.js`, needs a sentence around it. */
function explained(cause: unknown): Error {
  if (cause instanceof Error && String((cause as { code?: unknown }).code).startsWith('PIX_')) return cause
  const reason = cause instanceof Error ? cause.message : String(cause)
  const advice = 'pi works without it. To get it back, run: pi remove npm:pi-x-ide && pi install npm:pi-x-ide'
  return new Error(`pi-x-ide could not load its native part: ${reason}\n${advice}`, { cause })
}
