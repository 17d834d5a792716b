#!/usr/bin/env node
// Installs the hosts that the end-to-end tests drive into .hosts/ (git-ignored), all of them as plain npm packages without install scripts:
//
//   .hosts/old     pi 0.73.1, the last release under its first npm scope
//   .hosts/new     pi 1.6.0
//   .hosts/nodes   Node.js 20, 22, 24 and 26
//   .hosts/bun     Bun, with which pi's own releases are compiled
//
//   node scripts/pi-hosts.mjs                   installs what is missing
//   node scripts/pi-hosts.mjs --bun-binaries    also compiles both versions of pi to .hosts/bun-pi-{old,new}/pi
//   node scripts/pi-hosts.mjs --force           does all of it again
//
//   PI_HOSTS_DIR    another folder than .hosts, for instance one that several clones share
//
// A second run takes no time: every folder holds a stamp that names what was put into it, written when it was complete.
import { spawn } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const HOSTS = resolve(
  process.env.PI_HOSTS_DIR || join(dirname(dirname(fileURLToPath(import.meta.url))), '.hosts'),
)
const STAMP = '.complete.json'

const OLD = { name: '@mariozechner/pi-coding-agent', version: '0.73.1' }
const NEW = { name: '@earendil-works/pi-coding-agent', version: '1.6.0' }
const BUN_VERSION = '1.4.5'
const NODE_MAJORS = [20, 22, 24, 26]

const bunPackage = `@oven/bun-${process.platform}-${process.arch === 'arm64' ? 'aarch64' : process.arch}`
const nodePackage = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`

/** What stands in which folder: package.json dependencies of that folder. */
const INSTALLS = {
  old: { [OLD.name]: OLD.version },
  new: { [NEW.name]: NEW.version },
  nodes: Object.fromEntries(NODE_MAJORS.map((major) => [`node-${major}`, `npm:${nodePackage}@${major}`])),
  bun: { [bunPackage]: BUN_VERSION },
}

/** How each version's own `build:binary` step calls the compiler, and what it puts beside the binary. */
const BINARIES = {
  old: {
    pi: OLD,
    flags: [],
    // A dependency names this one as an optional peer, and the bundler wants to see it.
    extra: ['@opentelemetry/api'],
    workers: [],
  },
  new: {
    pi: NEW,
    flags: [
      '--no-compile-autoload-bunfig',
      '--no-compile-autoload-dotenv',
      '--compile-autoload-package-json',
    ],
    extra: [],
    workers: ['dist/utils/image-resize-worker.js', 'dist/extensions/codemode/worker.js'],
  },
}

const { values: options } = parseArgs({
  options: { 'bun-binaries': { type: 'boolean' }, force: { type: 'boolean' } },
})

/** Runs a command and returns its output; everything it said becomes part of the error when it fails. */
function run(command, args, cwd = HOSTS) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    child.stdout.on('data', (data) => {
      output += data
    })
    child.stderr.on('data', (data) => {
      output += data
    })
    child.once('error', reject)
    child.once('close', (code) => {
      if (code === 0) resolve(output)
      else reject(new Error(`${command} ${args.join(' ')} ended with ${code}\n${output}`))
    })
  })
}

const npmInstall = (folder, ...packages) =>
  run('npm', [
    'install',
    '--prefix',
    folder,
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--no-package-lock',
    '--loglevel=error',
    ...packages,
  ])

/** Does `work` unless the folder's stamp already says `content`; the stamp is written last. */
async function once(name, content, work) {
  const folder = join(HOSTS, name)
  const stamp = join(folder, STAMP)
  const wanted = `${JSON.stringify(content)}\n`
  if (!options.force && existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) {
    console.log(`${name.padEnd(11)} is there`)
    return
  }
  console.log(`${name.padEnd(11)} …`)
  const started = performance.now()
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  await work(folder)
  writeFileSync(stamp, wanted)
  console.log(`${name.padEnd(11)} done in ${((performance.now() - started) / 1000).toFixed(1)} s`)
}

const install = (name) =>
  once(name, INSTALLS[name], (folder) => {
    writeFileSync(
      join(folder, 'package.json'),
      JSON.stringify({ private: true, dependencies: INSTALLS[name] }, null, 2),
    )
    return npmInstall(folder)
  })

function compile(name) {
  const { pi, flags, extra, workers } = BINARIES[name]
  const bun = join(HOSTS, 'bun/node_modules', bunPackage, 'bin/bun')
  return once(`bun-pi-${name}`, { ...pi, bun: BUN_VERSION, flags, extra, workers }, async (folder) => {
    let modules = join(HOSTS, name, 'node_modules')
    const copy = join(folder, 'source')
    if (extra.length > 0) {
      // Compiled from a copy, so that the installed host stays what users have.
      cpSync(join(HOSTS, name), copy, { recursive: true, verbatimSymlinks: true })
      await npmInstall(copy, ...extra)
      modules = join(copy, 'node_modules')
    }
    const source = join(modules, pi.name)
    const entries = ['dist/bun/cli.js', ...workers].filter((file) => existsSync(join(source, file)))
    await run(
      bun,
      [
        'build',
        '--compile',
        ...flags,
        ...entries.map((file) => `./${file}`),
        '--outfile',
        join(folder, 'pi'),
      ],
      source,
    )
    for (const file of ['package.json', 'README.md', 'CHANGELOG.md'])
      copyFileSync(join(source, file), join(folder, file))
    copyFileSync(
      join(modules, '@silvia-odwyer/photon-node/photon_rs_bg.wasm'),
      join(folder, 'photon_rs_bg.wasm'),
    )
    copyAll(join(source, 'dist/modes/interactive/theme'), join(folder, 'theme'), '.json')
    copyAll(join(source, 'dist/modes/interactive/assets'), join(folder, 'assets'), '.png')
    for (const suffix of ['.html', '.css', '.js'])
      copyAll(join(source, 'dist/core/export-html'), join(folder, 'export-html'), `template${suffix}`)
    copyAll(join(source, 'dist/core/export-html/vendor'), join(folder, 'export-html/vendor'), '.js')
    rmSync(copy, { recursive: true, force: true })
    const version = (await run(join(folder, 'pi'), ['--version'])).trim()
    if (version !== pi.version) throw new Error(`${join(folder, 'pi')} says ${version}, not ${pi.version}`)
  })
}

/** Copies the files of one folder whose name ends in `suffix`; a folder that this version does not have is no fault. */
function copyAll(from, to, suffix) {
  if (!existsSync(from)) return
  mkdirSync(to, { recursive: true })
  for (const file of readdirSync(from))
    if (file.endsWith(suffix)) copyFileSync(join(from, file), join(to, file))
}

try {
  mkdirSync(HOSTS, { recursive: true })
  await Promise.all(Object.keys(INSTALLS).map(install))
  if (options['bun-binaries']) for (const name of Object.keys(BINARIES)) await compile(name)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
