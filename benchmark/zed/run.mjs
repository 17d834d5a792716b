// Following Zed's selection in a database of 42 MB: `watchZed` against what one would write with `node:sqlite`.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inRoot } from '../../scripts/lib/project.mjs'
import { Child } from '../lib/child.mjs'
import { aim, number, table } from '../lib/report.mjs'
import { median, medianRatio } from '../lib/statistics.mjs'

/** About what the database of somebody has who keeps sixty projects with unsaved texts. */
const HISTORY = [
  '--history-workspaces',
  '60',
  '--history-editors',
  '167',
  '--history-mb',
  '30',
  '--big-file-mb',
  '5',
]

const WARM_UP = 5

/** `node:sqlite` is there from 22.5 on; both sides run on the same Node.js. */
function nodeWithSqlite() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > 22 || (major === 22 && minor >= 5)) return process.execPath
  const installed = inRoot('.hosts/nodes/node_modules/node-22/bin/node')
  return existsSync(installed) ? installed : null
}

export async function compareZed({ quick }) {
  const execPath = nodeWithSqlite()
  if (!execPath) return console.log('\nzed is measured with Node.js 22.5 or newer, or after npm run test:e2e')
  const rounds = quick ? 9 : 40
  const box = realpathSync(mkdtempSync(join(tmpdir(), 'pix-bench-')))
  makeDatabase(box)
  const options = {
    execArgv: ['--expose-gc', '--no-warnings'],
    execPath,
    env: { HOME: box, PI_X_IDE_ZED_POLL_INTERVAL_MS: '100' },
  }
  const ours = new Child('zed/process.mjs', ['ours', box], options)
  const theirs = new Child('zed/process.mjs', ['sqlite', box], options)
  try {
    const changed = { ours: [], theirs: [] }
    for (let round = 0; round < WARM_UP + rounds; round++) {
      const pair = [await ours.ask('changed', round), await theirs.ask('changed', round)]
      if (pair[0].text !== pair[1].text) throw new Error(`round ${round}: ${JSON.stringify(pair)}`)
      if (round < WARM_UP) continue
      changed.ours.push(pair[0])
      changed.theirs.push(pair[1])
    }
    const unchanged = {
      ours: await ours.ask('unchanged', rounds),
      theirs: await theirs.ask('unchanged', rounds),
    }
    const mapping = { ours: await ours.ask('mapping', 9), theirs: await theirs.ask('mapping', 3) }
    show(rounds, changed, unchanged, mapping)
  } finally {
    await Promise.all([ours.end(), theirs.end()])
    rmSync(box, { recursive: true, force: true })
  }
}

function makeDatabase(box) {
  const build = ['build', '--quiet', '--workspace', '--bin', 'zed-fixture']
  run('cargo', build)
  run(join(process.env.CARGO_TARGET_DIR ?? inRoot('target'), 'debug/zed-fixture'), ['--out', box, ...HISTORY])
}

function run(program, args) {
  const { status } = spawnSync(program, args, { cwd: inRoot('.'), stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error(`${program} failed`)
}

function show(rounds, changed, unchanged, mapping) {
  const column = (side, measure) => changed[side].map((result) => result[measure])
  const middle = (side, measure) => median(column(side, measure))
  const ratio = (measure) => medianRatio(column('ours', measure), column('theirs', measure))
  console.log(
    '\nfollowing a selection in a database of Zed of 42 MB, against three fresh opens and a join with node:sqlite',
  )
  table(
    [
      `${rounds} rounds, ms`,
      'changed: JS',
      'changed: CPU',
      'unchanged: JS',
      'unchanged: CPU',
      'mapping in 5 MB',
    ],
    [
      ...['ours', 'theirs'].map((side) => [
        side,
        number(middle(side, 'js')),
        number(middle(side, 'cpu')),
        number(unchanged[side].js),
        number(unchanged[side].cpu),
        number(mapping[side]),
      ]),
      [
        'ours / theirs',
        ratio('js'),
        ratio('cpu'),
        unchanged.ours.js / unchanged.theirs.js,
        unchanged.ours.cpu / unchanged.theirs.cpu,
        mapping.ours / mapping.theirs,
      ].map((cell) => (typeof cell === 'number' ? number(cell) : cell)),
    ],
  )
  aim('zed, JS thread per changed poll against node:sqlite', ratio('js'), 0.1, { unit: 'x' })
  aim('zed, whole changed poll against node:sqlite', ratio('cpu'), 0.5, { unit: 'x' })
  aim('zed, unchanged poll against node:sqlite', unchanged.ours.cpu / unchanged.theirs.cpu, 0.01, {
    unit: 'x',
  })
  aim('zed, mapping against an encoder call per code point', mapping.ours / mapping.theirs, 0.02, {
    unit: 'x',
  })
}
