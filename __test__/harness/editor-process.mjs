// Plays an editor: one IdeServer of the addon, driven by JSON lines on standard input and ended with it.
//
//   node editor-process.mjs ADDON '{"ide":"vscode","name":"VS Code","workspaceFolders":["/proj"]}'
//
// Every request {id, method, params} is answered by {id, result} or {id, error}; the first line out is {ready: {port, lockFile}}.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const [addon, options] = process.argv.slice(2)
const { IdeServer } = createRequire(import.meta.url)(addon)
const server = await IdeServer.start(JSON.parse(options))

const methods = {
  publish: (snapshot) => server.publish(snapshot),
  clear: () => server.clear(),
  mention: (snapshot) => server.mention(snapshot),
  requestFix: (request) => server.requestFix(request),
  setWorkspaceFolders: (folders) => server.setWorkspaceFolders(folders),
  focus: () => server.focus(),
  clients: () => server.clients(),
  close: () => server.close(),
}

const write = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)
write({ ready: { port: server.port, lockFile: server.lockFile } })

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  try {
    write({ id, result: (await methods[method](params)) ?? null })
  } catch (error) {
    write({ id, error: { code: error.code, message: error.message } })
  }
}
await server.close()
