import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'

/** How a process ended, and what it said. */
export interface Finished {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
  ms: number
}

export interface RunOptions {
  cwd: string
  env: Record<string, string>
  /** After this the process is killed, and the result says so in `signal`. */
  ms?: number
}

/** Runs a command to its end with an empty standard input. */
export function run(
  [command, ...first]: readonly string[],
  args: readonly string[],
  { cwd, env, ms = 60_000 }: RunOptions,
): Promise<Finished> {
  const started = performance.now()
  return new Promise((resolve, reject) => {
    const child = spawn(command as string, [...first, ...args], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const result = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text) => {
      result.stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      result.stderr += text
    })
    const late = setTimeout(() => child.kill('SIGKILL'), ms)
    child.once('error', reject)
    child.once('close', (code, signal) => {
      clearTimeout(late)
      resolve({ ...result, code, signal, ms: performance.now() - started })
    })
  })
}

/** Ends a process that we started, kindly first, and waits until it is gone. */
export async function end(child: ChildProcess, graceMs = 3000): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.kill('SIGTERM')
  const hard = setTimeout(() => child.kill('SIGKILL'), graceMs)
  await gone
  clearTimeout(hard)
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Threads and open descriptors of a process (Linux). */
export const usage = (pid: number): { threads: number; descriptors: number } => ({
  threads: readdirSync(`/proc/${pid}/task`).length,
  descriptors: readdirSync(`/proc/${pid}/fd`).length,
})
