// Listens in the network namespace that it is started in, tells of all that arrives, and passes it on.
//
//   node wsl-relay.mjs '{"host":"172.20.0.1","port":4711}' '{"host":"127.0.0.1","port":4711}'
//
// Both are options of node:net, so a path names a socket that other namespaces see, too. Without the second one nothing
// is passed on and nothing is answered. Lines out: {ready}, then {connections} and {received}.
import { connect, createServer } from 'node:net'
import { pipeline } from 'node:stream'

const [listen, target] = process.argv.slice(2).map((text) => JSON.parse(text))
const write = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)
let connections = 0

const server = createServer((socket) => {
  write({ connections: ++connections })
  socket.on('error', () => {}) // whoever connected is told by the end of the connection
  socket.on('data', (data) => write({ received: data.toString('latin1') }))
  if (target) pipeline(socket, connect(target), socket, () => {})
})
server.listen(listen, () => write({ ready: true }))
process.stdin.resume().once('end', () => process.exit())
