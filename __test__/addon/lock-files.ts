import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { inspect } from 'node:util'
import { expect } from 'vitest'
import type { Candidate, DiscoverOptions } from '../../index.d.ts'
import { discover } from '../../index.js'
import { CWD, folder, writeFileOf } from './support.ts'

/** A lock file's content. */
export type Lock = Record<string, unknown>

/** A token that no other text holds. */
export const TOKEN = 'feedc0de'.repeat(8)

/** Somebody answers at this port, and hangs up. */
const answering = createServer((socket) => socket.destroy())
  .listen(0, '127.0.0.1')
  .unref()
await once(answering, 'listening')
export const ANSWERED_PORT = (answering.address() as AddressInfo).port

export function lock(changes: Lock = {}): Lock {
  return {
    version: 1,
    ide: 'vscode',
    name: 'VS Code',
    transport: 'ws',
    host: '127.0.0.1',
    port: ANSWERED_PORT,
    authToken: TOKEN,
    workspaceFolders: [CWD],
    pid: process.pid,
    runningInWindows: false,
    ...changes,
  }
}

/** Writes a lock file; members that are undefined are left out. Returns its path. */
export function writeLock(dir: string, changes: Lock = {}, { name = '', ageMs = 0 } = {}): string {
  const content = lock(changes)
  const file = name || `${content.ide}-${content.pid ?? 1}-${content.port}.lock`
  return writeFileOf(join(dir, file), JSON.stringify(content), ageMs)
}

export const HOUR_MS = 3_600_000

/** The id of a machine that is not this one. */
export const OTHER_MACHINE = '0123456789abcdef'

/** The pid of a process that has ended. */
export function deadPid(): number {
  return spawnSync('true').pid
}

/** A port that nobody listens on. */
export async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** The candidate of one lock file. Nobody's port is asked, if it is usable. */
export async function candidateOf(lockFile: string, cwd = CWD): Promise<Candidate> {
  const options = { lockDir: dirname(lockFile), cleanUp: false }
  const named = ({ id }: Candidate) => id === lockFile
  const found =
    (await discover(cwd, options)).find(named) ?? (await discover(cwd, { ...options, all: true })).find(named)
  if (!found) throw new Error(`no candidate for ${lockFile}`)
  return found
}

/** A candidate for whatever listens on a port. */
export const candidateAt = (port: number, changes: Lock = {}): Promise<Candidate> =>
  candidateOf(writeLock(folder(), { port, ...changes }))

/** Everything that a scan sees, without touching it. */
export const look = (lockDir: string, cwd = CWD): Promise<Candidate[]> =>
  discover(cwd, { lockDir, all: true, cleanUp: false })

/** The only candidate of a folder. */
export async function only(lockDir: string, options: DiscoverOptions = {}): Promise<Candidate> {
  const all = await discover(CWD, { lockDir, all: true, ...options })
  expect(all).toHaveLength(1)
  return all[0] as Candidate
}

export const names = (candidates: Candidate[]): string[] => candidates.map(({ name }) => name)

/** Fails where a token stands in anything that a value shows or hides. */
export function expectNoToken(value: unknown, token = TOKEN): void {
  const stack = value instanceof Error ? value.stack : ''
  expect(inspect(value, { depth: null, showHidden: true, maxStringLength: null }) + stack).not.toContain(
    token,
  )
}
