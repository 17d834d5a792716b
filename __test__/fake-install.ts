// Installations of the package as npm makes them, whole and damaged, and what a process says that loads one.
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { hostPlatform } from '../scripts/lib/project.mjs'

/** What a child process pretends its system to be: `process.platform`, `process.arch`, the text of /proc/self/maps. */
export interface Pretence {
  platform?: string
  arch?: string
  maps?: string | null
}

/** What a child process says of its attempt to load the package. */
interface Outcome {
  exports?: string[]
  code?: string
  message?: string
  cause?: string
  tried?: { file: string; problem: string }[]
}

export const ROOT = resolve(import.meta.dirname, '..')
export const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

export const HOST = hostPlatform()?.name ?? ''
export const isLinux = process.platform === 'linux'
/** The library for the other C library of this system. */
export const OTHER = HOST.endsWith('-musl') ? HOST.replace('-musl', '-gnu') : HOST.replace('-gnu', '-musl')
export const TARGETS = isLinux ? [HOST, OTHER] : [HOST]
export const LIBRARY = join(ROOT, 'npm', HOST, `pi-x-ide.${HOST}.node`)

/** What is mapped in a process with this interpreter. */
export const mapsOf = (interpreter: string) =>
  ['/usr/bin/node', interpreter, '[stack]']
    .map((path) => `7f11cd5f1000-7f11cd617000 r-xp 00001000 fd:00 525131                     ${path}\n`)
    .join('')
export const GLIBC = mapsOf('/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2')
export const MUSL = mapsOf('/lib/ld-musl-x86_64.so.1')

/** Everything that is made here lies in it. */
export const work = realpathSync(mkdtempSync(join(tmpdir(), 'pix-loader-')))

beforeAll(() => {
  if (!existsSync(LIBRARY)) throw new Error(`${LIBRARY} is not there: run npm run build`)
})

afterAll(() => rmSync(work, { recursive: true, force: true }))

/** A folder with the main package, installed as npm does it. */
export function install({ mainVersion = version } = {}) {
  const folder = mkdtempSync(join(work, 'app-'))
  const main = join(folder, 'node_modules/pi-x-ide')
  mkdirSync(main, { recursive: true })
  for (const file of ['index.js', 'load-failure.js']) cpSync(join(ROOT, file), join(main, file))
  writeJson(join(main, 'package.json'), { name: 'pi-x-ide', version: mainVersion, main: 'index.js' })
  return folder
}

interface LeafOptions {
  version?: string
  library?: string | Buffer | null
  size?: number | null
}

/** Adds a platform package; `null` leaves the library or native.json out. */
export function addLeaf(
  folder: string,
  target: string,
  { version: leaf = version, library = LIBRARY, size }: LeafOptions = {},
) {
  const name = `pi-x-ide.${target}.node`
  const into = join(folder, 'node_modules', `pi-x-ide-${target}`)
  const file = join(into, name)
  mkdirSync(into, { recursive: true })
  writeJson(join(into, 'package.json'), { name: `pi-x-ide-${target}`, version: leaf, main: name })
  if (typeof library === 'string') cpSync(library, file)
  else if (library) writeFileSync(file, library)
  const expected = size === undefined && existsSync(file) ? statSync(file).size : size
  if (expected !== null) writeJson(join(into, 'native.json'), { size: expected })
  return file
}

export function writeJson(file: string, value: unknown) {
  writeFileSync(file, JSON.stringify(value))
}

/** Loads the package of a folder in a process of its own, since a bad library may end it. */
export function load(folder: string, pretence: Pretence = {}, override = ''): Outcome {
  const script = `
    const fs = require('node:fs')
    const { maps, ...facts } = ${JSON.stringify(pretence)}
    for (const [name, value] of Object.entries(facts)) Object.defineProperty(process, name, { value })
    const { readFileSync } = fs
    fs.readFileSync = (file, ...rest) => {
      if (file !== '/proc/self/maps' || maps === undefined) return readFileSync(file, ...rest)
      if (maps === null) throw new Error('no /proc')
      return maps
    }
    let outcome
    try { outcome = { exports: Object.keys(require('pi-x-ide')) } }
    catch (error) { outcome = { code: error.code, message: error.message, cause: error.cause?.message, tried: error.tried } }
    process.stdout.write(JSON.stringify(outcome))`
  const file = join(folder, 'load.cjs')
  writeFileSync(file, script)
  const env = { PATH: process.env.PATH, ...(override && { PI_X_IDE_NATIVE_LIBRARY: override }) }
  const child = spawnSync(process.execPath, [file], { encoding: 'utf8', env })
  expect({ status: child.status, signal: child.signal, stderr: child.stderr }).toEqual({
    status: 0,
    signal: null,
    stderr: '',
  })
  return JSON.parse(child.stdout)
}
