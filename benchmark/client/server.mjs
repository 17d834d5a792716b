// The editor's side: a server on npm's ws that both clients connect to.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { WebSocketServer } from 'ws'
import { serve } from '../lib/child.mjs'
import { clock } from '../lib/clock.mjs'
import { writeLockFile } from '../lib/lock-files.mjs'
import { sleepSync } from '../lib/usage.mjs'
import { endMessage, selectionMessage } from './scenarios.mjs'

const TOKEN = randomBytes(32).toString('hex')
const TOKEN_HEADER = 'x-pi-x-ide-authorization'

/** Frames that go to the kernel in one call, and bytes that may wait for it: what waits here longer measures this process. */
const FRAMES_AT_ONCE = 64
const WAITING_BYTES = 256 * 1024

/** Connected clients by the name that they gave in `initialize`. */
const clients = new Map()

serve({
  async listen(lockDir, folder) {
    const http = createServer()
    const server = new WebSocketServer({ noServer: true })
    http.on('upgrade', (request, socket, head) => {
      if (request.headers[TOKEN_HEADER] !== TOKEN) return socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n')
      server.handleUpgrade(request, socket, head, (client) => welcome(client, socket))
    })
    http.listen(0, '127.0.0.1')
    await once(http, 'listening')
    const { port } = http.address()
    writeLockFile(lockDir, { port, token: TOKEN, folder })
    return { port, token: TOKEN }
  },

  /** Sends one round to a client; the times at which its messages were sent, and how many bytes had to wait at most. */
  async send(name, { text, count, rate }) {
    const { client, socket } = clients.get(name)
    const messages = Array.from({ length: count }, (_, line) =>
      Buffer.from(selectionMessage(text, line, clock())),
    )
    const round = { client, socket, messages, sent: new Float64Array(count), waiting: 0 }
    await (rate ? paced(round, 1000 / rate) : burst(round))
    client.send(endMessage())
    return { sent: round.sent, waiting: round.waiting, bytes: messages[0].length }
  },
})

function welcome(client, socket) {
  socket.setNoDelay(true)
  client.once('message', (data) => {
    const { id, params } = JSON.parse(data.toString())
    const result = { protocolVersion: 1, server: { name: 'Benchmark', version: '1.0.0', ide: 'vscode' } }
    client.send(JSON.stringify({ jsonrpc: '2.0', id, result }))
    const cleared = { source: 'vscode', reason: 'no-active-editor' }
    client.send(JSON.stringify({ jsonrpc: '2.0', method: 'selection_cleared', params: cleared }))
    clients.set(params.client.name, { client, socket })
  })
}

async function burst(round) {
  const { socket, messages } = round
  for (let next = 0; next < messages.length; ) {
    const end = Math.min(next + FRAMES_AT_ONCE, messages.length)
    socket.cork()
    while (next < end) sendOne(round, next++)
    socket.uncork()
    while (socket.writableLength > WAITING_BYTES) await setImmediate()
  }
}

/** Sleeps between messages without a timer of the event loop, which is too coarse for a kilohertz and would drift. */
async function paced(round, intervalMs) {
  const started = clock()
  for (let next = 0; next < round.messages.length; next++) {
    const wait = started + next * intervalMs - clock()
    if (wait > 0) sleepSync(wait)
    sendOne(round, next)
    round.waiting = Math.max(round.waiting, round.socket.writableLength)
    await setImmediate()
  }
}

function sendOne({ client, messages, sent }, number) {
  sent[number] = clock()
  client.send(messages[number], { binary: false })
}
