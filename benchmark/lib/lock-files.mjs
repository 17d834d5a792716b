import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Writes the lock file of an editor as every producer writes it, into a folder that only the user can read; its path. */
export function writeLockFile(
  lockDir,
  { ide = 'vscode', name = 'Benchmark', pid = process.pid, port, token, folder },
) {
  const now = new Date().toISOString()
  const lock = {
    version: 1,
    ide,
    name,
    transport: 'ws',
    host: '127.0.0.1',
    port,
    authToken: token,
    workspaceFolders: [folder],
    pid,
    runningInWindows: false,
    createdAt: now,
    updatedAt: now,
  }
  mkdirSync(lockDir, { recursive: true, mode: 0o700 })
  const file = join(lockDir, `${ide}-${pid}-${port}.lock`)
  writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`, { mode: 0o600 })
  return file
}
