/**
 * The subset of pi that this extension uses, as both hosts (0.73.1 and 1.6.0) provide it. It is written down here
 * instead of imported because the two live in different npm scopes and a wrong value import ends pi.
 *
 * Members are function-typed properties, not methods, so that `host.check.ts` compares their parameters strictly:
 * a colour or an event that only one host knows is a type error.
 */

export type NoticeType = 'info' | 'warning' | 'error'

export interface Theme {
  fg: (
    color: 'success' | 'error' | 'dim' | 'customMessageText' | 'customMessageLabel',
    text: string,
  ) => string
}

export interface Component {
  render: (width: number) => string[]
  invalidate: () => void
  dispose?: () => void
}

export type WidgetFactory = (tui: { requestRender: () => void }, theme: Theme) => Component

export interface Ui {
  notify: (message: string, type?: NoticeType) => void
  select: (title: string, options: string[]) => Promise<string | undefined>
  setStatus: (key: string, text: string | undefined) => void
  setWidget: {
    (key: string, content: string[] | undefined, options?: { placement?: 'aboveEditor' }): void
    (key: string, content: WidgetFactory | undefined, options?: { placement?: 'aboveEditor' }): void
  }
  pasteToEditor: (text: string) => void
  getAllThemes: () => readonly unknown[]
}

/** An entry of the session file. Custom messages have `type: 'custom_message'` in both hosts. */
export interface SessionEntry {
  type: string
  customType?: string
  details?: unknown
}

export interface Context {
  ui: Ui
  /** True in the TUI and in RPC, false in print and JSON mode. */
  hasUI: boolean
  /** Unknown to 0.73.1. */
  mode?: 'tui' | 'rpc' | 'json' | 'print'
  cwd: string
  sessionManager: {
    getBranch: () => readonly SessionEntry[]
    getSessionId: () => string
    getSessionFile: () => string | undefined
  }
}

export interface SessionStartEvent {
  type: 'session_start'
  reason: 'startup' | 'reload' | 'new' | 'resume' | 'fork'
  previousSessionFile?: string
}

export interface BeforeAgentStartEvent {
  type: 'before_agent_start'
  /** Unknown to 0.73.1, which fires the event for prompts of the user only. */
  messageType?: 'user' | 'custom'
}

export interface BeforeAgentStartResult {
  message: { customType: string; content: string; display: boolean; details: unknown }
}

export interface CustomMessage {
  content: string | readonly { type: string; text?: string }[]
  details?: unknown
}

export type MessageRenderer = (
  message: CustomMessage,
  options: { expanded: boolean },
  theme: Theme,
) => Component | undefined

export interface Completion {
  value: string
  label: string
  description?: string
}

export interface Command {
  description: string
  getArgumentCompletions: (prefix: string) => Completion[] | null
  handler: (args: string, ctx: Context) => Promise<void>
}

export interface ExtensionApi {
  on: {
    (event: 'session_start', handler: (event: SessionStartEvent, ctx: Context) => void): unknown
    (event: 'session_shutdown', handler: () => Promise<void>): unknown
    (
      event: 'before_agent_start',
      handler: (event: BeforeAgentStartEvent, ctx: Context) => Promise<BeforeAgentStartResult | undefined>,
    ): unknown
  }
  registerCommand: (name: string, command: Command) => void
  registerMessageRenderer: (customType: string, renderer: MessageRenderer) => void
  /** A method on purpose: the hosts ask for a literal key type, our key is checked at run time. */
  registerShortcut(key: string, shortcut: { description: string; handler: (ctx: Context) => void }): void
}

/** 0.73.1 has no `mode`; there, only the TUI has themes to offer. */
export function isTui(ctx: Context): boolean {
  if (ctx.mode !== undefined) return ctx.mode === 'tui'
  return ctx.hasUI && ctx.ui.getAllThemes().length > 0
}
