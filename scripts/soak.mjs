#!/usr/bin/env node
// npm run soak: editors start, hang, crash and end beside one real pi, in an order that a seed repeats. It is the test
// __test__/e2e/soak.test.ts, only longer and telling each step; Linux only.
//
//   node scripts/soak.mjs [--rounds 100] [--seed NUMBER] [--ping-ms 300] [--pi new|old]
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
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
  await runNode(inRoot('scripts/test.mjs'), ['e2e', 'soak.test.ts', SHOWN_AT_ONCE], { env })
})

function parse() {
  const options = {
    rounds: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(randomInt(1, 1_000_000)) },
    'ping-ms': { type: 'string', default: '300' },
    pi: { type: 'string', default: 'new' },
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
