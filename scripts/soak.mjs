#!/usr/bin/env node
// npm run soak: editors start, hang, crash and end beside one real pi, in an order that a seed repeats; then four writers
// that checkpoint, crash and come back are followed as Zed. These are the tests __test__/e2e/soak.test.ts and
// __test__/addon/zed.test.ts, only longer; Linux only.
//
//   node scripts/soak.mjs [--rounds 100] [--seed NUMBER] [--ping-ms 300] [--pi new|old] [--zed-minutes 5] [--only editors|zed]
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { build } from './lib/build.mjs'
import { inRoot } from './lib/project.mjs'
import { Failure, main, runNode } from './lib/steps.mjs'

const SHOWN_AT_ONCE = '--disable-console-intercept'

await main(async () => {
  const options = parse()
  const env = {
    PIX_SOAK_ROUNDS: count(options, 'rounds'),
    PIX_SOAK_SEED: count(options, 'seed'),
    PIX_SOAK_PING_MS: count(options, 'ping-ms'),
    PIX_SOAK_PI: options.pi,
  }
  if (options.only !== 'zed') {
    await runNode(inRoot('scripts/test.mjs'), ['e2e', 'soak.test.ts', SHOWN_AT_ONCE], { env })
  }
  if (options.only !== 'editors') {
    await build()
    const zed = ['run', '--project', 'unit', 'addon/zed.test.ts', '-t', 'four writers']
    const minutes = { PIX_ZED_RUN_MS: String(count(options, 'zed-minutes') * 60_000) }
    await runNode(inRoot('node_modules/vitest/vitest.mjs'), zed, { env: minutes })
  }
})

function parse() {
  const options = {
    rounds: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(randomInt(1, 1_000_000)) },
    'ping-ms': { type: 'string', default: '300' },
    pi: { type: 'string', default: 'new' },
    'zed-minutes': { type: 'string', default: '5' },
    only: { type: 'string' },
  }
  try {
    return parseArgs({ options }).values
  } catch (error) {
    throw new Failure(error.message)
  }
}

function count(options, name) {
  if (/^[1-9]\d{0,8}$/.test(options[name])) return options[name]
  throw new Failure(`--${name} is a whole number from 1, not ${JSON.stringify(options[name])}`)
}
