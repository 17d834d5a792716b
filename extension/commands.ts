/** The command `/ide`: everything of ours hangs under this one name. */
import { isStale, messageOf, tell } from './background.ts'
import { oneLine, printable, roughTruncate, type Truncate } from './fit.ts'
import type { Command, Completion, Ui } from './host.ts'
import { candidateRow, isUsable, statusReport } from './report.ts'
import type { Session } from './session.ts'

interface Action {
  description: string
  run: (session: Session, say: Say, ui: Ui) => void | Promise<void>
}
type Say = (lines: string[], type?: Parameters<Ui['notify']>[1]) => void

const ACTIONS: Readonly<Record<string, Action>> = {
  status: {
    description: 'Show the connected editor, its file and selection',
    run: (session, say) => {
      const { lines, type } = statusReport(session.facts())
      say(lines, type)
    },
  },
  list: {
    description: 'List every editor found, with the reason when one cannot be used',
    run: async (session, say) => {
      const candidates = await session.candidates()
      const current = session.facts().link?.connection
      const rows = candidates.map((candidate) => candidateRow(candidate, current))
      say(rows.length > 0 ? rows : ['No editor was found.'])
    },
  },
  auto: {
    description: 'Connect to the editor that matches this folder, and keep following it',
    run: async (session, say) => {
      const unchanged = await session.auto()
      const connection = session.facts().link?.connection
      const name = connection?.candidate?.name
      const now = connection?.state === 'connected' ? 'Connected' : 'Connecting'
      if (name) say([`${unchanged ? 'Already connected' : now} to ${name}.`])
      else say(['Looking for an editor that matches this folder; /ide list shows what was found.'])
    },
  },
  off: {
    description: 'Disconnect and stay off for this session',
    run: (session, say) => {
      session.off()
      say(['Switched off for this session; /ide auto switches it on.'])
    },
  },
  attach: {
    description: 'Put the selection into the prompt as a mention',
    run: (session, _say, ui) => session.attach(ui),
  },
}

/** Completions for the first word, whatever its case. */
export function completions(prefix: string): Completion[] | null {
  const start = prefix.trimStart().toLowerCase()
  // A complete word needs none, and Enter would take the completion instead of running the command.
  if (Object.hasOwn(ACTIONS, start)) return null
  const items = Object.entries(ACTIONS)
    .filter(([name]) => name.startsWith(start))
    .map(([name, { description }]) => ({ value: name, label: name, description }))
  return items.length > 0 ? items : null
}

export function createIdeCommand(session: Session, truncate: () => Truncate | undefined): Command {
  return {
    description: 'Editor connection: pick one, or status, list, auto, off, attach',
    getArgumentCompletions: completions,
    handler: async (args, ctx) => {
      try {
        if (!ctx.hasUI) return
        const { ui } = ctx
        const clean = (line: string) => oneLine(line, truncate() ?? roughTruncate)
        const say: Say = (lines, type = 'info') => ui.notify(lines.map(clean).join('\n'), type)
        const word = args.trim().split(/\s+/)[0]?.toLowerCase() ?? ''
        if (word === '') return await choose(session, say, ui, clean)
        const action = Object.hasOwn(ACTIONS, word) ? ACTIONS[word] : undefined
        if (action) return await action.run(session, say, ui)
        say([`Unknown: ${word}. Usage: /ide [${Object.keys(ACTIONS).join('|')}]`], 'warning')
      } catch (error) {
        if (isStale(error)) return
        tell(() => ctx.ui, printable(messageOf(error), truncate() ?? roughTruncate), 'error')
      }
    },
  }
}

/** The rows are numbered, because pi answers with the text of a row and two windows may well look the same. */
async function choose(session: Session, say: Say, ui: Ui, clean: (line: string) => string): Promise<void> {
  const current = session.facts().link?.connection
  const found = await session.candidates()
  if (found.length === 0) return say(['No editor was found.'], 'warning')
  const rows = found.map((candidate, index) => clean(`${index + 1}. ${candidateRow(candidate, current)}`))
  const answer = await ui.select('Select the editor to follow', rows)
  const candidate = answer === undefined ? undefined : found[rows.indexOf(answer)]
  if (!candidate) return
  if (!isUsable(candidate)) return say([`${candidate.name} cannot be used: ${candidate.reason}`], 'warning')
  if (candidate.id === current?.candidate?.id) return say([`Already connected to ${candidate.name}.`])
  await session.pick(candidate)
  say([`Connected to ${candidate.name}.`])
}
