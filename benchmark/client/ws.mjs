import { once } from 'node:events'
import { WebSocket } from 'ws'

/** What one would write without this package; it does not even check what it is told. Returns what closes it. */
export async function connect({ port, token, folder }, { onSelection, onMention }) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`, {
    headers: { 'x-pi-x-ide-authorization': token },
    perMessageDeflate: false,
  })
  await once(socket, 'open')
  const initialized = new Promise((resolve) => {
    socket.on('message', (data) => {
      const message = JSON.parse(data.toString())
      if (message.method === 'selection_changed') onSelection(message.params)
      else if (message.method === 'at_mentioned') onMention()
      else if (message.id === 1) resolve()
    })
  })
  const params = { protocolVersion: 1, client: { name: 'ws', version: '8' }, cwd: folder }
  socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }))
  await initialized
  return async () => {
    socket.close()
    await once(socket, 'close')
  }
}
