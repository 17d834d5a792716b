import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Box } from './box.ts'
import { type Host, REPO } from './hosts.ts'
import { runPi } from './print.ts'
import { type Finished, run } from './processes.ts'
import { Registry } from './registry.ts'

const isGlibc = () => {
  const report = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  return report.header.glibcVersionRuntime !== undefined
}

const ABI =
  process.platform === 'win32' ? '-msvc' : process.platform !== 'linux' ? '' : isGlibc() ? '-gnu' : '-musl'

/** This computer in the names of packages and libraries. */
export const PLATFORM = `${process.platform}-${process.arch}${ABI}`

/** Name of the package with the prebuilt library for this computer. */
export const PLATFORM_PACKAGE = `pi-x-ide-${PLATFORM}`

/** Packs this checkout as it would be published, into a new folder; platforms that were not built here get a package without library. */
export async function assemble(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'pix-packages-'))
  const script = join(REPO, 'scripts/assemble-packages.mjs')
  const result = await run([process.execPath, script], ['--out', folder, '--metadata-only-for-missing'], {
    cwd: REPO,
    env: { PATH: process.env.PATH ?? '', HOME: folder },
  })
  if (result.code !== 0)
    throw new Error(`assemble-packages.mjs ended with ${result.code}\n${result.stdout}${result.stderr}`)
  return folder
}

/** The outcome of `pi install npm:pi-x-ide` in a box of its own. */
export interface Installed {
  box: Box
  result: Finished
  registry: Registry
}

export async function install(host: Host, tarballs: string): Promise<Installed> {
  const registry = await Registry.start(tarballs)
  const box = await Box.create(host)
  box.defer(() => registry.close())
  const result = await runPi(box, ['install', 'npm:pi-x-ide'], { npm_config_registry: registry.url }, 120_000)
  return { box, result, registry }
}

/** Where the installed packages of a box are: the extension, and the platform package inside or beside it. */
export function installedFolders(box: Box): { modules: string; extension: string; platform: string } {
  const modules =
    box.host.pi === 'old' ? join(box.npmPrefix, 'lib/node_modules') : join(box.agentDir, 'npm/node_modules')
  const extension = join(modules, 'pi-x-ide')
  const nested = join(extension, 'node_modules', PLATFORM_PACKAGE)
  return { modules, extension, platform: existsSync(nested) ? nested : join(modules, PLATFORM_PACKAGE) }
}
