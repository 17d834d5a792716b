// A process whose event loop is watched: `following` the editor, `alone`, or told the same by npm's `ws`.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import * as ws from '../client/ws.mjs'
import { loadAddon } from '../lib/addon.mjs'
import { serve } from '../lib/child.mjs'

const [kind] = process.argv.slice(2)
let calls

const kinds = {
  /** Finding the editor among all lock files belongs to it. */
  async following({ folder, lockDir }) {
    const connection = await loadAddon().connectBest(folder, { keepAlive: true, lockDir })
    connection.onEvent((event) => {
      if (event.type === 'selection') calls++
    })
    return () => connection.close()
  },

  alone: () => () => {},

  ws: (access) => ws.connect(access, { onSelection: () => calls++ }),
}

serve({
  /** Delays of the event loop in milliseconds, and how many selections were told. */
  async watch({ ms, ...access }) {
    const histogram = monitorEventLoopDelay({ resolution: 1 })
    calls = 0
    globalThis.gc()
    histogram.enable()
    const close = await kinds[kind](access)
    await sleep(ms)
    await close()
    histogram.disable()
    return {
      p50: histogram.percentile(50) / 1e6,
      p99: histogram.percentile(99) / 1e6,
      max: histogram.max / 1e6,
      calls,
    }
  },
})
