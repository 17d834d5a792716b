// A fresh process that loads the package and says what that took.
import { createRequire } from 'node:module'
import { performance } from 'node:perf_hooks'
import { threadCount } from '../lib/usage.mjs'

const require = createRequire(import.meta.url)
const before = threadCount()
const started = performance.now()
const addon = require('../../index.js')
const loadMs = performance.now() - started
const loaded = threadCount()
await addon.discover('/', { lockDir: '/nonexistent' })
console.log(JSON.stringify({ loadMs, before, loaded, used: threadCount() }))
