// A fresh process that loads one module and says what that took. CommonJS, since the first `require` of an ES module's process also
// sets up the loader that it needs, which takes 2 ms whatever is loaded.
const { readdirSync } = require('node:fs')
const { performance } = require('node:perf_hooks')

const request = { ours: '../../index.js', ws: 'ws', empty: './empty.cjs' }[process.argv[2]]

const before = threadCount()
const started = performance.now()
const loaded = require(request)
const ms = performance.now() - started
const after = threadCount()

Promise.resolve(loaded.discover?.('/', { lockDir: '/nonexistent' })).then(() => {
  console.log(JSON.stringify({ ms, before, after, used: threadCount() }))
})

/** Undefined where the system does not tell. */
function threadCount() {
  try {
    return readdirSync('/proc/self/task').length
  } catch {
    return undefined
  }
}
