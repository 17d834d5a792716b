import { describe } from 'vitest'
import { host, type PiVersion } from '../harness/hosts.ts'
import { ROUND_MS, soak } from '../harness/soak.ts'
import { test } from '../harness/test.ts'

// A short one by itself, whose steps are of every kind, on the editor that pi has and on the other one; `npm run soak`
// sets these for a long one and wants to see every step.
const { PIX_SOAK_ROUNDS, PIX_SOAK_SEED, PIX_SOAK_PING_MS, PIX_SOAK_PI } = process.env
const isLong = PIX_SOAK_ROUNDS !== undefined
const rounds = Number(PIX_SOAK_ROUNDS ?? 14)
const seed = Number(PIX_SOAK_SEED ?? 145)
const pingMs = Number(PIX_SOAK_PING_MS ?? 300)
const pi = (PIX_SOAK_PI ?? 'new') as PiVersion

describe(host(pi).label, { timeout: (rounds + 2) * ROUND_MS }, () => {
  test(`is with a living editor again after each of ${rounds} starts, crashes, hangs and ends, and keeps nothing`, {
    skip: process.platform !== 'linux',
  }, async ({ box }) => {
    const log = isLong ? (line: string) => console.log(line) : undefined
    if (isLong) console.log(`seed ${seed}`)
    const report = await soak(await box(host(pi)), { rounds, seed, pingMs, ...(log && { log }) })
    console.log(report.join('\n'))
  })
})
