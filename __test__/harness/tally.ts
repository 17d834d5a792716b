const COLUMNS = ['n', 'min', 'median', 'p95', 'max'] as const

/** Milliseconds under names, for a table of how they are distributed. Nothing is asserted about them. */
export class Tally {
  #times = new Map<string, number[]>()

  add(name: string, ms: number): void {
    const times = this.#times.get(name) ?? []
    this.#times.set(
      name,
      [...times, ms].sort((a, b) => a - b),
    )
  }

  /** One line per name, after a heading. */
  table(): string[] {
    const names = [...this.#times.keys()].sort()
    const width = Math.max(...names.map((name) => name.length), 0)
    const row = (name: string, cells: readonly (string | number)[]) =>
      `${name.padEnd(width)}${cells.map((cell) => String(cell).padStart(8)).join('')}`
    return [
      row('', COLUMNS),
      ...names.map((name) => {
        const times = this.#times.get(name) ?? []
        const at = (share: number) => Math.round(times[Math.ceil(share * times.length) - 1] ?? times[0] ?? 0)
        return row(name, [times.length, at(0), at(0.5), at(0.95), at(1)])
      }),
    ]
  }
}
