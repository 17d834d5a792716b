#!/usr/bin/env node
import { spawnSync } from 'node:child_process'
// Packs what is published: one tarball per platform whose library lies in npm/<platform>/, and one of the main package, which asks
// for all platform packages of exactly its own version.
//
//   node scripts/assemble-packages.mjs --out DIR              what was built here
//   node scripts/assemble-packages.mjs --out DIR --release    refuses unless every platform is there, whole, and fit to be published
//   node scripts/assemble-packages.mjs --out DIR --metadata-only-for-missing
//        for tests with a local registry: a platform that was not built gets a package without library, so that npm finds its manifest
//
// Publish the platform packages first and the main package last, in the order that is printed: as long as the main package is not
// there nobody can install half of a version, and a run that broke off can be repeated.
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { fingerprint } from './lib/addon.mjs'
import { misfits } from './lib/binary.mjs'
import { npm } from './lib/dependencies.mjs'
import { BUNDLE } from './lib/extension.mjs'
import { inRoot, manifest, platforms, readJson } from './lib/project.mjs'
import { Failure, main } from './lib/steps.mjs'

/** What the main package cannot do without; other files of its list may not have been written yet. */
const ESSENTIAL = new Set(['index.js', 'load-failure.js', 'index.d.ts', BUNDLE])
/** npm adds these to every package. */
const ALWAYS = ['README.md', 'LICENSE']

const json = (value) => `${JSON.stringify(value, null, 2)}\n`

/** The published manifest: nothing that only a checkout has a use for. */
function mainManifest() {
  const { devDependencies, scripts, napi, ...published } = manifest
  const pinned = platforms.map(({ packageName }) => [packageName, manifest.version])
  return { ...published, optionalDependencies: Object.fromEntries(pinned) }
}

function mainPackage(into, isRelease) {
  const folder = join(into, manifest.name)
  mkdirSync(folder)
  for (const name of [...manifest.files, ...ALWAYS]) {
    if (existsSync(inRoot(name))) copy(inRoot(name), join(folder, name))
    else if (isRelease || ESSENTIAL.has(name))
      throw new Failure(`${name} is not there${name === BUNDLE ? ': run npm run build' : ''}`)
    else console.log(`without ${name}, which does not exist yet`)
  }
  writeFileSync(join(folder, 'package.json'), json(mainManifest()))
  return folder
}

function platformPackage(into, platform) {
  const folder = join(into, platform.packageName)
  mkdirSync(folder)
  const files = ['package.json', 'README.md', 'native.json', platform.file].filter((name) =>
    existsSync(join(platform.folder, name)),
  )
  for (const name of files) copy(join(platform.folder, name), join(folder, name))
  copy(inRoot('LICENSE'), join(folder, 'LICENSE'))
  return folder
}

function copy(from, to) {
  mkdirSync(dirname(to), { recursive: true })
  cpSync(from, to)
}

const isBuilt = (platform) => existsSync(join(platform.folder, platform.file))

/** Why the library of a platform must not be packed. */
function problems(platform, { release, sources }) {
  const file = join(platform.folder, platform.file)
  const described = join(platform.folder, 'native.json')
  if (!existsSync(described)) return [`${platform.file} has no native.json beside it`]
  const native = readJson(described)
  const data = readFileSync(file)
  const isWhole =
    data.length === native.size && createHash('sha256').update(data).digest('hex') === native.sha256
  const { version } = readJson(join(platform.folder, 'package.json'))
  return [
    !isWhole && 'is not the file that native.json describes',
    version !== manifest.version && `belongs to version ${version}, not ${manifest.version}`,
    release && native.sources !== sources && 'was built from other sources',
    ...misfits(file, platform, { floor: release }),
  ]
    .filter(Boolean)
    .map((problem) => `${platform.file} ${problem}`)
}

/** `npm pack` of several folders; the names of the tarballs in the same order. */
function pack(folders, out) {
  const [command, ...args] = npm('pack', '--json', '--ignore-scripts', '--pack-destination', out, ...folders)
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 26 })
  if (status !== 0) throw new Failure(`npm pack ended with ${status}\n${stdout}${stderr}`)
  return Object.values(JSON.parse(stdout)).map(({ filename }) => filename)
}

function assemble({ out, release = false, 'metadata-only-for-missing': metadataOnly = false }) {
  if (!out) throw new Failure('--out DIR is missing')
  if (release && metadataOnly) throw new Failure('--release never packs a platform without its library')
  const missing = platforms.filter((platform) => !isBuilt(platform))
  if (release && missing.length > 0)
    throw new Failure(`not built: ${missing.map(({ name }) => name).join(', ')}`)
  const sources = fingerprint()
  const faults = platforms.filter(isBuilt).flatMap((platform) => problems(platform, { release, sources }))
  if (faults.length > 0) throw new Failure(faults.join('\n'))

  const destination = resolve(out)
  mkdirSync(destination, { recursive: true })
  const work = mkdtempSync(join(tmpdir(), 'pix-assemble-'))
  try {
    const leaves = platforms
      .filter((platform) => metadataOnly || isBuilt(platform))
      .map((platform) => platformPackage(work, platform))
    const tarballs = pack([...leaves, mainPackage(work, release)], destination)
    console.log(`packed into ${destination}, to be published in this order:`)
    for (const name of tarballs) console.log(`  ${name}`)
    if (missing.length > 0)
      console.log(
        `${metadataOnly ? 'without library' : 'not built'}: ${missing.map(({ name }) => name).join(', ')}`,
      )
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

await main(() => {
  const { values } = parseArgs({
    options: {
      out: { type: 'string' },
      release: { type: 'boolean' },
      'metadata-only-for-missing': { type: 'boolean' },
    },
  })
  assemble(values)
})
