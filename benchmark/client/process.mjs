// The client's side, `ours` or `ws`: what is told of the editor goes through the same few lines in both.
import { setTimeout as sleep } from 'node:timers/promises'
import { serve } from '../lib/child.mjs'
import { clock } from '../lib/clock.mjs'
import { sleepSync, usageNow, usageSince } from '../lib/usage.mjs'

const [kind] = process.argv.slice(2)
const { connect } = await import(`./${kind}.mjs`)

/** The state that a listener keeps. */
let latest
let round
/** Keeps the connection. */
let _close

const listener = {
  onSelection(snapshot) {
    latest = snapshot
    if (!round) return
    round.numbers[round.calls] = latest.ranges[0].selection.start.line
    round.times[round.calls++] = clock()
  },
  onMention() {
    round?.end()
  },
}

serve({
  async connect(access) {
    _close = await connect(access, listener)
  },

  /** Gets ready for a round of so many messages. */
  begin({ count }) {
    const { promise, resolve } = withResolvers()
    round = { calls: 0, numbers: new Float64Array(count), times: new Float64Array(count), ended: promise }
    globalThis.gc()
    const start = usageNow()
    round.end = () => {
      if (round.isEnded) return
      round.isEnded = true
      // After the callbacks that are part of the work.
      setImmediate(() => resolve(usageSince(start)))
    }
  },

  /** What the round took, once its last message is here; with `stalls`, this thread is blocked again and again meanwhile. */
  async finish({ stalls }) {
    const stalled = stalls && (await stall(stalls))
    const usage = await round.ended
    const { calls, numbers, times } = round
    round = undefined
    return { usage, stalled, calls, numbers: numbers.slice(0, calls), times: times.slice(0, calls) }
  },
})

/** Ends of the blocks, and this process's memory after each, in MB. */
async function stall({ blockMs, freeMs }) {
  const ends = []
  const memory = []
  while (!round.isEnded) {
    sleepSync(blockMs)
    ends.push(clock())
    await sleep(freeMs)
    memory.push(process.memoryUsage.rss() / 2 ** 20)
  }
  return { ends, memory }
}

function withResolvers() {
  let resolve
  const promise = new Promise((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
