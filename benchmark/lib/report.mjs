// What a benchmark prints: tables, and one line per aim.
import { availableParallelism, cpus, loadavg } from 'node:os'

const aims = []

/** Where the figures come from; a machine that does something else meanwhile spoils them. */
export function describeMachine() {
  const { platform, arch, version } = process
  const load = loadavg()[0].toFixed(1)
  console.log(
    `Node.js ${version}, ${platform} ${arch}, ${availableParallelism()} x ${cpus()[0]?.model ?? 'CPU'}, load ${load}`,
  )
}

/** Prints rows of cells under a head, each column as wide as its widest cell; the first one is aligned to the left. */
export function table(head, rows) {
  const lines = [head, ...rows].map((line) => line.map(String))
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column].length)))
  for (const line of lines) {
    const cells = line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
    console.log(`  ${cells.join('  ').trimEnd()}`)
  }
}

/** Three significant digits. */
export function number(value) {
  if (!Number.isFinite(value)) return '-'
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

/** Notes how an aim was met; `limit` is the most that meets it, or the first value that does not where `below` is set. */
export function aim(title, value, limit, { below = false, unit = '' } = {}) {
  const met = below ? value < limit : value <= limit
  const text = `${title}: ${number(value)}${unit}, ${below ? 'below' : 'at most'} ${limit}${unit}`
  aims.push({ text, met })
}

/** One line per aim; true when all are met. */
export function printAims() {
  console.log()
  for (const { text, met } of aims) console.log(`aim ${text} ${met ? 'met' : 'missed'}`)
  return aims.every(({ met }) => met)
}
