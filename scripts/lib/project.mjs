// The repository and the platforms that it is built for. Everything about a platform is derived from package.json's napi.targets.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
export const inRoot = (...parts) => join(root, ...parts)
export const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'))
export const manifest = readJson(inRoot('package.json'))

const CPUS = { x86_64: 'x64', aarch64: 'arm64' }
const SYSTEMS = {
  'unknown-linux-gnu': { os: 'linux', libc: 'glibc', suffix: '-gnu', title: 'Linux with glibc' },
  'unknown-linux-musl': { os: 'linux', libc: 'musl', suffix: '-musl', title: 'Linux with musl' },
  'apple-darwin': { os: 'darwin', suffix: '', title: 'macOS' },
  'pc-windows-msvc': { os: 'win32', suffix: '-msvc', title: 'Windows' },
}

/** One platform in the words of Rust (`triple`), npm (`os`, `cpu`, `libc`, `packageName`) and the loader (`name`, `file`). */
function platform(triple) {
  const [architecture, ...rest] = triple.split('-')
  const cpu = CPUS[architecture]
  const system = SYSTEMS[rest.join('-')]
  if (!cpu || !system)
    throw new Error(`${triple} in napi.targets: scripts/lib/project.mjs does not know this platform`)
  const name = `${system.os}-${cpu}${system.suffix}`
  return {
    triple,
    name,
    cpu,
    os: system.os,
    libc: system.libc,
    title: `${system.title}, ${cpu}`,
    packageName: `${manifest.name}-${name}`,
    file: `${manifest.napi.binaryName}.${name}.node`,
    folder: inRoot('npm', name),
  }
}

export const platforms = manifest.napi.targets.map(platform)

/** The platform of this computer and this Node.js; undefined where none of ours runs. */
export function hostPlatform() {
  process.report.excludeNetwork = true
  const libc = process.report.getReport().header.glibcVersionRuntime ? 'glibc' : 'musl'
  return platforms.find(
    (one) => one.os === process.platform && one.cpu === process.arch && (!one.libc || one.libc === libc),
  )
}

/** Leaves a file alone that holds this text already, and replaces it in one step otherwise, so that nobody reads half of it. */
export function writeIfChanged(file, text) {
  try {
    if (readFileSync(file, 'utf8') === text) return false
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
  }
  const temporary = `${file}.${process.pid}.tmp`
  writeFileSync(temporary, text)
  renameSync(temporary, file)
  return true
}
