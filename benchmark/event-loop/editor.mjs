// An editor whose user moves the cursor without a pause, among a thousand others.
import { readFileSync } from 'node:fs'
import { loadAddon } from '../lib/addon.mjs'
import { serve } from '../lib/child.mjs'
import { writeLockFile } from '../lib/lock-files.mjs'

serve({
  async start({ lockDir, folder, lockFiles, rate }) {
    const { IdeServer } = loadAddon()
    const server = await IdeServer.start({
      ide: 'vscode',
      name: 'Benchmark',
      workspaceFolders: [folder],
      lockDir,
    })
    for (let n = 1; n < lockFiles; n++) {
      writeLockFile(lockDir, { port: 20_000 + n, token: 'f'.repeat(64), folder: `/bench/elsewhere/${n}` })
    }
    let line = 0
    setInterval(() => {
      const selection = { start: { line: line++, character: 0 }, end: { line: line + 5, character: 1 } }
      server.publish({
        filePath: `${folder}/src/total.ts`,
        workspaceFolder: folder,
        ranges: [{ text: 'x'.repeat(80), selection }],
      })
    }, 1000 / rate)
    const { port, authToken: token } = JSON.parse(readFileSync(server.lockFile, 'utf8'))
    return { port, token }
  },
})
