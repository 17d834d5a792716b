import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Root of this repository. */
export const REPO = resolve(dirname(fileURLToPath(import.meta.url)), '../..')

/** What `scripts/pi-hosts.mjs` installed. */
const HOSTS = resolve(process.env.PI_HOSTS_DIR || join(REPO, '.hosts'))

export type PiVersion = 'old' | 'new'
export type Runtime = 'node-20' | 'node-22' | 'node-24' | 'node-26' | 'bun'

/** One real pi: a version of it on a runtime. */
export interface Host {
  readonly pi: PiVersion
  readonly runtime: Runtime
  /** What starts it, without its arguments. */
  readonly command: readonly string[]
  /** Folder of the runtime's executable, first on the PATH of everything that this pi starts; none for a compiled pi. */
  readonly bin: string | undefined
  /** For the names of tests. */
  readonly label: string
}

const VERSION: Record<PiVersion, string> = { old: '0.73.1', new: '1.6.0' }

const ENTRY: Record<PiVersion, string> = {
  old: join(HOSTS, 'old/node_modules/@mariozechner/pi-coding-agent/dist/cli.js'),
  new: join(HOSTS, 'new/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js'),
}

/** Picks a host; throws, with what to do, when it has not been installed. */
export function host(pi: PiVersion, runtime: Runtime = pi === 'old' ? 'node-20' : 'node-24'): Host {
  const label = `pi ${VERSION[pi]} on ${runtime}`
  if (runtime === 'bun') {
    const binary = join(HOSTS, `bun-pi-${pi}/pi`)
    need(binary, label, '--bun-binaries')
    return { pi, runtime, label, bin: undefined, command: [binary] }
  }
  const bin = join(HOSTS, 'nodes/node_modules', runtime, 'bin')
  const node = join(bin, 'node')
  need(node, label)
  need(ENTRY[pi], label)
  return { pi, runtime, label, bin, command: [node, ENTRY[pi]] }
}

function need(file: string, label: string, flag = '') {
  if (!existsSync(file))
    throw new Error(`${label} is not installed: run \`node scripts/pi-hosts.mjs ${flag}\` first (no ${file})`)
}

/** Both versions, each on the runtime that its users have most. */
export const bothVersions = (): Host[] => [host('old'), host('new')]
