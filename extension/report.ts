/** The texts of `/ide status`, `/ide list` and the rows of `/ide`. */
import type { Candidate, Connection } from '../index.js'
import type { Truncate } from './fit.ts'
import type { NoticeType } from './host.ts'
import type { Facts } from './session.ts'

const STATES: Record<Connection['state'], string> = {
  searching: 'looking for an editor',
  connecting: 'connecting',
  connected: 'connected',
  waiting: 'not reachable, trying again',
  closed: 'closed',
}

/** The editor, where one is known, and what the connection does. */
export function connectionState({ candidate, server, state }: Connection): string {
  const name = server?.name ?? candidate?.name
  return name ? `${name} (${STATES[state]})` : STATES[state]
}

export function statusReport({ link, reason, ignored }: Facts): { lines: string[]; type: NoticeType } {
  const connection = link?.connection
  const problem = reason ?? link?.problem ?? null
  if (!connection) {
    return { lines: ['IDE: not connected', ...reasonLines(problem)], type: link?.problem ? 'error' : 'info' }
  }
  const { candidate, state } = connection
  const snapshot = connection.latest()
  const lines = [
    `IDE: ${connectionState(connection)}`,
    candidate?.workspaceFolder !== undefined && `Workspace: ${candidate.workspaceFolder}`,
    snapshot && `File: ${snapshot.filePath}`,
    snapshot && `Range: ${connection.label()?.ranges.trim().replace(/^#/, '') || 'none'}`,
    `Attach: ${connection.attachState}`,
    ...reasonLines(connection.message ?? problem),
    ignored && `Ignored: ${ignored}`,
  ]
  return {
    lines: lines.filter((line) => typeof line === 'string'),
    type: state === 'waiting' ? 'error' : 'info',
  }
}

/** The addon explains a failed load in several lines. */
const reasonLines = (reason: string | null): string[] => (reason ? `Reason: ${reason}`.split('\n') : [])

const isUsable = ({ verdict }: Candidate): boolean => verdict === 'usable'

/** Whoever picks by hand may know better than a probe that went unanswered. */
export const isPickable = ({ verdict }: Candidate): boolean =>
  verdict === 'usable' || verdict === 'not-answering'

/** One row of `/ide`: a mark for the editor in use, its name and folder, how it matches, or why it cannot be used. */
export function candidateRow(candidate: Candidate, current: Connection | null | undefined): string {
  const isCurrent = candidate.id === current?.candidate?.id
  const parts = [nameOf(candidate), folderOf(candidate), match(candidate)]
  if (isCurrent && current?.message) parts.push(current.message)
  return `${isCurrent ? '* ' : ''}${parts.join(' — ')}`
}

export const nameOf = ({ name, ide, id }: Candidate): string => name || ide || id

const folderOf = ({ workspaceFolder, workspaceFolders }: Candidate): string =>
  workspaceFolder ?? (workspaceFolders.join(', ') || 'no folder')

function match(candidate: Candidate): string {
  if (!isUsable(candidate)) return candidate.reason || candidate.verdict
  if (candidate.direct) return 'matches this folder'
  return candidate.matchLength > 0 ? 'below this folder' : 'another folder'
}

/** Neither a long name nor a long reason may push what follows it off the row. */
const NAME_CELLS = 60
const DESCRIPTION_CELLS = 240
const CHECKS_CELLS = 150
/** The best come first; thousands would push them off any screen. */
const MOST_ROWS = 100

/** `/ide list`: what is so, in one sentence, then a row per lock. */
export function listReport(
  candidates: readonly Candidate[],
  current: Connection | null | undefined,
  now: number,
  truncate: Truncate,
): string[] {
  const shown = candidates.slice(0, MOST_ROWS)
  const rows = shown.map((candidate) => listRow(candidate, current, now, truncate))
  const left = candidates.length - shown.length
  return [headline(candidates), ...rows, ...(left > 0 ? [`… ${left} more`] : [])]
}

export function headline(candidates: readonly Candidate[]): string {
  const count = (wanted: (candidate: Candidate) => boolean) => candidates.filter(wanted).length
  const open = count((candidate) => isUsable(candidate) && candidate.direct)
  const elsewhere = count((candidate) => isUsable(candidate) && !candidate.direct)
  const silent = count(({ verdict }) => verdict === 'not-answering')
  const silentHere = count(({ verdict, direct }) => verdict === 'not-answering' && direct)
  if (open > 0) return `${editorsHave(open)} this folder open.`
  const others =
    elsewhere > 0 &&
    (elsewhere === 1 ? '1 is running for another folder' : `${elsewhere} are running for other folders`)
  if (silentHere > 0) {
    const but = `${editorsHave(silentHere)} this folder open but ${silentHere === 1 ? 'does' : 'do'} not answer`
    return others ? `${but}; ${others}.` : `${but}.`
  }
  if (others) return `No editor has this folder open; ${others}.`
  if (silent > 0)
    return `No editor has this folder open; ${silent} ${silent === 1 ? 'does' : 'do'} not answer.`
  // A lock that cannot be read or spoken to may well be of a living editor.
  const gone = count(({ verdict }) => verdict === 'stale' || verdict === 'removed')
  if (gone < candidates.length) return 'No editor can be used; each row says why.'
  return 'No editor was found; start one with a pi-x-ide plugin and open this folder in it.'
}

const editorsHave = (count: number): string => (count === 1 ? '1 editor has' : `${count} editors have`)

function listRow(
  candidate: Candidate,
  current: Connection | null | undefined,
  now: number,
  truncate: Truncate,
): string {
  const { id, checks, reason } = candidate
  const isCurrent = id === current?.candidate?.id
  // What is no valid lock tells no folder; the file is what the user can look at.
  const place = checks.parsed === 'valid' ? folderOf(candidate) : id
  const parts = [truncate(nameOf(candidate), NAME_CELLS), place, reason || match(candidate)]
  if (isCurrent && current?.message) parts.push(current.message)
  const description = truncate(`${isCurrent ? '* ' : ''}${parts.join(' — ')}`, DESCRIPTION_CELLS)
  return `${description} — ${truncate(checked(candidate, now), CHECKS_CELLS)}`
}

/** What decided, and how long ago the editor was in use. */
function checked(candidate: Candidate, now: number): string {
  const { checks, pid, matchLength, lastActivity, transport } = candidate
  const process = `pid${pid === undefined ? '' : ` ${pid}`}`
  const facts =
    transport === 'zed'
      ? ['database', ...(pid === undefined ? [] : [process])]
      : [`parsed: ${checks.parsed}`, `${process}: ${checks.pid.replace('-', ' ')}`, hostsTried(candidate)]
  facts.push(`score ${matchLength}`)
  if (lastActivity > 0) facts.push(`active ${ago(now - lastActivity)}`)
  return facts.join(' · ')
}

/** Every host that was asked, in the order they would be dialled, with what came of it. */
export function hostsTried({ checks, port }: Candidate): string {
  const name = (host: string) => (host.includes(':') ? `[${host}]` : host)
  const at = port === undefined ? '' : `:${port}`
  const outcomes = checks.probes.map(({ host, outcome }) => `${name(host)}${at}: ${outcome}`)
  return outcomes.join(', ') || `${port === undefined ? 'port' : `port ${port}`}: not asked`
}

const MINUTE_MS = 60_000
const UNITS = [
  { name: 'day', ms: 24 * 60 * MINUTE_MS },
  { name: 'hour', ms: 60 * MINUTE_MS },
  { name: 'minute', ms: MINUTE_MS },
]

/** In human words; a clock that is ahead of ours counts as now. */
export function ago(ms: number): string {
  const unit = UNITS.find((one) => ms >= one.ms)
  if (!unit) return 'just now'
  const count = Math.floor(ms / unit.ms)
  return `${count} ${unit.name}${count === 1 ? '' : 's'} ago`
}
