// What loading the package costs a process that does not use it yet.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { aim, number, table } from '../lib/report.mjs'
import { median, quantile } from '../lib/statistics.mjs'

const SCRIPT = fileURLToPath(new URL('process.mjs', import.meta.url))
const WARM_UP = 3

export async function measureLoading({ quick }) {
  const processes = quick ? 9 : 21
  const results = []
  for (let i = -WARM_UP; i < processes; i++) {
    const { stdout } = await promisify(execFile)(process.execPath, [SCRIPT])
    if (i >= 0) results.push(JSON.parse(stdout))
  }
  const times = results.map(({ loadMs }) => loadMs)
  const added = (from, to) => Math.max(...results.map((result) => result[to] - result[from]))
  console.log(`\nrequire('pi-x-ide') in ${processes} fresh processes`)
  table(
    ['fastest ms', 'median ms', 'slowest ms', 'threads after require', 'after first use'],
    [
      [
        ...[0, 0.5, 1].map((share) => number(quantile(times, share))),
        `+${added('before', 'loaded')}`,
        `+${added('before', 'used')}`,
      ],
    ],
  )
  aim('require, median', median(times), 3, { unit: ' ms' })
  if (results[0].before !== undefined) aim('threads before first use', added('before', 'loaded'), 0)
}
