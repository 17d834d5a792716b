/** Hand-made stand-ins for pi and the addon. The real ones are proven end to end elsewhere. */
import { createNotices } from '../../extension/background.ts'
import type {
  BeforeAgentStartEvent,
  BeforeAgentStartResult,
  Command,
  Component,
  Context,
  ExtensionApi,
  MessageRenderer,
  SessionEntry,
  SessionStartEvent,
  Theme,
  Ui,
  WidgetFactory,
} from '../../extension/host.ts'
import { register } from '../../extension/index.ts'
import { type Addon, createNativeLoader } from '../../extension/native.ts'
import { createOffList } from '../../extension/off-list.ts'
import type {
  AttachState,
  Candidate,
  Config,
  Connection,
  ConnectionState,
  Diagnosis,
  EditorEvent,
  PreparedContext,
} from '../../index.js'

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
const segmented = new Map<string, string[]>()
export function graphemes(text: string): string[] {
  let found = segmented.get(text)
  if (!found) {
    found = Array.from(segmenter.segment(text), (part) => part.segment)
    segmented.set(text, found)
  }
  return found
}

const WIDE =
  /\p{Emoji_Presentation}|\p{Regional_Indicator}|\u200d|\ufe0f|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]/u
const clusterCells = (cluster: string): number => (/^\p{M}+$/u.test(cluster) ? 0 : WIDE.test(cluster) ? 2 : 1)
export const cells = (text: string): number => graphemes(text).reduce((sum, c) => sum + clusterCells(c), 0)

/** What the vectors of the area `width` ask of the addon. */
export function truncate(text: string, width: number): string {
  const safe = text.replace(
    /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
    (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`,
  )
  if (width === 0) return ''
  if (cells(safe) <= width) return safe
  let kept = ''
  for (const cluster of graphemes(safe)) {
    if (cells(kept) + clusterCells(cluster) > width - 1) break
    kept += cluster
  }
  return `${kept}…`
}

/** Marks colours so that a test sees them; `plain` takes the marks off. */
export const theme: Theme = { fg: (color, text) => `<${color}>${text}</>` }
export const plain = (line: string): string => line.replaceAll(/<\w+>|<\/>/g, '')

export const candidate = (over: Partial<Candidate> = {}): Candidate => ({
  id: 'a',
  transport: 'ws',
  ide: 'vscode',
  name: 'VS Code',
  workspaceFolder: '/repo',
  workspaceFolders: ['/repo'],
  matchLength: 5,
  direct: true,
  lastActivity: 1,
  verdict: 'usable',
  reason: '',
  checks: { parsed: 'valid', pid: 'not-checked', probes: [] },
  ...over,
})

export const diagnosis = (over: Partial<Diagnosis> = {}): Diagnosis => ({
  version: '0.1.0',
  platform: 'linux-x64',
  pidCheck: true,
  folders: [{ path: '/home/alice/lock', windows: false, locks: 1 }],
  candidates: [candidate()],
  homes: ['/home/alice'],
  advice: [],
  ...over,
})

export const prepared = (over: Partial<PreparedContext> = {}): PreparedContext => ({
  customType: 'pi-x-ide/context',
  content: '### IDE Context\n- **IDE**: vscode\n- **File**: `src/foo.ts`\n- **Selection**: L10-L20',
  hash: 'h1',
  source: 'vscode',
  filePath: '/repo/src/foo.ts',
  displayPath: 'src/foo.ts',
  ranges: [{ start: { line: 9, character: 0 }, end: { line: 19, character: 3 } }],
  rangeLabels: ['L10-L20'],
  ...over,
})

export class FakeConnection {
  candidate: Candidate | null = candidate()
  server = { name: 'VS Code' }
  state: ConnectionState = 'connected'
  message: string | null = null
  attachState: AttachState = 'idle'
  shown: { name: string; ranges: string } | null = null
  next: PreparedContext | null = null
  mentioned: string[] = []
  calls: string[] = []
  waits: (number | undefined)[] = []
  listeners: ((event: EditorEvent) => void)[] = []
  logged: ReturnType<Connection['log']> = []
  watched: ReturnType<Connection['watching']> = []

  log = () => this.logged
  watching = () => this.watched
  label = () => this.shown
  latest = () =>
    this.shown && { source: 'vscode', filePath: `/repo/${this.shown.name}`, ranges: [], receivedAt: 1 }
  mentions = () => this.mentioned
  onEvent = (listener: (event: EditorEvent) => void) => {
    this.listeners.push(listener)
    return () => {
      this.calls.push('unsubscribe')
    }
  }
  prepareContext = async (options?: { waitMs?: number }) => {
    this.waits.push(options?.waitMs)
    return this.next
  }
  markInjected = ({ hash }: PreparedContext) => {
    this.calls.push(`injected ${hash}`)
    this.next = null
    this.attachState = 'sent'
  }
  attach = () => {
    this.calls.push('attach')
    this.attachState = 'pending'
  }
  switchTo = async ({ id }: Candidate) => {
    this.calls.push(`switchTo ${id}`)
  }
  close = async () => {
    this.calls.push('close')
  }

  /** As native code does: to every listener, whether or not it still wants to hear. */
  emit(event: EditorEvent): void {
    for (const listener of this.listeners) listener(event)
  }
  select(name: string, ranges: string): void {
    this.shown = { name, ranges }
    this.attachState = 'pending'
    this.emit({
      type: 'selection',
      attach: 'pending',
      snapshot: { source: 'vscode', filePath: `/repo/${name}`, ranges: [], receivedAt: 1 },
    })
  }
}

export interface FakeAddon extends Addon {
  opened: FakeConnection[]
  options: unknown[]
  found: Candidate[]
  /** What the doctor is told; an error is thrown. */
  health: Diagnosis | Error | Promise<never>
  diagnosed: string[]
  config: Config
  /** What `connectBest` waits for before it answers. */
  gate: Promise<unknown>
  failure: Error | null
}

export function fakeAddon(): FakeAddon {
  const addon: FakeAddon = {
    opened: [],
    options: [],
    found: [candidate()],
    health: diagnosis(),
    diagnosed: [],
    config: { statusDisplay: 'widget', icons: 'unicode', share: 'full', openFile: true, problems: [] },
    gate: Promise.resolve(),
    failure: null,
    connectBest: async (_cwd, options) => {
      addon.options.push(options)
      const connection = new FakeConnection()
      await addon.gate
      if (addon.failure) throw addon.failure
      addon.opened.push(connection)
      return connection as unknown as Connection
    },
    discover: async () => addon.found,
    diagnose: async (cwd) => {
      addon.diagnosed.push(cwd)
      if (addon.health instanceof Error) throw addon.health
      return addon.health
    },
    loadConfig: async () => addon.config,
    truncateToWidth: truncate,
  }
  return addon
}

type Mode = NonNullable<Context['mode']>

export class FakeSession {
  branch: SessionEntry[] = []
  notices: { text: string; type: string | undefined }[] = []
  pasted: string[] = []
  widgets: (string[] | WidgetFactory | undefined)[] = []
  statuses: (string | undefined)[] = []
  answer: (options: string[]) => string | undefined = () => undefined
  offered: string[] = []
  widget: Component | undefined
  repaints = 0
  stale = false
  id = 's1'
  file: string | undefined = '/sessions/s1.jsonl'
  readonly ctx: Context
  readonly ui: Ui

  constructor(mode: Mode = 'tui', old = false) {
    const hasUI = mode === 'tui' || mode === 'rpc'
    this.ui = {
      notify: (text, type) => {
        if (hasUI) this.notices.push({ text, type })
      },
      select: async (_title, options) => {
        this.offered = options
        return this.answer(options)
      },
      setStatus: (_key, text) => {
        this.statuses.push(text)
      },
      setWidget: (_key: string, content: string[] | WidgetFactory | undefined) => {
        this.widgets.push(content)
        this.widget?.dispose?.()
        this.widget = undefined
        if (typeof content === 'function') {
          this.widget = content({ requestRender: () => (this.repaints += 1) }, theme)
        }
      },
      pasteToEditor: (text) => {
        this.pasted.push(text)
      },
      getAllThemes: () => (mode === 'tui' ? [{ name: 'dark' }] : []),
    }
    const self = this
    this.ctx = {
      get ui() {
        if (self.stale) throw new Error('This extension ctx is stale after session replacement or reload.')
        return self.ui
      },
      hasUI,
      ...(old ? {} : { mode }),
      cwd: '/repo',
      sessionManager: {
        getBranch: () => this.branch,
        getSessionId: () => this.id,
        getSessionFile: () => this.file,
      },
    }
  }

  line(width = 80): string | undefined {
    const first = this.widget?.render(width)[0]
    return first === undefined ? undefined : plain(first)
  }
}

export interface Instance {
  start: (session: FakeSession, event?: Partial<SessionStartEvent>) => Promise<void>
  shutdown: () => Promise<void>
  prompt: (
    session: FakeSession,
    event?: Partial<BeforeAgentStartEvent>,
  ) => Promise<BeforeAgentStartResult | undefined>
  ide: (session: FakeSession, args?: string) => Promise<void>
  shortcut: (session: FakeSession) => void
  command: Command
  renderer: MessageRenderer
  shortcuts: string[]
}

/** One pi process: what its extension instances share, and a factory call per instance. */
export function fakeProcess(addon: Addon | Error, env: Record<string, string> = {}) {
  const loads: number[] = []
  const native = createNativeLoader(() => {
    loads.push(1)
    if (addon instanceof Error) throw addon
    return addon
  })
  const deps = { native, env, notices: createNotices(), off: createOffList() }
  return { loads, instance: () => instance((pi) => register(pi, deps)) }
}

function instance(factory: (pi: ExtensionApi) => void): Instance {
  // biome-ignore lint/suspicious/noExplicitAny: handlers of every event in one map
  const handlers = new Map<string, (event: any, ctx: Context) => any>()
  const shortcuts = new Map<string, (ctx: Context) => void>()
  let command: Command | undefined
  let renderer: MessageRenderer | undefined
  factory({
    on: (event: string, handler: (...args: never[]) => unknown) => void handlers.set(event, handler as never),
    registerCommand: (_name, registered) => {
      command = registered
    },
    registerMessageRenderer: (_type, registered) => {
      renderer = registered
    },
    registerShortcut: (key, { handler }) => void shortcuts.set(key, handler),
  })
  if (!command || !renderer) throw new Error('the factory did not register everything')
  const registered = command
  return {
    start: async (session, event) => {
      handlers.get('session_start')?.({ type: 'session_start', reason: 'startup', ...event }, session.ctx)
      await settle()
    },
    shutdown: async () =>
      handlers.get('session_shutdown')?.({ type: 'session_shutdown' }, undefined as never),
    prompt: async (session, event) =>
      handlers.get('before_agent_start')?.({ type: 'before_agent_start', ...event }, session.ctx),
    ide: (session, args = '') => registered.handler(args, session.ctx),
    shortcut: (session) => shortcuts.values().next().value?.(session.ctx),
    command: registered,
    renderer,
    shortcuts: [...shortcuts.keys()],
  }
}

/** Lets everything that is only waiting for other promises happen. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
