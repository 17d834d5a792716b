/** The one line that the user sees: a widget above the editor, or a text in pi's status line. */
import type { Config, Connection, Icons } from '../index.js'
import { fitLine, type LineParts, type Truncate } from './fit.ts'
import type { Theme, Ui, WidgetFactory } from './host.ts'

export const LINE_ID = 'pi-x-ide'

export type LineState =
  | { kind: 'hidden' }
  | { kind: 'connecting' }
  | { kind: 'error' }
  | { kind: 'connected'; source?: string }
  | { kind: 'pending' | 'sent'; name: string; ranges: string; source?: string }

interface Glyphs {
  icon: string
  pending: string
  sent: string
  error: string
  spinner: readonly string[]
  ellipsis: string
}

const UNICODE: Glyphs = {
  icon: '⧉',
  pending: '⇡',
  sent: '✓',
  error: '✕',
  spinner: ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'],
  ellipsis: '…',
}
const ASCII: Glyphs = {
  icon: '[ide]',
  pending: '^',
  sent: 'ok',
  error: 'x',
  spinner: ['|', '/', '-', '\\'],
  ellipsis: '...',
}

export const glyphs = (icons: Icons): Glyphs => (icons === 'ascii' ? ASCII : UNICODE)

const COLOR = {
  connecting: 'dim',
  connected: 'dim',
  pending: 'success',
  sent: 'dim',
  error: 'error',
} as const satisfies Record<Exclude<LineState['kind'], 'hidden'>, Parameters<Theme['fg']>[0]>

const FRAME_MS = 90
/** Strings handed to the host know no width: RPC clients and the status line cut for themselves. */
const STRING_CELLS = 120

/** What a connection, or the failure to get one, looks like on the line. */
export function lineState(link: { connection: Connection | null; problem: string | null } | null): LineState {
  if (!link) return { kind: 'hidden' }
  const { connection, problem } = link
  if (!connection) return { kind: problem ? 'error' : 'hidden' }
  switch (connection.state) {
    case 'connecting':
      return { kind: 'connecting' }
    case 'waiting':
      return { kind: 'error' }
    case 'connected': {
      const label = connection.label()
      const attach = connection.attachState
      const source = sourceOf(connection)
      if (!label || attach === 'idle') return { kind: 'connected', ...source }
      return { kind: attach, ...label, ...source }
    }
    default:
      return { kind: 'hidden' }
  }
}

/** Zed sends nothing by itself: whoever sees the line is told where it comes from. */
const sourceOf = ({ candidate }: Connection): { source?: string } =>
  candidate?.transport === 'zed' ? { source: ` (${candidate.name})` } : {}

/** The line without colours and not yet cut; null when there is nothing to show. */
export function lineParts(state: LineState, icons: Icons, frame = 0): LineParts | null {
  const set = glyphs(icons)
  const mark = (text: string): LineParts => ({ prefix: `${set.icon} ${text}`, name: '', suffix: '' })
  switch (state.kind) {
    case 'hidden':
      return null
    case 'connecting':
      return mark(set.spinner[frame % set.spinner.length] ?? '')
    case 'error':
      return mark(set.error)
    case 'connected':
      return mark(`${set.sent}${state.source ?? ''}`)
    default:
      return {
        prefix: `${set.icon} ${set[state.kind]} `,
        name: state.name,
        suffix: `${state.ranges}${state.source ?? ''}`,
      }
  }
}

export interface StatusLine {
  /** Nothing is drawn before this, so that no line flashes in the place the user did not choose. */
  configure: (config: Pick<Config, 'statusDisplay' | 'icons'>) => void
  show: (state: LineState) => void
  dispose: () => void
}

export interface LineHost {
  /** Read anew each time: a stale context of 1.6.0 throws here, and that ends the line. */
  ui: () => Ui
  tui: boolean
  truncate: Truncate
}

export function createStatusLine({ ui, tui, truncate }: LineHost): StatusLine {
  let state: LineState = { kind: 'hidden' }
  let shown = ''
  let config: Pick<Config, 'statusDisplay' | 'icons'> | null = null
  let frame = 0
  let timer: NodeJS.Timeout | undefined
  let repaint: (() => void) | undefined
  let published: string | undefined
  let disposed = false

  /** No caller of this line, a timer among them, may see an exception: it would end pi. */
  function safely(action: () => void): void {
    if (disposed) return
    try {
      action()
    } catch {
      disposed = true
      clearInterval(timer)
    }
  }

  function fitted(width: number): string {
    const icons = config?.icons ?? 'unicode'
    const parts = lineParts(state, icons, frame)
    return parts ? fitLine(parts, width, truncate, glyphs(icons).ellipsis) : ''
  }

  const widget: WidgetFactory = (screen, theme) => {
    repaint = () => screen.requestRender()
    let cached: { key: string; text: string } | undefined
    return {
      render: (width) => {
        if (disposed || state.kind === 'hidden') return []
        try {
          const key = `${width} ${frame} ${shown}`
          if (cached?.key !== key) cached = { key, text: fitted(width) }
          return [cached.text === '' ? '' : theme.fg(COLOR[state.kind], cached.text)]
        } catch {
          return []
        }
      },
      invalidate: () => {
        cached = undefined
      },
      dispose: () => {
        repaint = undefined
      },
    }
  }

  function publish(): void {
    if (!config) return
    if (tui && config.statusDisplay === 'widget') {
      repaint?.()
      return
    }
    const text = (tui || state.kind !== 'connecting' ? fitted(STRING_CELLS) : '') || undefined
    if (text === published) return
    published = text
    if (config.statusDisplay === 'statusline') ui().setStatus(LINE_ID, text)
    else ui().setWidget(LINE_ID, text === undefined ? undefined : [text], { placement: 'aboveEditor' })
  }

  function spin(): void {
    const wanted = tui && config !== null && state.kind === 'connecting'
    if (wanted && !timer) {
      timer = setInterval(() => {
        frame += 1
        safely(publish)
      }, FRAME_MS)
      timer.unref()
    } else if (!wanted && timer) {
      clearInterval(timer)
      timer = undefined
    }
  }

  return {
    configure: (wanted) =>
      safely(() => {
        config = wanted
        if (wanted.statusDisplay === 'statusline') {
          ui().setWidget(LINE_ID, undefined)
        } else {
          ui().setStatus(LINE_ID, undefined)
          if (tui) ui().setWidget(LINE_ID, widget, { placement: 'aboveEditor' })
        }
        spin()
        publish()
      }),
    show: (next) =>
      safely(() => {
        const key = JSON.stringify(next)
        if (key === shown) return
        state = next
        shown = key
        spin()
        publish()
      }),
    dispose: () =>
      safely(() => {
        clearInterval(timer)
        const drawn = config
        config = null
        disposed = true
        if (drawn?.statusDisplay === 'statusline') ui().setStatus(LINE_ID, undefined)
        else if (drawn && (tui || published !== undefined)) ui().setWidget(LINE_ID, undefined)
      }),
  }
}
