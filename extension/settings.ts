/** What the environment says about this extension. Read without the addon, because the factory must not load it. */

type Env = Readonly<Record<string, string | undefined>>

export const DEFAULT_SHORTCUT = 'ctrl+alt+k'

const OFF_WORDS = new Set(['0', 'false', 'off', 'none', 'disabled'])
const ON_WORDS = new Set(['1', 'true', 'on'])

const MODIFIER = /^(?:ctrl|alt|super|shift)$/
const NAMED_KEY =
  /^(?:escape|esc|enter|return|tab|space|backspace|delete|insert|clear|home|end|pageup|pagedown|up|down|left|right)$/
const TYPED_KEY = /^[a-z0-9`\-=[\]\\;',./!@#$%^&*()_|~{}:<>?]$/
const FUNCTION_KEY = /^f(?:[1-9]|1[0-2])$/

/**
 * Whether the bridge may work at all. Without a UI (print and JSON mode) it needs `PI_X_IDE_PRINT=1`, so that pi
 * processes which other extensions start stay clean.
 */
export function bridgeAllowed(env: Env, hasUI: boolean): boolean {
  return !switchedOff(env) && (hasUI || ON_WORDS.has(word(env.PI_X_IDE_PRINT)))
}

/** `PI_X_IDE=off`. */
export function switchedOff(env: Env): boolean {
  return OFF_WORDS.has(word(env.PI_X_IDE))
}

/** The key that attaches the selection (null: none), and what was wrong with the one that was asked for. */
export function attachShortcut(env: Env): { key: string | null; problem?: string } {
  const asked = env.PI_X_IDE_ATTACH_SHORTCUT
  if (switchedOff(env)) return { key: null }
  if (asked === undefined) return { key: DEFAULT_SHORTCUT }
  const key = word(asked)
  if (key === '' || OFF_WORDS.has(key)) return { key: null }
  if (isShortcut(key)) return { key }
  const problem = `PI_X_IDE_ATTACH_SHORTCUT=${JSON.stringify(asked)} is not a key combination such as ctrl+alt+k or f7; ${DEFAULT_SHORTCUT} is used instead.`
  return { key: DEFAULT_SHORTCUT, problem }
}

/** A pi key id that does not swallow plain typing: pi asks extensions before it lets the editor see the key. */
export function isShortcut(key: string): boolean {
  const modifiers = key.toLowerCase().split('+')
  const base = modifiers.pop() ?? ''
  if (!modifiers.every((name) => MODIFIER.test(name))) return false
  if (new Set(modifiers).size !== modifiers.length) return false
  if (FUNCTION_KEY.test(base)) return true
  return (TYPED_KEY.test(base) || NAMED_KEY.test(base)) && modifiers.some((name) => name !== 'shift')
}

const word = (value: string | undefined): string => (value ?? '').trim().toLowerCase()
