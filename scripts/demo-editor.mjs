// The editor of `npm run demo`: an IdeServer in a process of its own, which does what the other process tells its user to do.
//
//   node demo-editor.mjs FOLDER    (with an IPC channel: messages are [action, snapshot], each is answered)
import { createRequire } from 'node:module'
import { performance } from 'node:perf_hooks'

const [folder] = process.argv.slice(2)
const { IdeServer } = createRequire(import.meta.url)('../index.js')

const server = await IdeServer.start({
  ide: 'vscode',
  name: 'VS Code (demo)',
  version: '1.0.0',
  workspaceFolders: [folder],
}).catch((error) => {
  process.send({ failure: error.message })
  process.disconnect()
  process.exit(1)
})

const actions = {
  select: (snapshot) => server.publish(snapshot),
  mention: (snapshot) => {
    if (!server.mention(snapshot)) throw new Error('no pi is connected')
  },
  close: () => server.close(),
}

/** The other process may be gone already, and then nobody waits for an answer. */
const answer = (message) => process.connected && process.send(message, () => {})

process.on('message', async ([action, snapshot]) => {
  try {
    // The other process compares this with its own clock.
    await actions[action]({ ...snapshot, receivedAt: performance.timeOrigin + performance.now() })
    answer({})
  } catch (error) {
    answer({ failure: error.message })
  }
  if (action === 'close' && process.connected) process.disconnect()
})

// Also when the other process was killed: an editor that nobody can use any more takes its lock file along.
process.on('disconnect', () => server.close())
answer({ lockFile: server.lockFile })
