// What loading the package costs a process that does not use it yet.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { aim, number, table } from '../lib/report.mjs'
import { median, medianRatio, quantile } from '../lib/statistics.mjs'

const SCRIPT = fileURLToPath(new URL('process.cjs', import.meta.url))
const KINDS = ['ours', 'ws', 'empty']
const WARM_UP = 3

export async function measureLoading({ quick }) {
  const processes = quick ? 9 : 21
  const results = { ours: [], ws: [], empty: [] }
  for (let i = -WARM_UP; i < processes; i++) {
    for (const kind of KINDS) {
      const { stdout } = await promisify(execFile)(process.execPath, [SCRIPT, kind])
      if (i >= 0) results[kind].push(JSON.parse(stdout))
    }
  }
  const times = (kind) => results[kind].map(({ ms }) => ms)
  console.log(`\nrequire in fresh processes, ${processes} of each`)
  table(
    ['', 'fastest ms', 'median ms', 'slowest ms'],
    KINDS.map((kind) => [kind, ...[0, 0.5, 1].map((share) => number(quantile(times(kind), share)))]),
  )
  console.log(`  ours/ws ${number(medianRatio(times('ours'), times('ws')))}`)
  aim('require, median', median(times('ours')), 3, { unit: ' ms' })
  if (results.ours[0].before === undefined) return
  const added = (what) => Math.max(...results.ours.map((result) => result[what] - result.before))
  console.log(`  threads: +${added('after')} after require, +${added('used')} after first use`)
  aim('threads before first use', added('after'), 0)
}
