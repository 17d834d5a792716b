// Finding the live editors among a thousand lock files: `discover` against the same on node:fs/promises.
import assert from 'node:assert/strict'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child } from '../lib/child.mjs'
import { aim, number, table } from '../lib/report.mjs'
import { median, medianRatio } from '../lib/statistics.mjs'
import { countsThreads } from '../lib/usage.mjs'
import { CONTAIN_IT, LIVE, LOCK_FILES } from './folder.mjs'

/** `fs-pid` does less than the others and is there for scale. */
const NAMES = { ours: 'ours', fs: 'fs/promises', 'fs-pid': 'fs/promises, no probes' }
const KINDS = Object.keys(NAMES)
const MEASURES = { wall: 'wall ms', js: 'JS ms', cpu: 'CPU ms' }

/** Rounds in which V8 compiles what they all run, and the kernel's caches fill. */
const WARM_UP = 5

export async function compareDiscovery({ quick }) {
  // The JavaScript reader asks for owners and permission bits.
  if (process.platform === 'win32') return console.log('\ndiscovery is not measured on Windows')
  const rounds = quick ? 9 : 30
  const results = await play(rounds)
  console.log(
    `\nfinding ${LIVE} live editors among ${LOCK_FILES} lock files; JS is ${countsThreads ? "the JavaScript thread's CPU time" : "the event loop's busy time"}`,
  )
  const measures = Object.keys(MEASURES)
  const row = (title, value) => [title, ...measures.map((measure) => number(value(measure)))]
  const column = (kind, measure) => results[kind].map((result) => result[measure])
  const ratio = (kind, measure) => medianRatio(column('ours', measure), column(kind, measure))
  table(
    [`${rounds} rounds`, ...Object.values(MEASURES)],
    [
      ...KINDS.map((kind) => row(NAMES[kind], (measure) => median(column(kind, measure)))),
      ...KINDS.slice(1).map((kind) => row(`ours / ${NAMES[kind]}`, (measure) => ratio(kind, measure))),
    ],
  )
  aim('discovery, wall against fs/promises', ratio('fs', 'wall'), 0.2, { unit: 'x' })
  aim('discovery, JS thread against fs/promises', ratio('fs', 'js'), 0.05, { unit: 'x' })
}

/** Each in a process of its own, all warm, on one folder; their rounds alternate, each of them first equally often. */
async function play(rounds) {
  const box = realpathSync(mkdtempSync(join(tmpdir(), 'pix-bench-')))
  const editors = new Child('discovery/editors.mjs')
  const finders = KINDS.map(
    (kind) => new Child('discovery/process.mjs', [kind], { execArgv: ['--expose-gc'] }),
  )
  try {
    const place = await editors.ask('start', box)
    const results = Object.fromEntries(KINDS.map((kind) => [kind, []]))
    for (let round = 0; round < WARM_UP + rounds; round++) {
      const found = []
      for (const at of KINDS.map((_, turn) => (turn + round) % KINDS.length)) {
        const result = await finders[at].ask('find', place)
        found.push(result.candidates)
        if (round >= WARM_UP) results[KINDS[at]].push(result)
      }
      checkAnswers(found)
    }
    return results
  } finally {
    await Promise.all([editors, ...finders].map((child) => child.end()))
    rmSync(box, { recursive: true, force: true })
  }
}

/** All found the same, in the same order: else there is nothing to compare. The reasons of each are ours alone. */
function checkAnswers(found) {
  const [first, ...others] = found.map((candidates) => candidates.map(({ reason, checks, ...rest }) => rest))
  assert.equal(first.length, LIVE)
  assert.equal(first.filter(({ direct }) => direct).length, CONTAIN_IT)
  for (const other of others) assert.deepEqual(other, first)
}
