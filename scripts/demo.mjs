#!/usr/bin/env node
// npm run demo: an editor in a second process, and what a user of pi sees of it. Nothing of it touches the real home folder.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { build } from './lib/build.mjs'
import { Failure, main } from './lib/steps.mjs'

const EDITOR = fileURLToPath(new URL('demo-editor.mjs', import.meta.url))

/** Nothing here takes longer unless something is wrong. */
const LIMIT_MS = 3_000

const ASCII = 'src/invoice.ts'
const CJK = 'src/計算 🧮.ts'
const CODE = `export function total(prices: number[]): number {
  const net = prices.reduce((sum, price) => sum + price, 0)
  return Math.round(net * 119) / 100
}
`

// A reader that has seen enough (`| head`) is no reason to stop half-way and leave things behind.
process.stdout.on('error', () => {})

await main(async () => {
  // A library of one's own needs no building.
  if (!process.env.PI_X_IDE_NATIVE_LIBRARY) await build()
  const started = performance.now()
  const box = makeBox()
  const interrupted = () => {
    box.editor?.kill('SIGKILL')
    box.remove()
    process.exit(130)
  }
  process.on('SIGINT', interrupted).on('SIGTERM', interrupted)
  try {
    await play(box)
  } catch (error) {
    throw error.code?.startsWith('PIX_') ? new Failure(`${error.message} (${error.code})`) : error
  } finally {
    await endEditor(box)
    box.remove()
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted)
  }
  console.log(`\nDone in ${((performance.now() - started) / 1000).toFixed(1)} s, nothing is left behind.`)
})

async function play(box) {
  const { connectBest } = createRequire(import.meta.url)('../index.js')

  heading('An editor opens the project, in a process of its own')
  const editor = await startEditor(box)
  say('project', box.project)
  say('editor', `process ${box.editor.pid}`)
  say('lock file', editor.lockFile)

  heading('pi starts in the project and looks for its editor')
  const searched = performance.now()
  const connection = await within(connectBest(box.project, { timeoutMs: LIMIT_MS }), 'finding the editor')
  if (!connection) throw new Failure(`connectBest found no editor for ${box.project}`)
  const took = performance.now() - searched
  const { candidate, server } = connection
  say('candidate', `${candidate.name}, ${candidate.workspaceFolder}`)
  say(
    'why',
    `${candidate.direct ? 'it has the folder of pi open' : candidate.reason} (match ${candidate.matchLength})`,
  )
  say('connected', `${server.name} ${server.version}, found and connected in ${ms(took)}`)

  heading('The user selects; pi shows one line above the prompt')
  const events = collect(connection)
  for (const [what, file, ...lines] of [
    ['some lines', ASCII, [1, 3]],
    ['a file named in Japanese', CJK, [2, 2]],
    ['two places at once', ASCII, [1, 1], [3, 4]],
    ['nothing any more', ASCII],
  ]) {
    await editor.tell('select', snapshot(box, file, lines))
    const { event, at } = await events.next('selection')
    say(what, statusLine(connection), `delivered after ${ms(at - event.snapshot.receivedAt)}`)
  }

  heading('The user attaches two lines in the editor; they land in the input box')
  await editor.tell('mention', snapshot(box, ASCII, [[2, 3]]))
  const { event, at } = await events.next('mention')
  say('input box', event.mentions.join(' '), `delivered after ${ms(at - event.snapshot.receivedAt)}`)
  say('line', statusLine(connection))

  heading('The user sends a prompt; the model gets this block along with it')
  const prepared = await within(connection.prepareContext({ waitMs: 250 }), 'preparing the context')
  if (!prepared) throw new Failure('there was nothing for the model, although a selection is pending')
  for (const line of prepared.content.split('\n')) console.log(`  | ${line}`)
  connection.markInjected(prepared)
  say('line', statusLine(connection))
  const again = await within(connection.prepareContext(), 'preparing the second context')
  if (again) throw new Failure(`a second prompt would repeat what the model has seen:\n${again.content}`)
  say('next prompt', 'adds nothing: the model has seen it')

  heading('The editor closes')
  await editor.tell('close')
  const closed = await events.next('closed')
  say('pi', closed.event.reason)
  if (existsSync(editor.lockFile)) throw new Failure(`the editor left ${editor.lockFile} behind`)
  say('lock file', 'gone')
  await within(connection.close(), 'closing the connection')
}

/** A home and a project of their own; from here on this process and its children know no other home. */
function makeBox() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'pi-x-ide-demo-')))
  const box = { home: join(root, 'home'), project: join(root, 'project') }
  mkdirSync(box.home)
  for (const file of [ASCII, CJK]) {
    mkdirSync(dirname(join(box.project, file)), { recursive: true })
    writeFileSync(join(box.project, file), CODE)
  }
  for (const name of Object.keys(process.env)) {
    if (/^PI_/.test(name) && name !== 'PI_X_IDE_NATIVE_LIBRARY') delete process.env[name]
  }
  Object.assign(process.env, { HOME: box.home, USERPROFILE: box.home })
  box.remove = () => rmSync(root, { recursive: true, force: true, maxRetries: 3 })
  return box
}

async function startEditor(box) {
  box.editor = fork(EDITOR, [box.project])
  const answer = async (to) => {
    const stop = new AbortController()
    const ended = once(box.editor, 'exit', { signal: stop.signal }).then(([code, signal]) => {
      throw new Failure(`the editor's process ended with ${signal ?? code} instead of: ${to}`)
    })
    try {
      const answered = once(box.editor, 'message', { signal: stop.signal })
      const [{ failure, ...rest }] = await within(
        Promise.race([answered, ended]),
        `the editor, asked to ${to},`,
      )
      if (failure) throw new Failure(`the editor could not ${to}: ${failure}`)
      return rest
    } finally {
      stop.abort()
    }
  }
  const tell = (action, snapshot) => {
    box.editor.send([action, snapshot])
    return answer(action)
  }
  return { ...(await answer('start')), tell }
}

async function endEditor({ editor }) {
  if (!editor || editor.exitCode !== null || editor.signalCode !== null) return
  const exited = once(editor, 'exit')
  const late = setTimeout(() => editor.kill('SIGKILL'), 1_000)
  if (editor.connected) editor.disconnect()
  await exited
  clearTimeout(late)
}

/** Events as they come, each with the time at which its listener was called. */
function collect(connection) {
  const events = []
  let wake = () => {}
  connection.onEvent((event) => {
    events.push({ event, at: performance.timeOrigin + performance.now() })
    wake()
  })
  const take = async (type) => {
    for (;;) {
      const next = events.shift()
      if (next?.event.type === type) return next
      if (next?.event.type === 'closed') throw new Failure(`the connection ended: ${next.event.reason}`)
      if (!next) {
        await new Promise((resolve) => {
          wake = resolve
        })
      }
    }
  }
  return { next: (type) => within(take(type), `the event "${type}"`) }
}

/** Lines as people count them, both ends included. */
function snapshot({ project }, file, lines) {
  const texts = CODE.split('\n')
  const ranges = lines.map(([first, last]) => ({
    text: texts.slice(first - 1, last).join('\n'),
    selection: {
      start: { line: first - 1, character: 0 },
      end: { line: last - 1, character: texts[last - 1].length },
    },
  }))
  return { source: 'vscode', filePath: join(project, file), workspaceFolder: project, ranges }
}

/** The line above the prompt, as the extension shows it. */
function statusLine(connection) {
  const { name, ranges } = connection.label() ?? { name: '-', ranges: '' }
  return `⧉ ${connection.attachState === 'sent' ? '✓' : '⇡'} ${name}${ranges}`
}

async function within(work, what) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Failure(`${what} took longer than ${LIMIT_MS} ms`)), LIMIT_MS)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

function ms(value) {
  return `${value.toFixed(2)} ms`
}

function heading(text) {
  console.log(`\n${styled(1, text)}`)
}

function say(what, value, aside = '') {
  console.log(`  ${what.padEnd(24)}  ${value}${aside && `  ${styled(2, aside)}`}`)
}

/** 1 is bold, 2 is dim. */
function styled(code, text) {
  return process.stdout.isTTY && !process.env.NO_COLOR ? `\x1b[${code}m${text}\x1b[22m` : text
}
