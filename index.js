// Finds this platform's native library, checks it before it is loaded, and offers what it exports.
//
// A platform folder holds package.json (its version), native.json (the size that the library has when it is whole) and
// pi-x-ide.<target>.node. In a source checkout that folder is npm/<target>/; installed, it is the package pi-x-ide-<target>.
// The library is asked for by its explicit file, which is the one form that Node and every Bun-compiled pi resolve.
//
// This runs while pi starts, so the way to a library that fits is short; load-failure.js is read when none does.

const { existsSync, readFileSync, statSync } = require('node:fs')
const { dirname, isAbsolute, join } = require('node:path')

const isCheckout = existsSync(join(__dirname, 'npm'))
const native = load()

// One statement a name: this is how an ES module's `import { discover } from 'pi-x-ide'` learns of them.
exports.discover = native.discover
exports.diagnose = native.diagnose
exports.connect = native.connect
exports.connectBest = native.connectBest
exports.Connection = native.Connection
exports.IdeServer = native.IdeServer
exports.formatMention = native.formatMention
exports.formatContext = native.formatContext
exports.truncateToWidth = native.truncateToWidth
exports.loadConfig = native.loadConfig
exports.readZed = native.readZed
exports.watchZed = native.watchZed
exports.version = native.version

// What a process leaves behind would look like a live editor, and native clean-up does not run at process.exit or after an
// uncaught exception. A worker's end is not the end of the process: the files of the other threads stay.
if (typeof native.removeOwnedFiles === 'function') {
  process.on('exit', () => {
    try {
      if (require('node:worker_threads').isMainThread) native.removeOwnedFiles()
    } catch {
      // Nobody is left who could act on it; readers recognise what stays behind as stale.
    }
  })
}

/** The library's exports. Throws an `Error` with `code` (`PIX_…`), a message for the user, `cause`, and `tried`. */
function load() {
  const { version } = readJson(join(__dirname, 'package.json'))
  const misfits = []
  for (const place of places()) {
    const found = open(place(), version)
    if (found.native) return found.native
    misfits.push(found)
  }
  throw require('./load-failure.js').failure(misfits, { version, isCheckout })
}

/** Where a library may be, the likeliest place first; each is looked up only when those before it had none that fits. */
function places() {
  const override = process.env.PI_X_IDE_NATIVE_LIBRARY
  if (override) return [() => overridden(override)]
  return targets().flatMap((target) =>
    isCheckout ? [() => inCheckout(target), () => installed(target)] : [() => installed(target)],
  )
}

/** Names of the libraries that may run here, the likeliest first. */
function targets() {
  const name = `${process.platform}-${process.arch}`
  if (process.platform === 'win32') return [`${name}-msvc`]
  if (process.platform !== 'linux') return [name]
  const [gnu, musl] = [`${name}-gnu`, `${name}-musl`]
  // npm installs the one that fits, so there is seldom anything to find out.
  const isPlain = isHere(gnu) && !isHere(musl)
  return !isPlain && isMusl() ? [musl, gnu] : [gnu, musl]
}

/** Whether a library may be here; a package manager that puts it elsewhere costs a guess, not the library. */
function isHere(target) {
  const name = `pi-x-ide-${target}`
  return isCheckout
    ? existsSync(join(__dirname, 'npm', target, 'native.json'))
    : existsSync(join(__dirname, '..', name)) || existsSync(join(__dirname, 'node_modules', name))
}

/**
 * Whether the C library of this process is musl, by what is mapped. Files such as /lib/ld-musl-* prove nothing: a glibc system may
 * have musl installed, and the reverse. Without /proc this is a guess; a library of the wrong kind does not load, and the other one
 * is tried.
 */
function isMusl() {
  try {
    return readFileSync('/proc/self/maps', 'utf8').includes('/ld-musl-')
  } catch {
    return false
  }
}

function inCheckout(target) {
  const folder = join(__dirname, 'npm', target)
  const file = join(folder, `pi-x-ide.${target}.node`)
  return { target, file, request: file, folder }
}

function installed(target) {
  const request = `pi-x-ide-${target}/pi-x-ide.${target}.node`
  try {
    const folder = dirname(require.resolve(`pi-x-ide-${target}/package.json`))
    return { target, file: join(folder, `pi-x-ide.${target}.node`), request, folder }
  } catch (cause) {
    return { target, file: request, stage: 'package', cause }
  }
}

/** Any file of the user's; whether it is whole is known only where a build has left native.json beside it. */
function overridden(file) {
  if (!isAbsolute(file)) return { file, stage: 'path', isOverride: true }
  return { file, request: file, folder: dirname(file), isOverride: true }
}

/**
 * Loads one library, `{ native }`, after everything that can be checked from outside: one of another version would load and then
 * misbehave, and a shortened one would end the process inside dlopen, with no error to catch. Else the place with the `stage` at
 * which it failed, and what was found there.
 */
function open(place, version) {
  if (place.stage) return place
  const { file, request, folder, isOverride } = place
  let stage = 'manifest'
  try {
    const leaf = isOverride ? version : readJson(join(folder, 'package.json')).version
    if (leaf !== version) return { ...place, stage: 'version', is: leaf }
    stage = 'file'
    const { size } = statSync(file)
    stage = 'description'
    const description = join(folder, 'native.json')
    const whole = isOverride && !existsSync(description) ? size : readJson(description).size
    if (size !== whole) return { ...place, stage: 'size', is: size, shouldBe: whole }
    stage = 'load'
    const native = require(request)
    stage = 'identity'
    const loaded = native.version()
    return loaded === version ? { native } : { ...place, stage: 'loaded version', is: loaded }
  } catch (cause) {
    return { ...place, stage, cause }
  }
}

/** Read anew each time: `require` would go on answering with the file that an update has replaced. */
function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}
