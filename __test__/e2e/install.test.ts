import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { Editor } from '../harness/editor.ts'
import { block, expectBlocks, IN_PRINT } from '../harness/extension.ts'
import { bothVersions, type Host, host } from '../harness/hosts.ts'
import {
  assemble,
  type Installed,
  install,
  installedFolders,
  PLATFORM,
  PLATFORM_PACKAGE,
} from '../harness/install.ts'
import { runPi, runPrint } from '../harness/print.ts'
import { Rpc } from '../harness/rpc.ts'
import { type MakeBox, TEST_MS, test } from '../harness/test.ts'
import { settled } from '../harness/until.ts'

const LIBRARY = `pi-x-ide.${PLATFORM}.node`

let tarballs: string
const installs = new Map<string, Promise<Installed>>()

/** One real `pi install` per host; the tests work on it or on copies of it. */
function installedBy(by: Host): Promise<Installed> {
  const known = installs.get(by.label) ?? install(by, tarballs)
  installs.set(by.label, known)
  return known
}

beforeAll(async () => {
  tarballs = await assemble()
}, TEST_MS)

afterAll(async () => {
  for (const made of installs.values()) await (await made).box.close()
  rmSync(tarballs, { recursive: true, force: true })
})

/** Every runtime that a version of pi supports, and the host whose installation it works on. */
const RUNTIMES: { label: string; runtime: Host; installer: Host }[] = [
  ...(['node-20', 'node-22', 'node-24', 'node-26'] as const).map((name) =>
    on(host('old', name), host('old')),
  ),
  ...(['node-22', 'node-24', 'node-26'] as const).map((name) => on(host('new', name), host('new'))),
  on(host('old', 'bun'), host('old', 'bun')),
  on(host('new', 'bun'), host('new', 'bun')),
]

function on(runtime: Host, installer: Host) {
  return { label: runtime.label, runtime, installer }
}

// One after the other: print mode waits a second for its editor, and no longer on a busy machine.
describe('pi install npm:pi-x-ide', { timeout: TEST_MS }, () => {
  const installers = [...new Map(RUNTIMES.map(({ installer }) => [installer.label, installer])).values()]

  test.for(installers)(
    '$label fetches the extension and the library of this platform, nothing else',
    async (by) => {
      const { box, result, registry } = await installedBy(by)
      expect(result, result.stdout + result.stderr).toMatchObject({ code: 0 })
      expect([...registry.fetched].sort()).toEqual(['pi-x-ide', PLATFORM_PACKAGE])
      // Metadata of the other platforms are looked at, of strangers never.
      const ours = registry.manifests.map((manifest) => manifest.name)
      expect(registry.asked.filter((name) => !ours.includes(name))).toEqual([])
      expect(box.packages).toEqual(['npm:pi-x-ide'])

      const { modules, extension, platform } = installedFolders(box)
      expect(
        readdirSync(modules).filter(
          (name) => !['pi-x-ide', PLATFORM_PACKAGE, '.package-lock.json'].includes(name),
        ),
      ).toEqual([])
      expect(readdirSync(platform)).toContain(LIBRARY)
      const version = (folder: string) =>
        JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version
      expect(version(platform)).toBe(version(extension))
    },
  )

  test.for(RUNTIMES)('$label: the installed extension works', async ({ runtime, installer }, { box }) => {
    const our = await box(runtime, { from: (await installedBy(installer)).box })
    const editor = await Editor.start(our)
    await editor.select('src/foo.ts', 10, 20)
    const result = await runPrint(our, [], 'first', IN_PRINT)
    expect(result).toMatchObject({ code: 0, stdout: 'REPLY-1\n', stderr: '' })
    expectBlocks(our, block('src/foo.ts', 'L10-L20'))
  })
})

interface Target {
  extension: string
  platform: string
  library: string
}

function setVersion(folder: string, version: string) {
  const file = join(folder, 'package.json')
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), version }))
}

interface Fault {
  code: string
  /** The cause in the words of the notice. */
  cause: RegExp
  make: (target: Target) => void
}

/** What disks, package managers and half-finished updates do, and what the user is told then. */
const FAULTS: Record<string, Fault> = {
  'the library is missing': {
    code: 'PIX_NATIVE_MISSING',
    cause: /no such file/,
    make: ({ library }) => rmSync(library),
  },
  'the platform package is missing': {
    code: 'PIX_NATIVE_MISSING',
    cause: /not installed/,
    make: ({ platform }) => rmSync(platform, { recursive: true }),
  },
  'the library is cut in half': {
    code: 'PIX_NATIVE_TRUNCATED',
    cause: /is incomplete/,
    make: ({ library }) => truncateSync(library, statSync(library).size >> 1),
  },
  'the library lacks its last byte': {
    code: 'PIX_NATIVE_TRUNCATED',
    cause: /is incomplete/,
    make: ({ library }) => truncateSync(library, statSync(library).size - 1),
  },
  'the library is empty': {
    code: 'PIX_NATIVE_TRUNCATED',
    cause: /has 0 bytes/,
    make: ({ library }) => truncateSync(library),
  },
  'the library is none': {
    code: 'PIX_NATIVE_LOAD',
    cause: /cannot be loaded/,
    make: ({ library }) => writeFileSync(library, Buffer.alloc(statSync(library).size, 'no library ')),
  },
  'the platform package is of another version': {
    code: 'PIX_NATIVE_VERSION',
    cause: /version 0\.0\.1, needs/,
    make: ({ platform }) => setVersion(platform, '0.0.1'),
  },
  'the library is of another version than both packages say': {
    code: 'PIX_NATIVE_VERSION',
    cause: /is loaded, needs 9\.9\.9/,
    make: ({ platform, extension }) => {
      setVersion(platform, '9.9.9')
      setVersion(extension, '9.9.9')
    },
  },
}

/** One of each kind that happens to people. */
const TYPICAL = [
  'the library is missing',
  'the library is cut in half',
  'the platform package is of another version',
]

describe.each(bothVersions())('$label', { concurrent: true, timeout: TEST_MS }, (by) => {
  /** A box in which the installed extension has this fault. */
  async function broken(make: Fault['make'], box: MakeBox) {
    const our = await box(by, { from: (await installedBy(by)).box })
    const { extension, platform } = installedFolders(our)
    const library = join(platform, LIBRARY)
    make({ extension, platform, library })
    return { our, library }
  }

  const noticesOf = (rpc: Rpc) =>
    rpc.ui('notify').map((line) => ({ message: String(line.message), type: String(line.notifyType) }))

  test.for(Object.entries(FAULTS))('starts although %s', async ([, { cause, make }], { box }) => {
    const { our, library } = await broken(make, box)
    const editor = await Editor.start(our)
    await editor.select('src/foo.ts', 10, 20)
    const result = await runPrint(our, [], 'first', IN_PRINT)
    expect(result).toMatchObject({ code: 0, signal: null, stdout: 'REPLY-1\n', stderr: '' })
    expectBlocks(our)

    const rpc = new Rpc(our)
    await rpc.until('the notice', () => noticesOf(rpc).length > 0)
    await rpc.prompt('second')
    // Told once, also when sessions come and go.
    await rpc.call('new_session')
    await rpc.prompt('third')
    const notices = await settled('the notices', () => noticesOf(rpc))
    expect(notices).toHaveLength(1)
    expect(notices[0]?.type).toBe('error')
    expect(notices[0]?.message).toMatch(cause)
    expect(notices[0]?.message).toContain(basename(library))
    expect(notices[0]?.message).toContain('pi install npm:pi-x-ide')
    expect(our.model.requests).toHaveLength(3)
    expectBlocks(our)
    const faults = rpc.lines.filter(({ type }) => type === 'extension_error' || type === 'not-json')
    expect(faults).toEqual([])
    expect(await rpc.close()).toEqual({ code: 0, signal: null })
  })

  test.for(TYPICAL)('what the notice advises mends it: %s', async (name, { box }) => {
    const { our } = await broken((FAULTS[name] as Fault).make, box)
    const rpc = new Rpc(our)
    const notice = await rpc.until('the notice', () => noticesOf(rpc)[0])
    await rpc.close()
    const advised = notice.message.match(/pi (install|remove) npm:pi-x-ide/g) ?? []
    expect(advised.length).toBeGreaterThan(0)
    const { registry } = await installedBy(by)
    for (const command of advised) {
      const [, ...args] = command.split(' ')
      const result = await runPi(our, args, { npm_config_registry: registry.url })
      expect(result, result.stdout + result.stderr).toMatchObject({ code: 0 })
    }
    const editor = await Editor.start(our)
    await editor.select('src/foo.ts', 10, 20)
    const mended = new Rpc(our)
    await mended.seeStatus(/⇡ foo\.ts/)
    expect(noticesOf(mended)).toEqual([])
  })

  test('the notice names the code of the cause', async ({ box }) => {
    for (const name of TYPICAL) {
      const { code, make } = FAULTS[name] as Fault
      const { our } = await broken(make, box)
      const rpc = new Rpc(our)
      await rpc.until('the notice', () => noticesOf(rpc).length > 0)
      expect(noticesOf(rpc)[0]?.message).toContain(code)
    }
  })
})
