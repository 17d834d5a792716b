// One way to follow Zed, in a process of its own: `ours` or `sqlite`. Each has a writer of its own for the changes, outside
// of what is measured.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { serve } from '../lib/child.mjs'
import { usageNow, usageSince } from '../lib/usage.mjs'

const [kind, box] = process.argv.slice(2)
const { active, db, editors } = JSON.parse(readFileSync(join(box, 'expected.json'), 'utf8'))
const cwd = join(box, 'projects/alpha')
const big = editors.find(({ note }) => note.startsWith('big file'))
const writer = new DatabaseSync(db)
writer.exec('PRAGMA busy_timeout = 5000')
const follower = await (kind === 'ours' ? import('./ours.mjs') : import('./sqlite.mjs')).then((module) =>
  module.follow({ cwd, db }),
)

/** What Zed does when the selection changes: two statements, two commits. */
function select(start, end) {
  const { item_id: editor, workspace_id: workspace } = active
  writer
    .prepare('DELETE FROM editor_selections WHERE editor_id = ? AND workspace_id = ?')
    .run(editor, workspace)
  writer
    .prepare('INSERT INTO editor_selections(editor_id, workspace_id, start, end) VALUES (?, ?, ?, ?)')
    .run(editor, workspace, start, end)
}

serve({
  /** What one changed poll costs, to the state as the caller sees it. */
  async changed(round) {
    await follower.rest()
    globalThis.gc()
    const start = 100 + round * 17
    select(start, start + 9)
    const begun = usageNow()
    const text = await follower.changed(start)
    return { ...usageSince(begun), text }
  },

  /** What one poll costs when nothing was committed. */
  async unchanged(rounds) {
    await follower.rest()
    globalThis.gc()
    const begun = usageNow()
    const polls = await follower.unchanged(rounds)
    const { js, cpu } = usageSince(begun)
    return { js: js / polls, cpu: cpu / polls }
  },

  /** Milliseconds from the offsets of one selection at the end of 5 MB to its positions. */
  async mapping(rounds) {
    const times = []
    for (let round = 0; round < rounds; round++) times.push(await follower.mapping({ big, cwd, db, writer }))
    await sleep(0)
    return times.sort((a, b) => a - b)[times.length >> 1]
  },
})
