import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { platforms } from '../scripts/lib/project.mjs'
import {
  addLeaf,
  GLIBC,
  HOST,
  install,
  isLinux,
  LIBRARY,
  load,
  MUSL,
  mapsOf,
  OTHER,
  type Pretence,
  ROOT,
  TARGETS,
  version,
  writeJson,
} from './fake-install.ts'

const require = createRequire(import.meta.url)

/** The platforms of the libraries that are looked for, in order. */
const lookedFor = (pretence: Pretence) =>
  load(install(), pretence).tried?.map(({ file }) => /pi-x-ide\.(.*)\.node$/.exec(file)?.[1])

const inModules = (folder: string, target: string) =>
  join(folder, 'node_modules', `pi-x-ide-${target}`, `pi-x-ide.${target}.node`)

describe('a library that fits', () => {
  test('is loaded from the platform package', () => {
    const folder = install()
    addLeaf(folder, HOST)
    expect(load(folder).exports).toContain('version')
  })

  test('is found inside the main package as well as beside it', () => {
    const folder = install()
    addLeaf(join(folder, 'node_modules/pi-x-ide'), HOST)
    expect(load(folder).exports).toContain('version')
  })

  test('is taken from npm/<target>/ in a source checkout', () => {
    const folder = install()
    const into = join(folder, 'node_modules/pi-x-ide/npm', HOST)
    cpSync(join(ROOT, 'npm', HOST), into, { recursive: true })
    addLeaf(folder, HOST, { version: '0.0.1' })
    expect(load(folder).exports).toContain('version')
  })

  test('is loaded after what was wrong with it has been mended, in the same process', () => {
    const folder = install()
    const file = join(folder, 'mend.cjs')
    writeFileSync(
      file,
      `
      const { cpSync } = require('node:fs')
      try { require('pi-x-ide') } catch (error) { console.log(error.code) }
      cpSync(${JSON.stringify(LIBRARY)}, ${JSON.stringify(inModules(folder, HOST))})
      console.log(require('pi-x-ide').version())`,
    )
    addLeaf(folder, HOST, { library: null, size: statSync(LIBRARY).size })
    expect(execFileSync(process.execPath, [file], { encoding: 'utf8' })).toBe(
      `PIX_NATIVE_MISSING\n${version}\n`,
    )
  })

  test('is also reached by the named imports of an ES module', () => {
    const folder = install()
    addLeaf(folder, HOST)
    const file = join(folder, 'main.mjs')
    writeFileSync(
      file,
      `import { Connection, discover, version } from 'pi-x-ide'
      console.log(version(), typeof Connection, typeof discover)`,
    )
    expect(execFileSync(process.execPath, [file], { encoding: 'utf8' })).toBe(
      `${version} function function\n`,
    )
  })

  test.runIf(isLinux)('starts no thread', () => {
    const folder = install()
    addLeaf(folder, HOST)
    const file = join(folder, 'threads.cjs')
    writeFileSync(
      file,
      `
      const { readdirSync } = require('node:fs')
      const before = readdirSync('/proc/self/task').length
      require('pi-x-ide').version()
      console.log(readdirSync('/proc/self/task').length - before)`,
    )
    expect(execFileSync(process.execPath, [file], { encoding: 'utf8' })).toBe('0\n')
  })

  test('offers what index.d.ts declares, and nothing else', () => {
    const types = readFileSync(join(ROOT, 'index.d.ts'), 'utf8')
    const declared = [...types.matchAll(/^export declare (?:function|class|const) (\w+)/gm)].map(
      ([, name]) => name,
    )
    // Called by index.js itself when the process ends.
    const expected = declared.filter((name) => name !== 'removeOwnedFiles')
    const offered: Record<string, unknown> = require('../index.js')
    expect(Object.keys(offered).sort()).toEqual(expected.sort())
    expect(Object.entries(offered).filter(([, value]) => typeof value !== 'function')).toEqual([])
  })
})

describe('a library that is not there', () => {
  test('platform package not installed', () => {
    const { code, message, tried, cause } = load(install())
    expect(code).toBe('PIX_NATIVE_MISSING')
    expect(tried).toEqual(
      TARGETS.map((target) => ({
        file: `pi-x-ide-${target}/pi-x-ide.${target}.node`,
        problem: 'not installed',
      })),
    )
    expect(message?.split('\n')).toEqual([
      `The native library of pi-x-ide is not there (${process.platform} ${process.arch}):`,
      ...(tried ?? []).map(({ file }) => `  ${file}: not installed`),
      'npm leaves platform packages out with --omit=optional, and when node_modules or a lock file comes from another system.',
      'To mend it, run: pi remove npm:pi-x-ide && pi install npm:pi-x-ide',
      'If that does not help, remove node_modules and package-lock.json of that folder in between.',
    ])
    expect(cause).toContain(`pi-x-ide-${HOST}/package.json`)
  })

  test('file missing in its package', () => {
    const folder = install()
    const file = addLeaf(folder, HOST, { library: null, size: 1 })
    const { code, tried } = load(folder)
    expect(code).toBe('PIX_NATIVE_MISSING')
    expect(tried?.[0]).toEqual({ file, problem: 'no such file' })
  })

  test('a folder in its place', () => {
    const folder = install()
    mkdirSync(addLeaf(folder, HOST, { library: null, size: 1 }))
    expect(load(folder).code).toBe('PIX_NATIVE_TRUNCATED')
  })

  test.each(['', '{', '[]', 'null'])('native.json is %j', (text) => {
    const folder = install()
    const file = addLeaf(folder, HOST)
    writeFileSync(join(file, '../native.json'), text)
    expect(load(folder).code).toMatch(/^PIX_NATIVE_(MISSING|TRUNCATED)$/)
  })

  test('native.json is missing', () => {
    const folder = install()
    const file = addLeaf(folder, HOST, { size: null })
    const { code, tried } = load(folder)
    expect(code).toBe('PIX_NATIVE_MISSING')
    expect(tried?.[0]).toEqual({ file, problem: 'the native.json beside it cannot be read' })
  })

  test('not built in a source checkout', () => {
    const folder = install()
    const into = join(folder, 'node_modules/pi-x-ide/npm', HOST)
    mkdirSync(into, { recursive: true })
    writeJson(join(into, 'package.json'), { version })
    const { code, message, tried } = load(folder)
    expect(code).toBe('PIX_NATIVE_MISSING')
    expect(tried?.[0]).toEqual({ file: join(into, `pi-x-ide.${HOST}.node`), problem: 'no such file' })
    expect(message).toMatch(/: npm run build$/)
  })
})

describe('a library that must not be loaded', () => {
  test.each(['half of it', 'all but one byte', 'nothing'])('cut to %s', (what) => {
    const folder = install()
    const { size } = statSync(LIBRARY)
    const file = addLeaf(folder, HOST)
    truncateSync(file, { 'half of it': size >> 1, 'all but one byte': size - 1, nothing: 0 }[what])
    const { code, message, tried } = load(folder)
    expect(code).toBe('PIX_NATIVE_TRUNCATED')
    expect(tried?.[0]).toEqual({ file, problem: `has ${statSync(file).size} bytes, should have ${size}` })
    expect(message).toContain('pi install npm:pi-x-ide')
  })

  test('of another version than the main package', () => {
    const folder = install()
    const file = addLeaf(folder, HOST, { version: '0.0.1' })
    const { code, message, tried } = load(folder)
    expect(code).toBe('PIX_NATIVE_VERSION')
    expect(tried?.[0]).toEqual({ file, problem: `version 0.0.1, needs ${version}` })
    expect(message).toContain('pi install npm:pi-x-ide')
  })

  test('of another version than its package says, as in a process that has loaded the old one', () => {
    const folder = install({ mainVersion: '9.9.9' })
    const file = addLeaf(folder, HOST, { version: '9.9.9' })
    const { code, message, tried } = load(folder)
    expect(code).toBe('PIX_NATIVE_VERSION')
    expect(tried?.[0]).toEqual({ file, problem: `version ${version} is loaded, needs 9.9.9` })
    expect(message).toContain('Restart pi')
  })

  test('no library at all, of the right size', () => {
    const folder = install()
    addLeaf(folder, HOST, { library: Buffer.alloc(statSync(LIBRARY).size, 'no library ') })
    const { code, cause, message } = load(folder)
    expect(code).toBe('PIX_NATIVE_LOAD')
    // The words of the dynamic linker, without the path that the line begins with already.
    expect(message).toContain(cause?.split('\n', 1)[0]?.replace(/^.*?\.node: /, ''))
    expect(message).toContain('pi install npm:pi-x-ide')
  })
})

describe('which platform', () => {
  test.each<[string, Pretence, string[]]>([
    ['glibc', { platform: 'linux', arch: 'x64', maps: GLIBC }, ['linux-x64-gnu', 'linux-x64-musl']],
    ['musl', { platform: 'linux', arch: 'arm64', maps: MUSL }, ['linux-arm64-musl', 'linux-arm64-gnu']],
    [
      'musl of NixOS',
      { platform: 'linux', arch: 'x64', maps: mapsOf('/nix/store/abc-musl-1.2.5/lib/ld-musl-x86_64.so.1') },
      ['linux-x64-musl', 'linux-x64-gnu'],
    ],
    [
      'Linux without /proc',
      { platform: 'linux', arch: 'arm64', maps: null },
      ['linux-arm64-gnu', 'linux-arm64-musl'],
    ],
    ['macOS', { platform: 'darwin', arch: 'arm64' }, ['darwin-arm64']],
    ['Windows', { platform: 'win32', arch: 'x64' }, ['win32-x64-msvc']],
  ])('%s', (_, pretence, targets) => {
    expect(lookedFor(pretence)).toEqual(targets)
  })

  test('another one is refused, and those that exist are named', () => {
    for (const pretence of [
      { platform: 'freebsd', arch: 'x64' },
      { platform: 'linux', arch: 'riscv64' },
    ]) {
      const { code, message, tried } = load(install(), pretence)
      expect({ code, tried }).toEqual({ code: 'PIX_UNSUPPORTED_PLATFORM', tried: [] })
      expect(message).toContain(`${pretence.platform} ${pretence.arch}`)
      expect(message).toContain('PI_X_IDE_NATIVE_LIBRARY')
      const named = message?.match(/(linux|darwin|win32)-[\w-]+/g)
      expect(named).toEqual(platforms.map(({ name }) => name))
    }
  })

  test.runIf(isLinux)('the other C library is tried when the likelier one fails', () => {
    const folder = install()
    addLeaf(folder, OTHER, { library: Buffer.from('not for this system') })
    addLeaf(folder, HOST)
    expect(load(folder, { maps: OTHER.endsWith('-musl') ? MUSL : GLIBC }).exports).toContain('version')
  })

  test.runIf(isLinux)('the likelier one is the one to mend when neither can be loaded', () => {
    const folder = install()
    addLeaf(folder, OTHER, { library: Buffer.from('not for this system') })
    const { code, tried } = load(folder)
    expect(code).toBe('PIX_NATIVE_MISSING')
    expect(tried?.map(({ file }) => file)).toEqual([
      `pi-x-ide-${HOST}/pi-x-ide.${HOST}.node`,
      inModules(folder, OTHER),
    ])
  })
})

describe('PI_X_IDE_NATIVE_LIBRARY', () => {
  const withOverride = (folder: string, file: string, pretence?: Pretence) => load(folder, pretence, file)

  test('is loaded instead of any package', () => {
    const folder = install()
    expect(withOverride(folder, LIBRARY).exports).toContain('version')
    expect(withOverride(folder, LIBRARY, { platform: 'freebsd', arch: 'x64' }).exports).toContain('version')
  })

  test('is the only one that is tried', () => {
    const folder = install()
    addLeaf(folder, HOST)
    const file = join(folder, 'nowhere.node')
    const { code, tried, message } = withOverride(folder, file)
    expect({ code, tried }).toEqual({
      code: 'PIX_NATIVE_MISSING',
      tried: [{ file, problem: 'no such file' }],
    })
    expect(message).toContain('unset PI_X_IDE_NATIVE_LIBRARY')
  })

  test('must be absolute', () => {
    const { code, tried } = withOverride(install(), 'here.node')
    expect({ code, tried }).toEqual({
      code: 'PIX_NATIVE_MISSING',
      tried: [{ file: 'here.node', problem: 'not an absolute path' }],
    })
  })

  test('must be our library, of our version, and whole', () => {
    const folder = install()
    const other = join(folder, 'other.node')
    writeFileSync(other, 'text')
    expect(withOverride(folder, other).code).toBe('PIX_NATIVE_LOAD')
    expect(withOverride(install({ mainVersion: '9.9.9' }), LIBRARY).code).toBe('PIX_NATIVE_VERSION')
    const cut = addLeaf(folder, HOST)
    truncateSync(cut, 5000)
    expect(withOverride(folder, cut).code).toBe('PIX_NATIVE_TRUNCATED')
  })
})

describe('the end of the process', () => {
  /** The real index.js over a library that only tells of being asked to clean up, and then fails. */
  function withStandIn(script: string) {
    const folder = install()
    const module = `
      const { writeSync } = require('node:fs')
      exports.version = () => ${JSON.stringify(version)}
      exports.removeOwnedFiles = () => { writeSync(1, 'removed '); throw new Error('disk gone') }`
    addLeaf(folder, HOST, { library: Buffer.from(module) })
    const main = join(folder, 'main.cjs')
    writeFileSync(main, `require.extensions['.node'] = require.extensions['.js'];${script}`)
    const { status, stdout } = spawnSync(process.execPath, [main], { encoding: 'utf8' })
    return { status, stdout }
  }

  test.each([
    ['by itself', `require('pi-x-ide')`, 0],
    ['by process.exit', `require('pi-x-ide'); setInterval(() => {}, 1000); process.exit(3)`, 3],
    ['by an uncaught exception', `require('pi-x-ide'); throw new Error('boom')`, 1],
  ])('%s removes our files, and a failure of that changes nothing', (_, script, status) => {
    expect(withStandIn(script)).toEqual({ status, stdout: 'removed ' })
  })

  test('is not the end of a worker', () => {
    const script = `
      const { isMainThread, Worker } = require('node:worker_threads')
      if (isMainThread) new Worker(__filename).on('exit', (code) => process.stdout.write('worker ended with ' + code))
      else require('pi-x-ide')`
    expect(withStandIn(script).stdout).toBe('worker ended with 0')
  })
})
