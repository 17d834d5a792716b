import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { until } from './until.ts'

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
  if (guards.has(child.pid as number)) resume(child.pid as number)
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

/** Memory of a process that is in RAM, in MiB (Linux). */
export const residentMiB = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

/** One established TCP connection of a process. */
export interface Socket {
  inode: string
  remotePort: number
}

const ESTABLISHED = '01'

/** The established TCP connections of a process (Linux). */
export function establishedSockets(pid: number): Socket[] {
  const own = new Set(socketInodes(pid))
  return ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, 'utf8')
      .split('\n')
      .slice(1)
      .flatMap((line) => {
        const [, , remote, state, , , , , , inode] = line.trim().split(/\s+/)
        if (state !== ESTABLISHED || inode === undefined || !own.has(inode)) return []
        return [{ inode, remotePort: Number.parseInt(remote?.split(':')[1] ?? '', 16) }]
      }),
  )
}

/** Every socket of a process, of whatever kind (Linux). */
export function socketInodes(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${descriptor}`))?.[1] ?? []
    } catch {
      return [] // closed since the folder was listed
    }
  })
}

/** Who lets a suspended process go on should this one be killed: neither its end nor a signal would reach it any more. */
const guards = new Map<number, ChildProcess>()

/** Stops a process without its doing, and returns when it has come to a halt (Linux). Ports of it stay open. */
export async function suspend(pid: number): Promise<void> {
  // In a group of its own, which no Ctrl-C reaches; its input ends when we do.
  const guard = spawn('sh', ['-c', 'read -r _; kill -CONT "$0"', String(pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  guards.set(pid, guard)
  process.kill(pid, 'SIGSTOP')
  await until(`process ${pid} to stop`, () => threadStates(pid).every((state) => state === 'T'))
}

/** Lets a suspended process go on. */
export function resume(pid: number): void {
  process.kill(pid, 'SIGCONT')
  unguard(pid)
}

/** For a process that ends while it is suspended: its number may be another's soon. */
export function unguard(pid: number): void {
  guards.get(pid)?.kill('SIGKILL')
  guards.delete(pid)
}

/** What each thread does, by the letters of `ps`. */
const threadStates = (pid: number): (string | undefined)[] =>
  readdirSync(`/proc/${pid}/task`).map((thread) => {
    try {
      // The name before the letter may hold spaces and parentheses.
      return /.*\) (\w)/s.exec(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'))?.[1]
    } catch {
      return undefined // ended since the folder was listed
    }
  })
