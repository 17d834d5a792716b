// One clock for all processes of a benchmark.
import { performance } from 'node:perf_hooks'

/**
 * hrtime is the system's monotonic clock, the same in every process, but its bigints cost garbage: only the distance of
 * performance.now() from it is read, here. The first calls are slow, so the reading that took least counts.
 */
const offset = distance()

/** Milliseconds on a clock that all processes of this machine share. */
export const clock = () => offset + performance.now()

function distance() {
  let best = { took: Number.POSITIVE_INFINITY }
  for (let i = 0; i < 1_000; i++) {
    const before = performance.now()
    const time = process.hrtime.bigint()
    const after = performance.now()
    const took = after - before
    if (took < best.took) best = { took, offset: Number(time) / 1e6 - (before + after) / 2 }
  }
  return best.offset
}
