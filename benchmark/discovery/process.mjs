// One way to find the editors, in a process of its own: `ours`, `fs`, or `fs-pid`, which is `fs` without probes.
import { performance } from 'node:perf_hooks'
import { serve } from '../lib/child.mjs'
import { usageNow, usageSince } from '../lib/usage.mjs'

const [kind] = process.argv.slice(2)
const { find } = await import(kind === 'ours' ? './ours.mjs' : './fs.mjs')

serve({
  /**
   * One round: `wall`, milliseconds until the promise is settled, and what was used meanwhile. The JavaScript thread's time is what the
   * kernel charged that one thread with, in schedstat (see lib/usage.mjs): CPU of the process would count libuv's threads and ours as
   * well, and the event loop's busy time the waits for a core that those threads have. Reading it costs either side 0.3 ms.
   */
  async find({ cwd, lockDir }) {
    globalThis.gc()
    const start = usageNow()
    const from = performance.now()
    const candidates = await find(cwd, { lockDir, trustsPid: kind === 'fs-pid' })
    const wall = performance.now() - from
    return { ...usageSince(start), wall, candidates }
  },
})
