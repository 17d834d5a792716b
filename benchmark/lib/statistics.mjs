/** The value below which a share of all values lies, 0.5 for the median. NaN for none. */
export function quantile(values, share) {
  const sorted = Float64Array.from(values).sort()
  if (sorted.length === 0) return Number.NaN
  const at = (sorted.length - 1) * share
  const below = Math.floor(at)
  const above = Math.ceil(at)
  return sorted[below] + (sorted[above] - sorted[below]) * (at - below)
}

export const median = (values) => quantile(values, 0.5)

/** The median over all pairs of neighbouring rounds: what slows the machine down for a while slows both of a pair. */
export const medianRatio = (ours, theirs) => median(ours.map((value, i) => value / theirs[i]))
