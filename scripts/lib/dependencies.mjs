// The development dependencies, installed only when package-lock.json asks for others than those that are there.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { inRoot } from './project.mjs'
import { exitCode, Failure } from './steps.mjs'

const LOCK = inRoot('package-lock.json')
const MODULES = inRoot('node_modules')
const INSTALLED = inRoot('node_modules/.package-lock.json')
const STAMP = inRoot('node_modules/.pi-x-ide-lock')

/** Installs what package-lock.json asks for, if that is not there yet. */
export async function ensureDependencies() {
  if (areFresh()) return 'up to date'
  await install()
}

function areFresh() {
  if (!existsSync(MODULES)) return false
  if (existsSync(STAMP)) return readFileSync(STAMP, 'utf8') === digest()
  // Installed by npm itself: the lock file is what it was then unless it is newer.
  return existsSync(INSTALLED) && statSync(INSTALLED).mtimeMs >= statSync(LOCK).mtimeMs
}

async function install() {
  const [command, ...args] = npm('ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error')
  const code = await exitCode(command, args)
  if (code !== 0)
    throw new Failure(
      `npm ci ended with ${code}: the development dependencies could not be installed (is the npm registry reachable?)`,
    )
  writeFileSync(STAMP, digest())
}

/** npm of the running `npm run`, else the one on PATH. */
export function npm(...args) {
  const own = process.env.npm_execpath
  if (own?.endsWith('npm-cli.js')) return [process.execPath, own, ...args]
  return process.platform === 'win32' ? ['cmd.exe', '/d', '/s', '/c', 'npm', ...args] : ['npm', ...args]
}

const digest = () => createHash('sha256').update(readFileSync(LOCK)).digest('hex')
