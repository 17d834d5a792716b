// What one would write in JavaScript instead, on node:fs/promises and node:net. It knows no WSL, no foreign machine and no links in
// workspace folders, all of which `discover` looks at: it has a little less to do.
import { constants } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { parseLock } from './lock.mjs'
import { best, components } from './match.mjs'
import { probe } from './probe.mjs'

/** Files and probes; the same as `discover` probes. From 4 to 256 it makes no difference that could be told from noise. */
const AT_ONCE = 64
const MAX_LOCK_BYTES = 1024 * 1024
const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants

/** Candidates, best first. `trustsPid` takes a dead pid for a proof and so hides an editor in a container. */
export async function find(cwd, { lockDir, trustsPid = false }) {
  const names = await namesIn(lockDir)
  const locks = await mapLimited(names, (name) => readLock(join(lockDir, name)))
  const isLive = await mapLimited(locks, async (lock) => {
    if (!lock) return false
    if (lock.pid === undefined || mayBeAlive(lock.pid)) return true
    return !trustsPid && (await probe(lock.port)) === 'reachable'
  })
  const asked = components(cwd)
  return locks
    .filter((_, i) => isLive[i])
    .map((lock) => candidate(lock, asked))
    .sort(compare)
    .map(({ focusedAt, modifiedAt, ...told }) => ({ ...told, lastActivity: focusedAt ?? modifiedAt }))
}

async function namesIn(lockDir) {
  let folder
  try {
    folder = await open(lockDir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    if (!isOwn(await folder.stat())) return []
    const names = await readdir(lockDir)
    return names.filter((name) => name.endsWith('.lock'))
  } catch {
    return []
  } finally {
    await folder?.close()
  }
}

/** Undefined for what cannot be trusted or is no lock. */
async function readLock(id) {
  let file
  try {
    file = await open(id, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    const stat = await file.stat()
    if (!stat.isFile() || !isOwn(stat) || stat.size > MAX_LOCK_BYTES) return undefined
    const lock = parseLock(await file.readFile('utf8'))
    return lock && { ...lock, id, modifiedAt: Math.floor(stat.mtimeMs) }
  } catch {
    return undefined
  } finally {
    await file?.close()
  }
}

const isOwn = ({ uid, mode }) => uid === process.geteuid() && (mode & 0o022) === 0

function mayBeAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch ({ code }) {
    return code !== 'ESRCH'
  }
}

function candidate({ id, ide, name, pid, host, port, workspaceFolders, focusedAt, modifiedAt }, asked) {
  const { folder = workspaceFolders[0], matchLength, direct } = best(workspaceFolders, asked)
  return {
    id,
    transport: 'ws',
    ide,
    name,
    pid,
    host,
    port,
    workspaceFolder: folder,
    workspaceFolders,
    matchLength,
    direct,
    focusedAt,
    modifiedAt,
    verdict: 'usable',
  }
}

const compare = (a, b) =>
  b.matchLength - a.matchLength ||
  (b.focusedAt ?? 0) - (a.focusedAt ?? 0) ||
  b.modifiedAt - a.modifiedAt ||
  (a.id < b.id ? -1 : 1)

/** Like `Promise.all` over a map, a few at a time. */
async function mapLimited(items, work) {
  const results = new Array(items.length)
  let next = 0
  const worker = async () => {
    while (next < items.length) {
      const at = next++
      results[at] = await work(items[at])
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return results
}
