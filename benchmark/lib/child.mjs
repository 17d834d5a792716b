// Child processes that do what they are asked, one request after another.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A script of this folder in a process of its own. */
export class Child {
  #process
  #name

  constructor(script, args = [], { execArgv = [], execPath = process.execPath, env = {} } = {}) {
    this.#name = [script, ...args].join(' ')
    this.#process = fork(fileURLToPath(new URL(`../${script}`, import.meta.url)), args, {
      execArgv,
      execPath,
      env: { ...process.env, ...env },
      serialization: 'advanced',
    })
  }

  /** The answer to a request; rejects when the child fails or ends instead. */
  async ask(what, ...args) {
    const answered = new AbortController()
    const { signal } = answered
    try {
      this.#process.send([what, ...args])
      const [answer] = await Promise.race([
        once(this.#process, 'message', { signal }),
        once(this.#process, 'exit', { signal }).then(([code, by]) => {
          throw new Error(`${this.#name} ended with ${by ?? code} instead of answering ${what}`)
        }),
      ])
      if (answer.failure) throw new Error(`${this.#name}, ${what}: ${answer.failure}`)
      return answer.result
    } finally {
      answered.abort()
    }
  }

  async end() {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const exited = once(this.#process, 'exit')
    const late = setTimeout(() => this.#process.kill('SIGKILL'), 2_000)
    if (this.#process.connected) this.#process.disconnect()
    await exited
    clearTimeout(late)
  }
}

/** In a child: answers requests by the function of that name, until the parent is gone. */
export function serve(requests) {
  process.on('message', async ([what, ...args]) => {
    try {
      process.send({ result: await requests[what](...args) })
    } catch (error) {
      process.send({ failure: String(error.stack ?? error) })
    }
  })
  process.on('disconnect', () => process.exit())
}
