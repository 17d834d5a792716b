#!/usr/bin/env node
// Writes npm/<platform>/{package.json,README.md} for every target in package.json, so that they cannot drift apart.
//
//   node scripts/npm-packages.mjs            writes what differs
//   node scripts/npm-packages.mjs --check    only tells what differs, and whether the versions of all manifests agree (exit code 1)
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { inRoot, manifest, platforms, readJson, writeIfChanged } from './lib/project.mjs'
import { Failure, main } from './lib/steps.mjs'

/** No `engines`: npm leaves an optional package whose engines do not match out, without a word. No `exports`: see index.js. */
function platformManifest({ packageName, title, os, cpu, libc, file }) {
  return {
    name: packageName,
    version: manifest.version,
    description: `The native library of ${manifest.name} for ${title}`,
    license: manifest.license,
    repository: manifest.repository,
    os: [os],
    cpu: [cpu],
    ...(libc && { libc: [libc] }),
    main: file,
    files: [file, 'native.json'],
  }
}

const homepage = manifest.repository.url.replace(/^git\+|\.git$/g, '')

const readme = ({ packageName, title }) => `# ${packageName}

The prebuilt native library of [${manifest.name}](${homepage}) for ${title}.

Not to be installed by itself: \`${manifest.name}\` brings the one that fits the computer.
`

function files() {
  return platforms.flatMap((platform) => [
    {
      name: `npm/${platform.name}/package.json`,
      text: `${JSON.stringify(platformManifest(platform), null, 2)}\n`,
    },
    { name: `npm/${platform.name}/README.md`, text: readme(platform) },
  ])
}

function write() {
  for (const { name, text } of files()) {
    mkdirSync(join(inRoot(name), '..'), { recursive: true })
    if (writeIfChanged(inRoot(name), text)) console.log(`wrote ${name}`)
  }
}

function problems() {
  const stale = files().filter(
    ({ name, text }) => !existsSync(inRoot(name)) || readFileSync(inRoot(name), 'utf8') !== text,
  )
  const names = new Set(platforms.map(({ name }) => name))
  const extra = readdirSync(inRoot('npm')).filter((name) => !names.has(name))
  const versions = {
    'Cargo.toml': /^\[workspace\.package\]\nversion = "(.*)"$/m.exec(
      readFileSync(inRoot('Cargo.toml'), 'utf8'),
    )?.[1],
    'package-lock.json': readJson(inRoot('package-lock.json')).version,
  }
  return [
    ...stale.map(({ name }) => `${name} is not what node scripts/npm-packages.mjs writes`),
    ...extra.map((name) => `npm/${name} is no target in package.json`),
    ...Object.entries(versions)
      .filter(([, version]) => version !== manifest.version)
      .map(([file, version]) => `${file} says version ${version}, package.json ${manifest.version}`),
  ]
}

await main(() => {
  const { values } = parseArgs({ options: { check: { type: 'boolean' } } })
  if (!values.check) return write()
  const found = problems()
  if (found.length > 0) throw new Failure(found.join('\n'))
  console.log(`npm/: ${platforms.length} platform packages, version ${manifest.version}`)
})
