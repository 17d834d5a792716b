// For scale: what it costs the JavaScript thread to be woken through a plain socket, with nothing to do.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { number, table } from '../lib/report.mjs'
import { usageNow, usageSince } from '../lib/usage.mjs'

const SENDER = fileURLToPath(new URL('sender.mjs', import.meta.url))
const WARM_UP_MS = 500

export async function measureWake({ quick }) {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sender = fork(SENDER, [String(server.address().port)])
  try {
    const [socket] = await once(server, 'connection')
    let wakes = 0
    socket.on('data', () => wakes++)
    await sleep(WARM_UP_MS)
    const [start, before] = [usageNow(), wakes]
    await sleep(quick ? 1000 : 3000)
    const [{ js, loop, cpu }, count] = [usageSince(start), wakes - before]
    console.log('\none byte a millisecond through a plain socket, per wake')
    table(
      ['wakes', 'JS us', 'loop us', 'CPU us'],
      [[count, ...[js, loop, cpu].map((ms) => number((ms / count) * 1000))]],
    )
  } finally {
    sender.kill()
    server.close()
  }
}
