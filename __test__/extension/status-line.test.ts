import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createStatusLine, type LineState, lineParts, lineState } from '../../extension/status-line.ts'
import type { Connection } from '../../index.js'
import { cells, FakeConnection, FakeSession, plain, truncate } from './fakes.ts'

const joined = (state: LineState, icons: 'unicode' | 'ascii' = 'unicode', frame = 0) => {
  const parts = lineParts(state, icons, frame)
  return parts && parts.prefix + parts.name + parts.suffix
}
const file = { name: 'foo.ts', ranges: '#L10-L20' }

describe('lineParts', () => {
  it.each<[LineState, string | null, string | null]>([
    [{ kind: 'pending', ...file }, '⧉ ⇡ foo.ts#L10-L20', '[ide] ^ foo.ts#L10-L20'],
    [{ kind: 'sent', ...file }, '⧉ ✓ foo.ts#L10-L20', '[ide] ok foo.ts#L10-L20'],
    [{ kind: 'pending', name: 'foo.ts', ranges: '' }, '⧉ ⇡ foo.ts', '[ide] ^ foo.ts'],
    [{ kind: 'connected' }, '⧉ ✓', '[ide] ok'],
    [{ kind: 'error' }, '⧉ ✕', '[ide] x'],
    [{ kind: 'connecting' }, '⧉ ⠋', '[ide] |'],
    [{ kind: 'hidden' }, null, null],
  ])('%j', (state, unicode, ascii) => {
    expect(joined(state)).toBe(unicode)
    expect(joined(state, 'ascii')).toBe(ascii)
  })
  it('turns the spinner', () => {
    expect(joined({ kind: 'connecting' }, 'unicode', 1)).toBe('⧉ ⠙')
    expect(joined({ kind: 'connecting' }, 'unicode', 10)).toBe('⧉ ⠋')
  })
})

describe('lineState', () => {
  const state = (over: Partial<FakeConnection>, problem: string | null = null) => {
    const connection = Object.assign(new FakeConnection(), over) as unknown as Connection
    return lineState({ connection, problem })
  }

  it('maps the connection', () => {
    expect(state({ state: 'searching' })).toEqual({ kind: 'hidden' })
    expect(state({ state: 'connecting' })).toEqual({ kind: 'connecting' })
    expect(state({ state: 'waiting' })).toEqual({ kind: 'error' })
    expect(state({ state: 'closed' })).toEqual({ kind: 'hidden' })
    expect(state({})).toEqual({ kind: 'connected' })
    expect(state({ shown: file, attachState: 'pending' })).toEqual({ kind: 'pending', ...file })
    expect(state({ shown: file, attachState: 'sent' })).toEqual({ kind: 'sent', ...file })
  })
  it('shows a link that failed, and hides one that is off or not yet there', () => {
    expect(lineState(null)).toEqual({ kind: 'hidden' })
    expect(lineState({ connection: null, problem: null })).toEqual({ kind: 'hidden' })
    expect(lineState({ connection: null, problem: 'no' })).toEqual({ kind: 'error' })
  })
  it('says no more than that it is connected while a problem is only remembered', () => {
    expect(state({}, 'a bad frame')).toEqual({ kind: 'connected' })
  })
})

const make = (session: FakeSession, tui = true) =>
  createStatusLine({ ui: () => session.ctx.ui, tui, truncate })

describe('the widget of the TUI', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('is registered once and updated in place', () => {
    const session = new FakeSession()
    const line = make(session)
    line.configure({ statusDisplay: 'widget', icons: 'unicode' })
    expect(session.line()).toBeUndefined()
    line.show({ kind: 'pending', ...file })
    expect(session.widget?.render(80)).toEqual(['<success>⧉ ⇡ foo.ts#L10-L20</>'])
    line.show({ kind: 'sent', ...file })
    expect(session.widget?.render(80)).toEqual(['<dim>⧉ ✓ foo.ts#L10-L20</>'])
    expect(session.widgets).toHaveLength(1)
    expect(session.statuses).toEqual([undefined])
  })
  it('asks for a repaint only when something changed', () => {
    const session = new FakeSession()
    const line = make(session)
    line.configure({ statusDisplay: 'widget', icons: 'unicode' })
    const before = session.repaints
    for (let index = 0; index < 5; index += 1) line.show({ kind: 'pending', ...file })
    expect(session.repaints).toBe(before + 1)
  })
  it('draws nothing before it knows where the user wants it', () => {
    const session = new FakeSession()
    make(session).show({ kind: 'pending', ...file })
    expect(session.widgets).toEqual([])
    expect(session.statuses).toEqual([])
  })
  it('stays within every width', () => {
    const session = new FakeSession()
    const line = make(session)
    line.configure({ statusDisplay: 'widget', icons: 'unicode' })
    line.show({ kind: 'pending', name: '👨‍👩‍👧‍👦项目\u001b[31m.ts', ranges: '#L1-L2' })
    for (let width = 0; width <= 200; width += 1) {
      const lines = session.widget?.render(width) ?? []
      expect(lines).toHaveLength(1)
      expect(cells(plain(lines[0] ?? ''))).toBeLessThanOrEqual(width)
    }
    expect(session.widget?.render(0)).toEqual([''])
  })
  it('spins only while connecting', () => {
    const session = new FakeSession()
    const line = make(session)
    line.configure({ statusDisplay: 'widget', icons: 'unicode' })
    line.show({ kind: 'connecting' })
    expect(session.line()).toBe('⧉ ⠋')
    vi.advanceTimersByTime(90)
    expect(session.line()).toBe('⧉ ⠙')
    line.show({ kind: 'connected' })
    expect(vi.getTimerCount()).toBe(0)
    line.show({ kind: 'connecting' })
    line.dispose()
    expect(vi.getTimerCount()).toBe(0)
    expect(session.widgets.at(-1)).toBeUndefined()
  })
  it('survives a theme that throws', () => {
    const session = new FakeSession()
    const broken = {
      fg: () => {
        throw new Error('no theme')
      },
    }
    const line = make(session)
    line.configure({ statusDisplay: 'widget', icons: 'unicode' })
    const factory = session.widgets[0]
    line.show({ kind: 'connected' })
    if (typeof factory !== 'function') throw new Error('no factory')
    expect(factory({ requestRender: () => {} }, broken).render(80)).toEqual([])
  })
  it('falls silent, timer included, once its context is stale', () => {
    const session = new FakeSession()
    const line = make(session)
    line.configure({ statusDisplay: 'statusline', icons: 'unicode' })
    line.show({ kind: 'connecting' })
    session.stale = true
    vi.advanceTimersByTime(1000)
    expect(vi.getTimerCount()).toBe(0)
    line.show({ kind: 'connected' })
    line.dispose()
  })
})

describe('strings', () => {
  it('go to RPC clients only when the text changed, and without a spinner', () => {
    const session = new FakeSession('rpc')
    const line = make(session, false)
    line.configure({ statusDisplay: 'widget', icons: 'unicode' })
    line.show({ kind: 'connecting' })
    expect(session.widgets).toEqual([])
    line.show({ kind: 'pending', ...file })
    line.show({ kind: 'pending', ...file })
    line.show({ kind: 'hidden' })
    expect(session.widgets).toEqual([['⧉ ⇡ foo.ts#L10-L20'], undefined])
    line.show({ kind: 'connected' })
    line.dispose()
    expect(session.widgets.at(-1)).toBeUndefined()
  })
  it('go to the status line when the user asked for it, and the widget is cleared', () => {
    const session = new FakeSession()
    const line = make(session)
    line.configure({ statusDisplay: 'statusline', icons: 'ascii' })
    line.show({ kind: 'pending', name: 'foo.ts', ranges: '#L10' })
    line.dispose()
    expect(session.statuses).toEqual(['[ide] ^ foo.ts#L10', undefined])
    expect(session.widgets).toEqual([undefined])
  })
})
