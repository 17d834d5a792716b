/** The texts of `/ide doctor` and `/ide report`: facts in, lines out. */
import type { Candidate, Config, Connection, Diagnosis } from '../index.js'
import { connectionState, hostsTried, nameOf } from './report.ts'

export interface DoctorFacts {
  runtime: { node: string; platform: string }
  /** Null where there is none; `failure` then says why. */
  diagnosis: Diagnosis | null
  failure: string | null
  connection: Connection | null
  /** Why there is no link at all: a sentence of ours, of several lines where the addon did not load. */
  reason: string | null
  /** What went wrong with the link. */
  problem: string | null
  /** What of the configuration could not be used, and whether it lets anything go along. */
  config: { problems: readonly string[]; share: Config['share'] } | null
  /** Folders that a report must not name. */
  homes: readonly string[]
}

/** One screen of a usual terminal; locks, of which there may be many, get what the rest leaves. */
const SCREEN = 24
const MOST_LOCKS = 8
const FEWEST_LOCKS = 3
const MOST_FOLDERS = 6
const MOST_LOG = 5

/** Everything between pi and the editor, and what to do. The lines are neither cut nor escaped. */
export function doctorLines(facts: DoctorFacts): string[] {
  const { diagnosis, connection } = facts
  const above = [...head(facts), ...(diagnosis ? folders(diagnosis, connection) : [])]
  const below = [...log(connection), ...advice(facts)]
  const room = SCREEN - above.length - below.length - 2
  const isZed = ({ transport }: Candidate) => transport === 'zed'
  const found = diagnosis?.candidates ?? []
  const zed = zedLines(found.filter(isZed), connection)
  const locks = diagnosis
    ? lockLines(
        found.filter((candidate) => !isZed(candidate)),
        connection,
        room - zed.length,
      )
    : []
  return [...above, ...locks, ...zed, ...below]
}

/** The same, made to be pasted in public. */
export function reportLines(facts: DoctorFacts): string[] {
  return [
    'This report was redacted: home folders, the user name and tokens were replaced.',
    ...doctorLines(facts).map((line) => redact(line, facts.homes)),
  ]
}

function head({ runtime, diagnosis, failure, connection, reason, problem }: DoctorFacts): string[] {
  const { version, platform = runtime.platform, wsl, hostOverride, pidCheck = true } = diagnosis ?? {}
  const cause = connection?.message ?? problem
  const lines = [
    `pi-x-ide${version ? ` ${version}` : ''} · ${platform} · Node ${runtime.node}`,
    `Connection: ${connection ? connectionState(connection) : 'none'}`,
    cause && `Reason: ${cause}`,
    ...(reason ? `Reason: ${reason}`.split('\n') : []),
    failure !== null && failure !== reason && `No diagnosis: ${failure}`,
    wsl && wslLine(wsl),
    hostOverride !== undefined && `Host override: ${hostOverride}`,
    !pidCheck && 'Process check: off',
  ]
  return lines.filter((line) => typeof line === 'string')
}

function wslLine({ distro, automountRoot, networking, gateway }: NonNullable<Diagnosis['wsl']>): string {
  const via = gateway === undefined ? '' : `, gateway ${gateway}`
  return `WSL: ${distro || 'unknown distribution'} · networking ${networking}${via} · Windows drives under ${automountRoot}`
}

function folders({ folders }: Diagnosis, connection: Connection | null): string[] {
  const watching = connection?.watching() ?? []
  // A Windows with many users has many folders that say nothing.
  const tells = ({ locks, problem }: Diagnosis['folders'][number]) => locks > 0 || problem !== undefined
  const all = [...folders].sort((a, b) => Number(tells(b)) - Number(tells(a)))
  const rows = all.map(({ path, windows, locks, problem }) => {
    const watch = watching.find((one) => one.path === path)
    const facts = [`${locks} ${locks === 1 ? 'lock' : 'locks'}`, watch ? watchText(watch) : 'not watched']
    if (windows) facts.unshift('Windows')
    if (problem !== undefined) facts.push(`problem: ${problem}`)
    return `${path} — ${facts.join(' · ')}`
  })
  return section('Lock folders', rows.length > 0 ? limited(rows, MOST_FOLDERS) : ['none'])
}

function watchText({ kind, reason }: ReturnType<Connection['watching']>[number]): string {
  const text = kind === 'events' ? 'watched by events' : 'watched by polling'
  return reason === undefined ? text : `${text} (${reason})`
}

function lockLines(candidates: readonly Candidate[], connection: Connection | null, room: number): string[] {
  const rows = candidates.map((candidate) => {
    const { id, verdict, reason, checks } = candidate
    // What is no valid lock has no name of its own.
    const name = checks.parsed === 'valid' ? nameOf(candidate) : (id.split(/[\\/]/).at(-1) ?? id)
    const mark = id === connection?.candidate?.id ? '* ' : ''
    return `${mark}${name} — ${verdict}${reason && `: ${reason}`} · ${hostsTried(candidate)}`
  })
  const most = Math.max(FEWEST_LOCKS, Math.min(MOST_LOCKS, room))
  return section('Locks', rows.length > 0 ? limited(rows, most, ', see /ide list') : ['none'])
}

function zedLines(candidates: readonly Candidate[], connection: Connection | null): string[] {
  const rows = candidates.map(({ id, name, verdict, reason }) => {
    const mark = id === connection?.candidate?.id ? '* ' : ''
    return `${mark}${name} — ${verdict}${reason && `: ${reason}`} · ${id}`
  })
  return section('Zed', limited(rows, MOST_LOCKS))
}

function log(connection: Connection | null): string[] {
  const entries = connection?.log().slice(-MOST_LOG) ?? []
  return section(
    'Log',
    entries.map(({ time, message }) => `${new Date(time).toTimeString().slice(0, 8)} ${message}`),
  )
}

function advice(facts: DoctorFacts): string[] {
  const { diagnosis, connection, reason, problem, failure } = facts
  const silent = configAdvice(facts)
  if (silent) return section('What to do', [silent, ...(diagnosis?.advice ?? [])])
  if (diagnosis && diagnosis.advice.length > 0) return section('What to do', diagnosis.advice)
  if (connection?.state === 'connected' && failure === null) return ['Nothing to do.']
  if (reason ?? failure ?? connection?.message ?? problem)
    return section('What to do', ['See the reason above.'])
  return section('What to do', ['Nothing is known to be wrong; if it stays so, file a bug with /ide report.'])
}

/** A connection that shares nothing looks like one that works. */
function configAdvice({ config }: DoctorFacts): string | null {
  if (config && config.problems.length > 0)
    return `Mend the configuration, what it forbids by mistake is not shared: ${config.problems.join('; ')}`
  if (config?.share === 'off')
    return '"share" is "off" in the configuration: nothing goes along with a prompt.'
  return null
}

const section = (title: string, rows: readonly string[]): string[] =>
  rows.length === 0 ? [] : [`${title}:`, ...rows.map((row) => `  ${row}`)]

const limited = (rows: readonly string[], most: number, hint = ''): string[] =>
  rows.length <= most ? [...rows] : [...rows.slice(0, most), `… ${rows.length - most} more${hint}`]

const LONG_HEX = /[0-9a-f]{32,}/gi
/** One letter for a drive, bare or with a colon: `C:\`, `/mnt/c/`. Case means nothing there. */
const ON_WINDOWS = /(?:^|[\\/])[a-z]:?[\\/]/i
const ABSOLUTE = /^(?:[a-z]:)?[\\/]/i
const DRIVE = /^[a-z]:$/i
const SHORTEST_NAME = 3
/** Not the whole name of a folder: `/home/al` in `/home/al-2`, but not in `/home/al.` at the end of a sentence. */
const GOES_ON = '(?![\\p{L}\\p{N}\\p{M}_@+$-]|\\.[\\p{L}\\p{N}])'
const IN_NAME = /[\p{L}\p{N}\p{M}_.$-]/u

/**
 * `text` without what it tells of its user: home folders in either slash style become `~`, long hexadecimal runs
 * (tokens, hashes) `[redacted]`, user names `user`. Rather too much than too little: a home folder is taken out in
 * any letter case, also where another folder contains it, such as `\\wsl$\Ubuntu\home\al`.
 */
export function redact(text: string, homes: readonly string[]): string {
  const folders = homes.map((path) => ({ path, names: path.split(/[\\/]+/).filter(Boolean) }))
  const paths = folders.filter(isHome).sort(byLength((folder) => folder.names.join('/')))
  let safe = text
  if (paths.length > 0) {
    const anyHome = new RegExp(paths.map(pattern).join('|'), 'giu')
    safe = text.replace(anyHome, (found: string, offset: number) =>
      /^[\\/]/.test(found) && IN_NAME.test(text[offset - 1] ?? '') ? `${found[0]}~` : '~',
    )
  }
  safe = safe.replace(LONG_HEX, '[redacted]')
  for (const folder of folders.sort(byLength(userName))) {
    const name = userName(folder)
    if ([...name].length < SHORTEST_NAME) continue
    const word = `(?<![\\p{L}\\p{N}\\p{M}])${escaped(name)}(?![\\p{L}\\p{N}\\p{M}])`
    safe = safe.replace(new RegExp(word, ON_WINDOWS.test(folder.path) ? 'giu' : 'gu'), 'user')
  }
  return safe
}

interface Folder {
  path: string
  names: string[]
}

/** A root is nobody's home, and a relative path could be any word. */
const isHome = ({ path, names }: Folder): boolean =>
  ABSOLUTE.test(path) && names.some((name) => !DRIVE.test(name))

const userName = ({ names }: Folder): string => names.at(-1) ?? ''

const byLength = (text: (folder: Folder) => string) => (a: Folder, b: Folder) =>
  text(b).length - text(a).length

/** Every separator may also be the other one, or doubled as in JSON. */
const pattern = ({ path, names }: Folder): string =>
  `${/^[\\/]/.test(path) ? '[\\\\/]' : ''}${names.map(escaped).join('[\\\\/]+')}${GOES_ON}`

const escaped = (name: string): string => name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
