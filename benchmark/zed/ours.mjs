// Following Zed with the addon: a native loop that speaks only when something changes.
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadAddon } from '../lib/addon.mjs'

const IDLE_MS = 4_000
const TICK_MS = 100

export async function follow({ cwd, db }) {
  const { readZed, watchZed } = loadAddon()
  const connection = await watchZed({ cwd, database: db, checkPid: false })
  let told = () => {}
  connection.onEvent(() => told())
  const text = () => connection.latest({ text: true })?.ranges[0]?.text

  return {
    /** The tick after a change reads once more. */
    rest: () => sleep(3 * TICK_MS),
    async changed() {
      const before = text()
      await new Promise((resolve) => {
        told = () => text() !== before && text() !== undefined && resolve()
        told()
      })
      return text()
    },
    async unchanged() {
      await sleep(IDLE_MS)
      return IDLE_MS / TICK_MS
    },
    /** The whole reading, opening the database included. */
    async mapping({ big, writer }) {
      const { item_id, workspace_id } = big
      writer.exec(`UPDATE items SET active = item_id = ${item_id} WHERE workspace_id = ${workspace_id}`)
      writer.exec(
        `UPDATE panes SET active = pane_id = (SELECT pane_id FROM items WHERE item_id = ${item_id}) WHERE workspace_id = ${workspace_id}`,
      )
      const from = performance.now()
      const shown = await readZed({ cwd, database: db, checkPid: false, text: true })
      const took = performance.now() - from
      if (shown.filePath !== big.path || shown.ranges[0]?.text !== big.selections[0].text) {
        throw new Error(JSON.stringify(shown))
      }
      return took
    },
  }
}
