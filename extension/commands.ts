/** The command `/ide`: everything of ours hangs under this one name. */
import { userInfo } from 'node:os'
import type { Diagnosis } from '../index.js'
import { isStale, messageOf, tell } from './background.ts'
import { type DoctorFacts, doctorLines, reportLines } from './doctor.ts'
import { oneLine, printable, roughTruncate, type Truncate } from './fit.ts'
import type { Command, Completion, Ui } from './host.ts'
import { candidateRow, headline, isPickable, listReport, statusReport } from './report.ts'
import type { Session } from './session.ts'

interface Action {
  description: string
  run: (session: Session, say: Say, tools: Tools) => void | Promise<void>
}
interface Tools {
  ui: Ui
  truncate: Truncate
  env: Env
}
type Env = Readonly<Record<string, string | undefined>>
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
    run: async (session, say, { truncate }) => {
      const candidates = await session.candidates()
      const current = session.facts().link?.connection
      say(listReport(candidates, current, Date.now(), truncate))
    },
  },
  doctor: {
    description: 'Check everything between pi and the editor, and say what to do',
    run: async (session, say, { env }) => say(doctorLines(await examine(session, env))),
  },
  report: {
    description: 'The same with home folders, user name and tokens taken out, to be pasted in public',
    run: async (session, say, { env }) => say(reportLines(await examine(session, env))),
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
    run: (session, _say, { ui }) => session.attach(ui),
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

export function createIdeCommand(
  session: Session,
  env: Env,
  addonTruncate: () => Truncate | undefined,
): Command {
  return {
    description: `Editor connection: pick one, or ${Object.keys(ACTIONS).join(', ')}`,
    getArgumentCompletions: completions,
    handler: async (args, ctx) => {
      const truncate: Truncate = (text, width) => (addonTruncate() ?? roughTruncate)(text, width)
      try {
        if (!ctx.hasUI) return
        const tools: Tools = { ui: ctx.ui, truncate, env }
        const say: Say = (lines, type = 'info') =>
          tools.ui.notify(lines.map((line) => oneLine(line, truncate)).join('\n'), type)
        const word = args.trim().split(/\s+/)[0]?.toLowerCase() ?? ''
        if (word === '') return await choose(session, say, tools)
        const action = Object.hasOwn(ACTIONS, word) ? ACTIONS[word] : undefined
        if (action) return await action.run(session, say, tools)
        say([`Unknown: ${word}. Usage: /ide [${Object.keys(ACTIONS).join('|')}]`], 'warning')
      } catch (error) {
        if (isStale(error)) return
        tell(() => ctx.ui, printable(messageOf(error), truncate), 'error')
      }
    },
  }
}

/** The rows are numbered, because pi answers with the text of a row and two windows may well look the same. */
async function choose(session: Session, say: Say, { ui, truncate }: Tools): Promise<void> {
  const current = session.facts().link?.connection
  const found = await session.candidates()
  if (found.length === 0) return say([headline(found)], 'warning')
  const rows = found.map((one, index) => oneLine(`${index + 1}. ${candidateRow(one, current)}`, truncate))
  const answer = await ui.select('Select the editor to follow', rows)
  const candidate = answer === undefined ? undefined : found[rows.indexOf(answer)]
  if (!candidate) return
  const { id, name, direct, reason } = candidate
  if (!isPickable(candidate)) return say([`${name} cannot be used: ${reason}`], 'warning')
  const isCurrent = id === current?.candidate?.id && current.state === 'connected'
  if (isCurrent) return say([`Already connected to ${name}.`])
  await session.pick(candidate)
  // Without a folder in common, what it says may not be what the user expects.
  const note = direct ? '' : reason.replace(/; pick it by hand$/, '')
  say([note ? `Connected to ${name}. Note: ${note}.` : `Connected to ${name}.`])
}

/** As a path, whose last part is the user's name: it may differ from that of the home folder. */
function userName(): string[] {
  try {
    return [`/home/${userInfo().username}`]
  } catch {
    return []
  }
}

/** For the doctor, who has to work where nothing else does: what fails is a fact, too. */
async function examine(session: Session, env: Env): Promise<DoctorFacts> {
  // The addon knows more of them, but what is said of one that does not load names folders, too.
  const homes = [env.HOME, env.USERPROFILE, ...userName()].filter((home) => home !== undefined)
  const runtime = { node: process.version, platform: `${process.platform}-${process.arch}` }
  let diagnosis: Diagnosis | null = null
  let failure: string | null = null
  try {
    diagnosis = await session.diagnose()
    homes.push(...diagnosis.homes)
  } catch (error) {
    if (isStale(error)) throw error
    failure = messageOf(error)
  }
  const config = await session.config().catch(() => null)
  const { link, reason } = session.facts()
  const [connection, problem] = [link?.connection ?? null, link?.problem ?? null]
  return { runtime, diagnosis, failure, connection, reason, problem, config, homes }
}
