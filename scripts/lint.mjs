#!/usr/bin/env node
// npm run lint: everything that judges the sources without running them. Stops at the first complaint.
import { existsSync } from 'node:fs'
import { ensureDependencies } from './lib/dependencies.mjs'
import { inRoot } from './lib/project.mjs'
import { main, run, runNode, step } from './lib/steps.mjs'

const TYPED = ['extension', '__test__']
  .map((folder) => `${folder}/tsconfig.json`)
  .filter((file) => existsSync(inRoot(file)))
const tool = (path, ...args) => runNode(inRoot('node_modules', path), args)

await main(async () => {
  await step('dependencies', ensureDependencies)
  await step('rustfmt', () => run('cargo', ['fmt', '--all', '--check']))
  await step('clippy', () => run('cargo', ['clippy', '--workspace', '--all-targets', '--', '-D', 'warnings']))
  await step('biome', () => tool('@biomejs/biome/bin/biome', 'ci', '.'))
  for (const project of TYPED)
    await step(`tsc ${project}`, () => tool('typescript/bin/tsc', '--noEmit', '-p', project))
  await step('platform packages', () => runNode(inRoot('scripts/npm-packages.mjs'), ['--check']))
})
