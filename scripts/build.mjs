#!/usr/bin/env node
// npm run build: the native library of this computer, its types, and the bundled extension.
//
//   node scripts/build.mjs                                               for this computer
//   node scripts/build.mjs --target aarch64-unknown-linux-musl --cross   for another one, with cargo-zigbuild
//   node scripts/build.mjs --target x86_64-unknown-linux-gnu --glibc 2.28
//   node scripts/build.mjs --addon | --extension                         one part only
import { parseArgs } from 'node:util'
import { build } from './lib/build.mjs'
import { main } from './lib/steps.mjs'

await main(() => {
  const { values } = parseArgs({
    options: {
      target: { type: 'string' },
      glibc: { type: 'string' },
      cross: { type: 'boolean' },
      addon: { type: 'boolean' },
      extension: { type: 'boolean' },
    },
  })
  const isPart = values.addon || values.extension
  return build(isPart ? { addon: false, extension: false, ...values } : values)
})
