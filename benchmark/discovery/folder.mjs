// A lock folder after some bad years: nearly all of its editors are gone.
import { mkdirSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { writeLockFile } from '../lib/lock-files.mjs'
import { probe } from './probe.mjs'

export const LOCK_FILES = 1_000
const TOKEN = 'f'.repeat(64)

/**
 * Linux gives pids below this number only (PID_MAX_LIMIT), and kill(2) takes those above: they are looked up and found dead. A pid
 * that was in use once may be in use again while this runs.
 */
const FIRST_DEAD_PID = 4_194_304

/** Below the ports that Linux gives to whoever asks for any. */
const FIRST_DEAD_PORT = 12_000

/** The folder that editors are looked for. */
export const ASKED = 'project/packages/app'

/** Where the live editors are: in a folder that contains it, inside it, beside it, and elsewhere. */
const CONTAINING = ['project', 'project/packages', ASKED]
const OTHERS = [`${ASKED}/src`, `${ASKED}lication`, 'project/docs', 'a', 'b', 'c', 'd']
const FOLDERS = [...CONTAINING, ...OTHERS]

export const CONTAIN_IT = CONTAINING.length
export const LIVE = FOLDERS.length

/** Writes the lock files of this process's editors, which listen at `ports`, and of the many more that are gone. */
export async function fill(box, lockDir, ports) {
  const folders = FOLDERS.map((folder) => join(box, folder))
  for (const folder of folders) mkdirSync(folder, { recursive: true })
  folders.forEach((folder, n) => {
    write(lockDir, { port: ports[n], pid: process.pid, folder, age: n * 60 })
  })
  let port = FIRST_DEAD_PORT
  for (let n = 0; n < LOCK_FILES - LIVE; n++) {
    while ((await probe(port)) !== 'refused') port++
    const pid = FIRST_DEAD_PID + n
    if (!isDead(pid)) throw new Error(`there is a process ${pid}`)
    // The same folders: nobody can leave a dead editor out because it would not fit anyway.
    write(lockDir, { port: port++, pid, folder: folders[n % LIVE], age: 3_600 + n * 60 })
  }
}

/** Differing ages in whole seconds, so that there is one order only. */
function write(lockDir, { age, ...lock }) {
  const file = writeLockFile(lockDir, { ...lock, token: TOKEN })
  const changed = Math.floor(Date.now() / 1000) - age
  utimesSync(file, changed, changed)
}

function isDead(pid) {
  try {
    process.kill(pid, 0)
    return false
  } catch ({ code }) {
    return code === 'ESRCH'
  }
}
