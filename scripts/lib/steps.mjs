// What the scripts show while they work, and how they end.
import { spawn } from 'node:child_process'
import { performance } from 'node:perf_hooks'
import { root } from './project.mjs'

/** A failure that its message explains; no stack is printed. */
export class Failure extends Error {}

/** Runs `work` under a heading and tells how long it took. `work` may return a word on what it did. */
export async function step(title, work) {
  const started = performance.now()
  console.log(`> ${title}`)
  const said = await work()
  console.log(`  ${said ? `${said}, ` : ''}${((performance.now() - started) / 1000).toFixed(1)} s`)
}

/**
 * Runs a command in the repository, its output shown as it comes. `onLine` also gets each line of its standard output.
 * Resolves with the exit code; `run` turns one other than 0 into a Failure.
 */
export function exitCode(command, args, { env = {}, onLine, cwd = root } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', onLine ? 'pipe' : 'inherit', 'inherit'],
    })
    if (onLine) forward(child.stdout, onLine)
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(code ?? `signal ${signal}`))
  })
}

export async function run(command, args, options) {
  const code = await exitCode(command, args, options)
  if (code !== 0) throw new Failure(`${command} ${args.join(' ')} ended with ${code}`)
}

/** Runs a JavaScript tool with this Node.js, which works alike on every system. */
export const runNode = (script, args, options) => run(process.execPath, [script, ...args], options)

function forward(stream, onLine) {
  let rest = ''
  stream.setEncoding('utf8')
  stream.on('data', (text) => {
    process.stdout.write(text)
    const lines = (rest + text).split('\n')
    rest = lines.pop()
    for (const line of lines) onLine(line)
  })
  stream.on('end', () => {
    if (rest) onLine(rest)
  })
}

/** Runs a script's main function: an explained failure prints its message, anything else its stack. */
export async function main(work) {
  try {
    await work()
  } catch (error) {
    console.error(error instanceof Failure ? `\n${error.message}` : error)
    process.exitCode = 1
  }
}
