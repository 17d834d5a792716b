// What a process has used so far.
import { existsSync, readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'

const SCHEDSTAT = `/proc/self/task/${process.pid}/schedstat`
const cell = new Int32Array(new SharedArrayBuffer(4))

/** Whether the system counts the CPU time of a thread; elsewhere the event loop's busy time stands for it. */
export const countsThreads = existsSync(SCHEDSTAT)

/** Lets this thread sleep: no timer, no event, no CPU. */
export const sleepSync = (ms) => void Atomics.wait(cell, 0, 0, ms)

/** A point of time to measure from, see `usageSince`. */
export function usageNow() {
  // The kernel adds a running thread's time up when it stops running, or at a tick of 4 ms.
  sleepSync(1)
  return { thread: threadMs(), loop: performance.eventLoopUtilization(), cpu: process.cpuUsage() }
}

/**
 * In milliseconds: `js`, CPU time of the JavaScript thread; `loop`, time in which the event loop was busy, including that in which
 * another thread had the CPU; `cpu`, CPU time of all threads.
 */
export function usageSince(start) {
  const { thread, loop, cpu } = usageNow()
  const busy = performance.eventLoopUtilization(loop, start.loop).active
  return {
    js: countsThreads ? thread - start.thread : busy,
    loop: busy,
    cpu: (cpu.user + cpu.system - start.cpu.user - start.cpu.system) / 1000,
  }
}

const threadMs = () => (countsThreads ? Number(readFileSync(SCHEDSTAT, 'latin1').split(' ', 1)[0]) / 1e6 : 0)
