import { describe, expect, it } from 'vitest'
import { attachShortcut, bridgeAllowed, isShortcut, switchedOff } from '../../extension/settings.ts'

const shortcut = (value?: string) =>
  attachShortcut(value === undefined ? {} : { PI_X_IDE_ATTACH_SHORTCUT: value })

describe('attachShortcut', () => {
  it('defaults to ctrl+alt+k', () => {
    expect(shortcut()).toEqual({ key: 'ctrl+alt+k' })
  })
  it.each(['', ' ', '0', 'false', 'OFF', 'none', 'disabled'])('%j disables it', (value) => {
    expect(shortcut(value)).toEqual({ key: null })
  })
  it('takes another key, whatever its case', () => {
    expect(shortcut(' Alt+Shift+P ')).toEqual({ key: 'alt+shift+p' })
  })
  it('falls back, and says so, when the key is no key', () => {
    const { key, problem } = shortcut('ctrl+alt+kk')
    expect(key).toBe('ctrl+alt+k')
    expect(problem).toContain('"ctrl+alt+kk"')
  })
  it('is none when everything is off', () => {
    expect(attachShortcut({ PI_X_IDE: 'off' })).toEqual({ key: null })
  })
})

describe('isShortcut', () => {
  it.each(['ctrl+k', 'CTRL+ALT+K', 'alt+pageUp', 'super+enter', 'f7', 'shift+f12', 'ctrl+]', 'alt+1'])(
    'accepts %s',
    (key) => expect(isShortcut(key)).toBe(true),
  )
  it.each([
    'k',
    'shift+k',
    'enter',
    'ctrl+',
    'ctrl++',
    'ctrl+ctrl+k',
    'meta+k',
    'ctrl-k',
    'f13',
    'ctrl+ k',
    'ctrl+é',
  ])('refuses %s', (key) => expect(isShortcut(key)).toBe(false))
})

describe('bridgeAllowed', () => {
  it.each([
    [{}, true, true],
    [{}, false, false],
    [{ PI_X_IDE_PRINT: '1' }, false, true],
    [{ PI_X_IDE_PRINT: '0' }, false, false],
    [{ PI_X_IDE: 'off' }, true, false],
    [{ PI_X_IDE: 'off', PI_X_IDE_PRINT: '1' }, false, false],
    [{ PI_X_IDE: 'on' }, true, true],
  ])('%j with a UI %s: %s', (env, hasUI, allowed) => {
    expect(bridgeAllowed(env, hasUI)).toBe(allowed)
  })
  it('knows OFF in any case', () => {
    expect(switchedOff({ PI_X_IDE: ' Off' })).toBe(true)
  })
})
