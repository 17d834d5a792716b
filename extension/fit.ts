/**
 * Cutting one line to a number of terminal cells. A line wider than the terminal ends pi 0.73.1, so every text of
 * ours passes here; colours are added afterwards, never before.
 */

/** The addon's `truncateToWidth`: escapes control and bidi characters, cuts by cells, ends a cut line with `…`. */
export type Truncate = (text: string, width: number) => string

export interface LineParts {
  prefix: string
  /** Shortened in its middle when the line is too long, so that its start and its extension stay readable. */
  name: string
  suffix: string
}

/** Below this nothing readable is left. */
const MIN_WIDTH = 4
const MIN_NAME = 5
/** pi wraps notices; this only keeps a hostile name from filling the screen. */
const NOTICE_CELLS = 400
/** Wider than any terminal: asks `truncate` only to escape. */
const UNCUT = 10_000

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
const graphemes = (text: string): string[] => Array.from(segmenter.segment(text), (part) => part.segment)

/** At most `width` cells; empty when there is no room for anything readable. */
export function fitLine(parts: LineParts, width: number, truncate: Truncate, ellipsis = '…'): string {
  const room = Math.floor(width)
  if (!(room >= MIN_WIDTH)) return ''
  const prefix = truncate(parts.prefix, UNCUT)
  const name = truncate(parts.name, UNCUT)
  const suffix = truncate(parts.suffix, UNCUT)
  const whole = prefix + name + suffix
  if (truncate(whole, room) === whole) return whole
  const forName = Math.max(room - cells(prefix, truncate) - cells(suffix, truncate), MIN_NAME)
  return truncate(prefix + shortenMiddle(name, forName, truncate, ellipsis) + suffix, room)
}

/** One line of a notice. Editors and files name themselves, so a line break in a name is escaped, too. */
export const oneLine = (text: string, truncate: Truncate): string => truncate(text, NOTICE_CELLS)

/** A notice of several lines, from the addon: control characters other than its line breaks are escaped. */
export const printable = (text: string, truncate: Truncate): string =>
  text
    .split('\n')
    .map((line) => oneLine(line, truncate))
    .join('\n')

/** Keeps start and end of an already escaped name, the end at least with its file extension where that fits. */
export function shortenMiddle(name: string, width: number, truncate: Truncate, ellipsis = '…'): string {
  if (truncate(name, width) === name) return name
  const room = width - cells(ellipsis, truncate)
  if (room < 2) return truncate(name, width)
  const dot = name.lastIndexOf('.')
  const extension = dot > 0 ? cells(name.slice(dot), truncate) : 0
  const tailRoom = extension < room ? Math.max(Math.floor(room / 2), extension) : Math.floor(room / 2)
  const all = graphemes(name)
  const head = takeWhileFits(all, room - tailRoom, truncate)
  const tail = takeWhileFits(all.reverse(), tailRoom, truncate).reverse()
  return head.join('') + ellipsis + tail.join('')
}

function takeWhileFits(clusters: readonly string[], width: number, truncate: Truncate): string[] {
  const taken: string[] = []
  let left = width
  for (const cluster of clusters) {
    left -= clusterCells(cluster, truncate)
    if (left < 0) break
    taken.push(cluster)
  }
  return taken
}

const cells = (text: string, truncate: Truncate): number =>
  graphemes(text).reduce((sum, cluster) => sum + clusterCells(cluster, truncate), 0)

/** A cluster takes 1 or 2 cells; one of no width counts as 1, which errs to the safe side. */
const clusterCells = (cluster: string, truncate: Truncate): number =>
  truncate(cluster, 1) === cluster ? 1 : 2

const UNSAFE = /[\p{Cc}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/**
 * Stands in for the addon's `truncateToWidth` where the addon is not loaded. It takes everything but ASCII for two
 * cells wide: lines come out a little short at times, never too wide.
 */
export const roughTruncate: Truncate = (text, width) => {
  const safe = text.replace(UNSAFE, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
  const clusters = graphemes(safe)
  const size = (cluster: string): number => (/^[ -~]$/.test(cluster) ? 1 : 2)
  if (clusters.reduce((sum, cluster) => sum + size(cluster), 0) <= width) return safe
  if (width < 1) return ''
  let kept = ''
  let left = width - 1
  for (const cluster of clusters) {
    left -= size(cluster)
    if (left < 0) break
    kept += cluster
  }
  return `${kept}…`
}
