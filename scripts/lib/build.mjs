// Brings everything that tests, demo and benchmarks load up to date.
import { addonIsFresh, buildAddon } from './addon.mjs'
import { ensureDependencies } from './dependencies.mjs'
import { bundleExtension } from './extension.mjs'
import { exclusively } from './lock.mjs'
import { hostPlatform, inRoot, platforms } from './project.mjs'
import { Failure, step } from './steps.mjs'

const LOCK = inRoot('dist/.build.lock')

/** Does only what is not done yet; a library for another computer, or with a glibc floor, is always built anew. */
export async function build({ target, glibc, cross = false, addon = true, extension = true } = {}) {
  const platform = target ? platforms.find(({ triple }) => triple === target) : hostPlatform()
  if (!platform) {
    const asked = target ?? `${process.platform} ${process.arch}`
    throw new Failure(`${asked} is none of: ${platforms.map(({ triple }) => triple).join(', ')}`)
  }
  await exclusively(LOCK, async () => {
    await step('dependencies', ensureDependencies)
    if (addon) {
      await step(`addon for ${platform.title}`, async () => {
        if (!glibc && !cross && addonIsFresh(platform)) return 'up to date'
        await buildAddon(platform, { floor: glibc, isCross: cross })
      })
    }
    if (extension) await step('extension', bundleExtension)
  })
}
