/** The texts of `/ide status` and `/ide list`. */
import type { Candidate, Connection } from '../index.js'
import type { NoticeType } from './host.ts'
import type { Facts } from './session.ts'

const STATES: Record<Connection['state'], string> = {
  searching: 'looking for an editor',
  connecting: 'connecting',
  connected: 'connected',
  waiting: 'not reachable, trying again',
  closed: 'closed',
}

export function statusReport({ link, reason, ignored }: Facts): { lines: string[]; type: NoticeType } {
  const connection = link?.connection
  const problem = reason ?? link?.problem ?? null
  if (!connection) {
    return { lines: ['IDE: not connected', ...reasonLines(problem)], type: link?.problem ? 'error' : 'info' }
  }
  const { candidate, server, state } = connection
  const name = server?.name ?? candidate?.name
  const snapshot = connection.latest()
  const lines = [
    `IDE: ${name ? `${name} (${STATES[state]})` : STATES[state]}`,
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

/** One row: a mark for the editor in use, its name and folder, how it matches, or why it cannot be used. */
export function candidateRow(candidate: Candidate, current: Connection | null | undefined): string {
  const { id, name, ide, workspaceFolder, workspaceFolders } = candidate
  const folder = workspaceFolder ?? (workspaceFolders.join(', ') || 'no folder')
  const isCurrent = id === current?.candidate?.id
  const parts = [name || ide || id, folder, match(candidate)]
  if (isCurrent && current?.message) parts.push(current.message)
  return `${isCurrent ? '* ' : ''}${parts.join(' — ')}`
}

export const isUsable = (candidate: Candidate): boolean => candidate.verdict === 'usable'

function match(candidate: Candidate): string {
  if (!isUsable(candidate)) return candidate.reason || candidate.verdict
  if (candidate.direct) return 'matches this folder'
  return candidate.matchLength > 0 ? 'below this folder' : 'another folder'
}
