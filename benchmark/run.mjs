#!/usr/bin/env node
// npm run bench: everything that is measured, and whether it meets its aims. See README.md.
//
//   node benchmark/run.mjs [--quick] [--only load|wake|discovery|zed|clients|event-loop] [--scenario TEXT]
import { parseArgs } from 'node:util'
import { build } from '../scripts/lib/build.mjs'
import { Failure, main } from '../scripts/lib/steps.mjs'

const PARTS = {
  load: async (options) => (await import('./load/run.mjs')).measureLoading(options),
  wake: async (options) => (await import('./wake/run.mjs')).measureWake(options),
  discovery: async (options) => (await import('./discovery/run.mjs')).compareDiscovery(options),
  zed: async (options) => (await import('./zed/run.mjs')).compareZed(options),
  clients: async (options) => (await import('./client/run.mjs')).compareClients(options),
  'event-loop': async (options) => (await import('./event-loop/run.mjs')).watchEventLoop(options),
}

await main(async () => {
  const { values: options } = parseArgs({
    options: { quick: { type: 'boolean' }, only: { type: 'string' }, scenario: { type: 'string' } },
  })
  if (options.only && !PARTS[options.only]) {
    throw new Failure(`--only takes one of: ${Object.keys(PARTS).join(', ')}`)
  }
  // A library of one's own needs no building.
  if (!process.env.PI_X_IDE_NATIVE_LIBRARY) await build({ extension: false })
  const { describeMachine, printAims } = await import('./lib/report.mjs')
  describeMachine()
  for (const [name, part] of Object.entries(PARTS)) {
    if (!options.only || options.only === name) await part(options)
  }
  printAims()
})
