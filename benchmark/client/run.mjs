// Our client against npm's ws on one server.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child } from '../lib/child.mjs'
import { aim, number, table } from '../lib/report.mjs'
import { median, medianRatio, quantile } from '../lib/statistics.mjs'
import { countsThreads } from '../lib/usage.mjs'
import { scenarios } from './scenarios.mjs'

const KINDS = ['ours', 'ws']

/** So many messages in a burst before the first round, for ws's code to be compiled to the end. */
const WARM_UP = { name: 'warm-up', text: 'short', count: 20_000 }

/** Each figure from one result of `playRound`. */
const MEASURES = {
  'JS us': ({ usage, count }) => (usage.js / count) * 1000,
  'loop us': ({ usage, count }) => (usage.loop / count) * 1000,
  'CPU us': ({ usage, count }) => (usage.cpu / count) * 1000,
  'p50 ms': ({ delays }) => quantile(delays, 0.5),
  'p99 ms': ({ delays }) => quantile(delays, 0.99),
  calls: ({ calls }) => calls,
}

export async function compareClients({ quick, scenario: only }) {
  console.log(
    `\nour client / ws 8, per message sent; JS is ${countsThreads ? "the JavaScript thread's CPU time" : "the event loop's busy time"}`,
  )
  const chosen = scenarios.filter(({ name }) => !only || name.includes(only))
  const results = new Map()
  for (const scenario of chosen) {
    const rounds = quick ? Math.min(3, scenario.rounds) : scenario.rounds
    results.set(scenario.name, await playScenario({ ...scenario, rounds }))
  }
  printFigures(results)
  printStalls(results)
  noteAims(results)
}

/**
 * One process for each client, both warm, each with its own heap; their rounds alternate and the other one is idle meanwhile. Which
 * one is first alternates too.
 */
async function playScenario(scenario) {
  const box = realpathSync(mkdtempSync(join(tmpdir(), 'pix-bench-')))
  const server = new Child('client/server.mjs')
  const clients = KINDS.map((kind) => new Child('client/process.mjs', [kind], { execArgv: ['--expose-gc'] }))
  try {
    const lockDir = join(box, 'lock')
    const access = {
      lockDir,
      folder: '/bench/project',
      ...(await server.ask('listen', lockDir, '/bench/project')),
    }
    for (const client of clients) await client.ask('connect', access)
    for (const at of [0, 1]) await playRound(WARM_UP, server, KINDS[at], clients[at])
    const figures = KINDS.map(() => [])
    for (let round = -1; round < scenario.rounds; round++) {
      for (const at of round % 2 === 0 ? [0, 1] : [1, 0]) {
        const result = await playRound(scenario, server, KINDS[at], clients[at])
        if (round >= 0) figures[at].push(result)
      }
    }
    const [ours, ws] = figures
    return { ours, ws }
  } finally {
    await Promise.all([server, ...clients].map((child) => child.end()))
    rmSync(box, { recursive: true, force: true })
  }
}

async function playRound(scenario, server, kind, client) {
  await client.ask('begin', scenario)
  const [result, { sent, waiting }] = await Promise.all([
    client.ask('finish', scenario),
    server.ask('send', kind === 'ours' ? 'pi-x-ide' : 'ws', scenario),
  ])
  if (result.numbers.at(-1) !== scenario.count - 1) {
    throw new Error(
      `${scenario.name}, ${kind}: the last state told was ${result.numbers.at(-1)} of ${scenario.count}`,
    )
  }
  return { ...result, sent, waiting, count: scenario.count, delays: delays(result, sent) }
}

/** From sending each state until the listener has been told it or a newer one: a state that was left out counts as well. */
function delays({ numbers, times }, sent) {
  let call = 0
  return sent.map((time, number) => {
    while (numbers[call] < number) call++
    return times[call] - time
  })
}

function printFigures(results) {
  const rows = []
  for (const [name, { ours, ws }] of results) {
    const cells = Object.values(MEASURES).map((measure) => {
      const [a, b] = [ours.map(measure), ws.map(measure)]
      return `${number(median(a))}/${number(median(b))} ${number(medianRatio(a, b))}`
    })
    rows.push([name, ours.length, ...cells])
  }
  const heads = Object.keys(MEASURES).map((name) => `${name} ours/ws =`)
  table(['scenario', 'rounds', ...heads], rows)
}

/** How a client whose thread was blocked catches up, and what waiting messages cost it. */
function printStalls(results) {
  for (const [name, result] of results) {
    if (!result.ours[0].stalled) continue
    const rows = KINDS.map((kind) => {
      const rounds = result[kind]
      return [
        kind,
        median(rounds.flatMap(catchUps)),
        median(rounds.map(growth)),
        median(rounds.map(({ waiting }) => waiting / 2 ** 20)),
      ]
    })
    console.log(`\n${name}: after each block`)
    table(
      ['client', 'up to date after ms', 'memory growth MB', 'waiting in the editor MB'],
      rows.map(([kind, ...values]) => [kind, ...values.map(number)]),
    )
  }
}

/** From the end of each block until the listener was told a state that was sent after it. */
function catchUps({ stalled, numbers, times, sent }) {
  const at = (end) => times.find((_, call) => sent[numbers[call]] >= end)
  return stalled.ends.map((end) => at(end) - end).filter(Number.isFinite)
}

/** From the memory after the first blocks to its peak. */
const growth = ({ stalled: { memory } }) => Math.max(...memory) - median(memory.slice(0, 2))

/** As far as two runs of the same thing differ. */
const NOISE = 0.1

function noteAims(results) {
  const ratio = (name, measure) => {
    const { ours, ws } = results.get(name)
    return medianRatio(ours.map(MEASURES[measure]), ws.map(MEASURES[measure]))
  }
  if (results.has('burst')) {
    aim('burst, JS thread', ratio('burst', 'JS us'), 0.3, { unit: 'x' })
    aim('burst, CPU', ratio('burst', 'CPU us'), 0.5, { unit: 'x' })
  }
  if (results.has('1 kHz')) {
    aim('1 kHz, JS thread', ratio('1 kHz', 'JS us'), 0.3, { unit: 'x' })
    aim('1 kHz, p50', ratio('1 kHz', 'p50 ms'), 1.05, { unit: 'x' })
    aim('1 kHz, p99', ratio('1 kHz', 'p99 ms'), 1, { unit: 'x', below: true })
  }
  for (const kind of ['burst', '1 kHz']) {
    const [ascii, nonAscii] = [`${kind}, 4 KB ASCII`, `${kind}, 4 KB non-ASCII`]
    if (!results.has(ascii) || !results.has(nonAscii)) continue
    for (const [title, measure] of Object.entries({ 'JS thread': 'JS us', CPU: 'CPU us' })) {
      const value = ratio(nonAscii, measure) / ratio(ascii, measure)
      aim(`${kind}, ${title}, non-ASCII against ASCII`, value, 1 + NOISE, { unit: 'x' })
    }
  }
  for (const [name, { ours }] of results) {
    if (!ours[0].stalled) continue
    aim(`${name}, memory growth`, median(ours.map(growth)), 8, { unit: ' MB' })
    aim(`${name}, up to date after a block`, median(ours.flatMap(catchUps)), 10, { unit: ' ms' })
  }
}
