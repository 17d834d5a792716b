#!/usr/bin/env node
// npm test: builds what is not built, runs the Rust and the JavaScript tests, and ends with the sum over all of them.
//
//   node scripts/test.mjs                    cargo test, then the unit project of vitest
//   node scripts/test.mjs e2e [FILTER…]      end to end with the real pi, which is installed into .hosts/ first
//   node scripts/test.mjs --sum FILE         the sum over the suites that runs with PIX_TEST_SUMMARY=FILE have added
import { build } from './lib/build.mjs'
import { inRoot } from './lib/project.mjs'
import { main, runNode, step } from './lib/steps.mjs'
import { cargoSuite, vitestSuite } from './lib/suites.mjs'
import { conclude, record, recorded } from './lib/summary.mjs'

async function unit() {
  await needed('build', build)
  const suites = []
  await step('cargo test', async () => void suites.push(record(await cargoSuite())))
  await step('vitest', async () => void suites.push(record(await vitestSuite('unit'))))
  conclude(suites)
}

async function endToEnd(filters) {
  await needed('build', build)
  await needed('pi hosts', () =>
    step('pi hosts', () => runNode(inRoot('scripts/pi-hosts.mjs'), ['--bun-binaries'])),
  )
  const suites = []
  await step('end to end', async () => void suites.push(record(await vitestSuite('e2e', filters))))
  conclude(suites)
}

/** Without this nothing can be tested, which must not look like nothing to test in the sum. */
async function needed(name, work) {
  try {
    await work()
  } catch (error) {
    record({ name, passed: 0, failed: 1 })
    throw error
  }
}

await main(() => {
  const [what, ...rest] = process.argv.slice(2)
  if (what === '--sum') return conclude(recorded(rest[0]))
  return what === 'e2e' ? endToEnd(rest) : unit()
})
