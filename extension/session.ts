/**
 * What lives between `session_start` and `session_shutdown`: one link to the editors, one line on the screen, and the
 * answers for the prompt and for `/ide`. It knows no protocol and no path; it maps the addon to pi.
 */
import type { Candidate, Config, Diagnosis, EditorEvent, Icons } from '../index.js'
import { isStale, messageOf, type Notices, tell, within } from './background.ts'
import { lastInjectedHash } from './context-message.ts'
import { ignoreDiagnostic, pasteMentions } from './editor-events.ts'
import { printable } from './fit.ts'
import {
  type BeforeAgentStartEvent,
  type BeforeAgentStartResult,
  type Context,
  isTui,
  type SessionStartEvent,
  type Ui,
} from './host.ts'
import { type Link, openLink } from './link.ts'
import { type Addon, type NativeLoader, withCode } from './native.ts'
import type { OffList } from './off-list.ts'
import { carriesContext, takePending } from './prompt.ts'
import { attachShortcut, bridgeAllowed, switchedOff } from './settings.ts'
import { createStatusLine, lineState, type StatusLine } from './status-line.ts'

/** pi waits for its shutdown handlers without limit, so the handler has to have one. */
const CLOSE_MS = 1000
/** A drive or a host that hangs must not keep the doctor from saying what it knows. */
const DIAGNOSE_MS = 10_000

interface Active {
  ctx: Context
  addon: Addon
  /** Null without a UI. */
  line: StatusLine | null
  /** Null while switched off. */
  link: Link | null
  /** Picked by hand in `/ide`: `auto` then matches again even if the editor is the same. */
  picked: boolean
  icons: Icons
  ignored: string | null
  notice: string | null
}

export interface SessionDeps {
  native: NativeLoader
  notices: Notices
  env: Readonly<Record<string, string | undefined>>
  off: OffList
}

export interface Facts {
  link: Link | null
  /** Why there is no link at all, as a sentence for the user. */
  reason: string | null
  /** What was received and not acted on. */
  ignored: string | null
}

export interface Session {
  start: (event: SessionStartEvent, ctx: Context) => void
  shutdown: () => Promise<void>
  prompt: (event: BeforeAgentStartEvent, ctx: Context) => Promise<BeforeAgentStartResult | undefined>
  attach: (ui: Ui) => void
  facts: () => Facts
  icons: () => Icons
  /** Every lock with its verdict. Like the next four, it rejects with a sentence for the user. */
  candidates: () => Promise<Candidate[]>
  diagnose: () => Promise<Diagnosis>
  /** As it is now; rejects where the addon did not load. */
  config: () => Promise<Config>
  pick: (candidate: Candidate) => Promise<void>
  /** True when the editor that matches best was connected already. */
  auto: () => Promise<boolean>
  off: () => void
}

export function createSession({ native, notices, env, off }: SessionDeps): Session {
  let active: Active | null = null
  let loadError: string | null = null

  /** Ends what the last session left, in the background. Every later callback of it finds its link closed. */
  function stop(): Promise<void> {
    const ended = active
    active = null
    ended?.line?.dispose()
    return ended?.link?.close() ?? Promise.resolve()
  }

  function start(event: SessionStartEvent, ctx: Context): void {
    void stop()
    if (!bridgeAllowed(env, ctx.hasUI)) return
    const ui = () => ctx.ui
    const { problem } = attachShortcut(env)
    if (problem) notices.once(ui, problem, 'warning')
    const { addon, error } = native.load()
    loadError = error ? withCode(error) : null
    if (loadError !== null) notices.once(ui, loadError, 'error')
    if (!addon) return
    const line = ctx.hasUI ? createStatusLine({ ui, tui: isTui(ctx), truncate: addon.truncateToWidth }) : null
    const session: Active = {
      ctx,
      addon,
      line,
      link: null,
      picked: false,
      icons: 'unicode',
      ignored: null,
      notice: null,
    }
    active = session
    off.inherit(event, ctx)
    if (!off.has(ctx)) connect(session)
    if (line) void configure(session, line)
  }

  async function configure(session: Active, line: StatusLine): Promise<void> {
    try {
      const config = await session.addon.loadConfig(session.ctx.cwd)
      if (session !== active) return
      session.icons = config.icons
      line.configure(config)
      if (config.problems.length === 0) return
      notices.once(() => session.ctx.ui, `pi-x-ide configuration: ${config.problems.join('\n')}`, 'warning')
    } catch {
      line.configure({ statusDisplay: 'widget', icons: 'unicode' })
    }
  }

  function connect(session: Active): void {
    void session.link?.close()
    session.picked = false
    session.notice = null
    const lastInjected = lastInjectedHash(session.ctx.sessionManager.getBranch())
    session.link = openLink(session.addon, session.ctx.cwd, lastInjected, (event) => {
      if (session !== active) return
      refresh(session)
      if (event) receive(session, event)
    })
  }

  const refresh = (session: Active): void => session.line?.show(lineState(session.link))

  function receive(session: Active, event: EditorEvent): void {
    if (event.type === 'mention') pasteMentions(session.ctx.ui, event.mentions)
    else if (event.type === 'diagnosticFix') session.ignored = ignoreDiagnostic(event.request)
    else if (event.type === 'error')
      notices.once(() => session.ctx.ui, printable(event.message, session.addon.truncateToWidth), 'warning')
    else if (event.type === 'status') {
      if (event.state === 'connected') session.notice = null
      const failing = event.state === 'waiting' || event.state === 'connecting'
      if (!failing || event.message === undefined || event.message === session.notice) return
      session.notice = event.message
      tell(() => session.ctx.ui, printable(event.message, session.addon.truncateToWidth), 'warning')
    }
  }

  async function prompt(
    event: BeforeAgentStartEvent,
    ctx: Context,
  ): Promise<BeforeAgentStartResult | undefined> {
    const session = active
    const link = session?.link
    if (!session || !link || !carriesContext(event)) return undefined
    try {
      const isCurrent = () => session === active && link === session.link
      const result = await takePending(link, ctx.hasUI, isCurrent)
      if (result) refresh(session)
      return result
    } catch (error) {
      if (!isStale(error)) notices.once(() => ctx.ui, `No editor context: ${messageOf(error)}`, 'warning')
      return undefined
    }
  }

  function attach(ui: Ui): void {
    const { link, reason } = facts()
    const connection = link?.connection
    const mentions = connection?.mentions() ?? []
    if (!connection) {
      ui.notify(reason ?? link?.problem ?? 'No editor is connected.', 'warning')
    } else if (mentions.length === 0) {
      ui.notify('The editor has no selection and no open file.', 'warning')
    } else {
      connection.attach()
      if (active) refresh(active)
      pasteMentions(ui, mentions)
    }
  }

  function facts(): Facts {
    if (switchedOff(env)) return { link: null, reason: 'Switched off by PI_X_IDE=off.', ignored: null }
    if (!active) return { link: null, reason: loadError ?? 'No session is running.', ignored: null }
    const { link, ignored } = active
    return { link, ignored, reason: link ? null : 'Switched off for this session; /ide auto switches it on.' }
  }

  function running(): Active {
    if (!active) throw new Error(facts().reason ?? 'No session is running.')
    return active
  }

  async function diagnose(): Promise<Diagnosis> {
    const { addon, ctx } = running()
    const diagnosis = await within(addon.diagnose(ctx.cwd), DIAGNOSE_MS)
    if (!diagnosis) throw new Error(`The diagnosis took longer than ${DIAGNOSE_MS / 1000} seconds.`)
    return diagnosis
  }

  function switchOn(session: Active): void {
    off.delete(session.ctx)
    connect(session)
  }

  async function pick(candidate: Candidate): Promise<void> {
    const session = running()
    if (!session.link) switchOn(session)
    const { link } = session
    await link?.ready
    if (session !== active || !link) return
    if (!link.connection) throw new Error(link.problem ?? 'The editor bridge could not be started.')
    session.picked = true
    await link.connection.switchTo(candidate)
    if (session === active) refresh(session)
  }

  async function auto(): Promise<boolean> {
    const session = running()
    const found = await session.addon.discover(session.ctx.cwd)
    if (session !== active) return false
    const best = found.find(({ direct, verdict }) => direct && verdict === 'usable')
    const connection = session.link?.connection
    const same = connection?.state === 'connected' && connection.candidate?.id === best?.id
    if (same && best && !session.picked) return true
    switchOn(session)
    await within(session.link?.ready ?? Promise.resolve(), CLOSE_MS)
    return false
  }

  return {
    start,
    shutdown: async () => {
      await within(stop(), CLOSE_MS)
    },
    prompt,
    attach,
    facts,
    icons: () => active?.icons ?? 'unicode',
    candidates: async () => {
      const { addon, ctx } = running()
      return addon.discover(ctx.cwd, { all: true })
    },
    diagnose,
    config: async () => {
      const { addon, ctx } = running()
      return addon.loadConfig(ctx.cwd)
    },
    pick,
    auto,
    off: () => {
      const session = running()
      off.add(session.ctx)
      void session.link?.close()
      session.link = null
      refresh(session)
    },
  }
}
