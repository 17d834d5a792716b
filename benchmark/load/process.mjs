// A fresh process that loads one package and says what that took: `ours`, or npm's `ws` for scale.
import { createRequire } from 'node:module'
import { performance } from 'node:perf_hooks'
import { threadCount } from '../lib/usage.mjs'

const require = createRequire(import.meta.url)
const [kind] = process.argv.slice(2)
const request = { ours: '../../index.js', ws: 'ws' }[kind]

const before = threadCount()
const started = performance.now()
const loaded = require(request)
const ms = performance.now() - started
const after = threadCount()
await loaded.discover?.('/', { lockDir: '/nonexistent' })
console.log(JSON.stringify({ ms, before, after, used: threadCount() }))
