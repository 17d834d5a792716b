/* draft: replaced by the generated file */
export type Transport = 'ws'
export type Verdict = 'usable' | 'not-answering' | 'foreign-host' | 'unsupported' | 'malformed' | 'untrusted' | 'stale'
export type ConnectionState = 'searching' | 'connecting' | 'connected' | 'waiting' | 'closed'
export type AttachState = 'idle' | 'pending' | 'sent'
export interface Position { line: number; character: number }
export interface Selection { start: Position; end: Position }
export interface Candidate {
  id: string; transport: Transport; ide: string; name: string; pid?: number; host?: string; port?: number
  workspaceFolder?: string; workspaceFolders: string[]; matchLength: number; direct: boolean
  lastActivity: number; verdict: Verdict; reason: string
}
export interface ServerInfo { name: string; version?: string; ide?: string }
export interface RangeInput { text: string; selection: Selection }
export interface SnapshotInput { source?: string; filePath: string; workspaceFolder?: string; ranges: RangeInput[]; receivedAt?: number }
export interface SnapshotRange { selection: Selection; textLength: number; hash: string; text?: string }
export interface EditorSnapshot { source: string; filePath: string; workspaceFolder?: string; ranges: SnapshotRange[]; receivedAt: number }
export interface DiagnosticFix { action: 'fix' | 'send-diagnostic'; source: string; filePath: string; workspaceFolder?: string; documentVersion?: number; triggerRange: Selection; diagnostics: Diagnostic[] }
export interface Diagnostic { severity: 'error' | 'warning'; message: string; source?: string; code?: string; codeTarget?: string; range: Selection; selectedText: string; contextLines: { line: number; text: string; isPrimary: boolean }[]; relatedInformation: { filePath: string; range: Selection; message: string }[] }
export type EditorEvent =
  | { type: 'selection'; snapshot: EditorSnapshot; attach: AttachState }
  | { type: 'cleared' }
  | { type: 'mention'; snapshot: EditorSnapshot; mentions: string[] }
  | { type: 'diagnosticFix'; request: DiagnosticFix }
  | { type: 'status'; state: ConnectionState; candidate?: Candidate; server?: ServerInfo; message?: string }
  | { type: 'closed'; reason: string }
  | { type: 'error'; code: string; message: string }
export interface DiscoverOptions { all?: boolean; cleanUp?: boolean; checkPid?: boolean; lockDir?: string; signal?: AbortSignal }
export interface ConnectOptions { cwd?: string; timeoutMs?: number; lastInjected?: string; signal?: AbortSignal }
export interface ConnectBestOptions { keepAlive?: boolean; lockDir?: string; checkPid?: boolean; timeoutMs?: number; lastInjected?: string; signal?: AbortSignal }
export interface PreparedContext { customType: string; content: string; hash: string; source: string; filePath: string; displayPath: string; ranges: Selection[]; rangeLabels: string[] }
export declare function discover(cwd: string, options?: DiscoverOptions): Promise<Candidate[]>
export declare function connect(candidate: Candidate, options?: ConnectOptions): Promise<Connection>
export declare function connectBest(cwd: string, options?: ConnectBestOptions): Promise<Connection | null>
export declare class Connection {
  get candidate(): Candidate | null
  get server(): ServerInfo | null
  get state(): ConnectionState
  /** Why the connection is in this state, as a sentence for the user, where there is something to say. */
  get message(): string | null
  get attachState(): AttachState
  latest(options?: { text?: boolean }): EditorSnapshot | null
  /** `foo.ts` or `foo.ts#L10-L20` of the latest snapshot: what the status line shows. */
  label(): { name: string; ranges: string } | null
  onEvent(listener: (event: EditorEvent) => void): () => void
  mentions(): string[]
  prepareContext(options?: { waitMs?: number }): Promise<PreparedContext | null>
  markInjected(prepared: PreparedContext): void
  attach(): void
  switchTo(candidate: Candidate): Promise<void>
  close(): Promise<void>
}
export interface IdeServerOptions { ide: string; name: string; version?: string; workspaceFolders: string[]; lockDir?: string; allowedHosts?: string[]; heartbeatMs?: number }
export interface ClientInfo { id: number; name?: string; version?: string; cwd?: string; connectedAt: number }
export declare class IdeServer {
  static start(options: IdeServerOptions): Promise<IdeServer>
  get port(): number
  get lockFile(): string
  publish(snapshot: SnapshotInput): void
  clear(): void
  mention(snapshot: SnapshotInput): ClientInfo | null
  requestFix(request: DiagnosticFix): ClientInfo | null
  setWorkspaceFolders(folders: string[]): Promise<void>
  focus(): Promise<void>
  clients(): ClientInfo[]
  close(): Promise<void>
}
export declare function formatMention(snapshot: SnapshotInput, cwd: string): string[]
export declare function formatContext(snapshot: SnapshotInput, cwd: string): string | null
export declare function truncateToWidth(text: string, width: number): string
export type StatusDisplay = 'widget' | 'statusline'
export type Icons = 'unicode' | 'nerd' | 'ascii'
export type Share = 'off' | 'path' | 'full'
export interface Config { statusDisplay: StatusDisplay; icons: Icons; share: Share; openFile: boolean; fixPrompt?: string; attachShortcut?: string; problems: string[] }
/** Effective configuration for a folder; never rejects for bad files: they are named in `problems`. */
export declare function loadConfig(cwd: string): Promise<Config>
/** Version of the native library, to be compared with that of package.json. */
export declare function version(): string
