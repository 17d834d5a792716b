// Whether the addon holds up the event loop of its process.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child } from '../lib/child.mjs'
import { aim, number, table } from '../lib/report.mjs'
import { median, medianRatio } from '../lib/statistics.mjs'

/**
 * `ws` is told the same as `following`, without the addon. The last is `alone` once more: how far the two differ tells what the other
 * ratios are worth.
 */
const KINDS = ['following', 'alone', 'ws', 'alone']
const MEASURES = ['p50', 'p99', 'max']
const LOCK_FILES = 1_000
const RATE = 200

export async function watchEventLoop({ quick }) {
  const rounds = quick ? 3 : 6
  const ms = 1_500
  const [following, alone, ws, control] = await play(rounds, ms)
  const told = median(following.map(({ calls }) => calls))
  if (told < (RATE * ms) / 1000 / 4) throw new Error(`only ${told} selections were told in ${ms} ms`)
  console.log(
    `\nevent-loop delay, ${LOCK_FILES} lock files, ${RATE} selections a second, ${number(told)} told in ${ms} ms`,
  )
  const column = (results, measure) => results.map((result) => result[measure])
  const medians = (results) => MEASURES.map((measure) => median(column(results, measure)))
  const against = (results, others) =>
    MEASURES.map((measure) => medianRatio(column(results, measure), column(others, measure)))
  const ratios = { alone: against(following, alone), ws: against(following, ws) }
  const rows = {
    following: medians(following),
    alone: medians(alone),
    ws: medians(ws),
    'following/alone': ratios.alone,
    'following/ws': ratios.ws,
    'alone/alone': against(control, alone),
  }
  table(
    [`${rounds} rounds`, ...MEASURES.map((measure) => `${measure} ms`)],
    Object.entries(rows).map(([title, values]) => [title, ...values.map(number)]),
  )
  for (const other of ['alone', 'ws']) {
    MEASURES.forEach((measure, i) => {
      aim(`event loop, ${measure} against ${other}`, ratios[other][i], LIMITS[measure], { unit: 'x' })
    })
  }
}

/** No worse, as far as two runs of the same thing differ here. */
const LIMITS = { p50: 1.05, p99: 1.1, max: 1.5 }

async function play(rounds, ms) {
  const box = realpathSync(mkdtempSync(join(tmpdir(), 'pix-bench-')))
  const editor = new Child('event-loop/editor.mjs')
  const watched = KINDS.map(
    (kind) => new Child('event-loop/process.mjs', [kind], { execArgv: ['--expose-gc'] }),
  )
  try {
    const place = { lockDir: join(box, 'lock'), folder: '/bench/project' }
    const access = await editor.ask('start', { ...place, lockFiles: LOCK_FILES, rate: RATE })
    const results = KINDS.map(() => [])
    for (let round = -1; round < rounds; round++) {
      // Each of them is first, second and so on equally often.
      for (const at of KINDS.map((_, turn) => (turn + round + KINDS.length) % KINDS.length)) {
        const result = await watched[at].ask('watch', { ...place, ...access, ms })
        if (round >= 0) results[at].push(result)
      }
    }
    return results
  } finally {
    await Promise.all([editor, ...watched].map((child) => child.end()))
    rmSync(box, { recursive: true, force: true })
  }
}
