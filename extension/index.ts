/**
 * pi-x-ide: shows pi what its user looks at in the editor.
 *
 * This file only registers. Nothing is opened and no addon is loaded before `session_start`, since pi runs the factory
 * for `pi --help`, too; and nothing here throws, since an extension that throws while it loads ends pi.
 */
import { createNotices, isStale, messageOf, tell } from './background.ts'
import { createIdeCommand } from './commands.ts'
import { CONTEXT_TYPE, createContextRenderer } from './context-message.ts'
import { roughTruncate } from './fit.ts'
import type { ExtensionApi } from './host.ts'
import { createNativeLoader } from './native.ts'
import { createOffList } from './off-list.ts'
import { createSession, type SessionDeps } from './session.ts'
import { attachShortcut } from './settings.ts'
import { glyphs } from './status-line.ts'

/** Shared by all instances of this process: what `/reload` and `/new` must neither forget nor repeat. */
const shared: SessionDeps = {
  native: createNativeLoader(),
  notices: createNotices(),
  env: process.env,
  off: createOffList(),
}

export function register(pi: ExtensionApi, deps: SessionDeps): void {
  const session = createSession(deps)
  const truncate = () => deps.native.peek()?.truncateToWidth

  pi.on('session_start', (event, ctx) => {
    try {
      session.start(event, ctx)
    } catch (error) {
      if (!isStale(error)) tell(() => ctx.ui, `pi-x-ide: ${messageOf(error)}`, 'error')
    }
  })
  pi.on('session_shutdown', () => session.shutdown())
  pi.on('before_agent_start', (event, ctx) => session.prompt(event, ctx))

  pi.registerCommand('ide', createIdeCommand(session, deps.env, truncate))
  pi.registerMessageRenderer(
    CONTEXT_TYPE,
    createContextRenderer({
      truncate: () => truncate() ?? roughTruncate,
      icon: () => glyphs(session.icons()).icon,
    }),
  )

  const { key } = attachShortcut(deps.env)
  if (key === null) return
  pi.registerShortcut(key, {
    description: 'Attach the selection in the editor to the prompt',
    handler: (ctx) => {
      try {
        session.attach(ctx.ui)
      } catch (error) {
        if (!isStale(error)) tell(() => ctx.ui, `pi-x-ide: ${messageOf(error)}`, 'error')
      }
    },
  })
}

export default function piXIde(pi: ExtensionApi): void {
  register(pi, shared)
}
