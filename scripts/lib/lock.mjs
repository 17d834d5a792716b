// One build at a time in one checkout.
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const BEAT_MS = 2_000
const DEAD_AFTER_MS = 30_000

/** Runs `work` while no other process does so with the same lock file; waits for one that does. */
export async function exclusively(file, work) {
  await acquire(file)
  // A holder that was killed leaves its file behind; what tells it from a living one is that nobody touches it any more.
  const beat = setInterval(() => touch(file), BEAT_MS)
  beat.unref()
  try {
    return await work()
  } finally {
    clearInterval(beat)
    rmSync(file, { force: true })
  }
}

async function acquire(file) {
  mkdirSync(dirname(file), { recursive: true })
  for (let isTold = false; !create(file); await sleep(200)) {
    if (isAbandoned(file)) discard(file)
    else if (!isTold) {
      console.log('  another build is running in this checkout, waiting for it')
      isTold = true
    }
  }
}

function create(file) {
  try {
    writeFileSync(file, `${process.pid}\n`, { flag: 'wx' })
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
}

function isAbandoned(file) {
  try {
    if (Date.now() - statSync(file).mtimeMs > DEAD_AFTER_MS) return true
    const pid = Number(readFileSync(file, 'utf8'))
    if (pid > 0) process.kill(pid, 0)
    return false
  } catch (error) {
    return error.code === 'ESRCH'
  }
}

/** Renamed first: of two processes that see the same dead lock, the second must not remove the first one's new lock. */
function discard(file) {
  const aside = `${file}.${process.pid}`
  try {
    renameSync(file, aside)
  } catch (error) {
    if (error.code === 'ENOENT') return
    throw error
  }
  if (isAbandoned(aside)) rmSync(aside, { force: true })
  else renameSync(aside, file)
}

function touch(file) {
  try {
    utimesSync(file, new Date(), new Date())
  } catch {
    // Gone already: the work is at its end.
  }
}
