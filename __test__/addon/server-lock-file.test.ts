import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { IdeServerOptions } from '../../index.d.ts'
import { connectBest, discover, IdeServer } from '../../index.js'
import { closedAfterwards, ideServer, tokenOf } from './bridge.ts'
import { run } from './processes.ts'
import { CWD, folder, isRoot, ownHome, quiet, rejection, removeBusy, sleep, until } from './support.ts'

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)
const content = (server: IdeServer) => JSON.parse(readFileSync(server.lockFile, 'utf8'))

describe('the lock file', () => {
  test('says what the protocol asks for, in a private folder that is made on the way', async () => {
    const lockDir = join(folder(), 'a/b/lock')
    const before = Date.now()
    const server = await ideServer({
      lockDir,
      ide: 'my-ide',
      name: 'My IDE',
      workspaceFolders: ['/w/a', '/w/b'],
    })
    expect(server.lockFile).toBe(join(lockDir, `my-ide-${process.pid}-${server.port}.lock`))
    expect([mode(server.lockFile), mode(lockDir), mode(dirname(lockDir))]).toEqual(['600', '700', '700'])
    const { createdAt, updatedAt, hostId, ...rest } = content(server)
    expect(rest).toEqual({
      version: 1,
      ide: 'my-ide',
      name: 'My IDE',
      transport: 'ws',
      host: '127.0.0.1',
      port: server.port,
      authToken: expect.stringMatching(/^[0-9a-f]{64}$/),
      workspaceFolders: ['/w/a', '/w/b'],
      pid: process.pid,
      runningInWindows: false,
    })
    for (const time of [createdAt, updatedAt]) {
      expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(Date.parse(time)).toBeGreaterThanOrEqual(before - 1000)
      expect(Date.parse(time)).toBeLessThanOrEqual(Date.now() + 1000)
    }
    expect(hostId ?? '0'.repeat(16)).toMatch(/^[0-9a-f]{16}$/)
    expect(readFileSync(server.lockFile, 'utf8')).toMatch(/^\{\n {2}"version": 1,[\s\S]*\}\n$/)
    expect(readdirSync(lockDir)).toHaveLength(1)
  })

  test('goes to the home by default', async () => {
    const home = ownHome()
    const server = await IdeServer.start({ ide: 'nvim', name: 'Neovim', workspaceFolders: [] })
    expect(dirname(server.lockFile)).toBe(join(home, '.pi/pi-x-ide/lock'))
    for (const part of ['.pi', '.pi/pi-x-ide', '.pi/pi-x-ide/lock'])
      expect(mode(join(home, part))).toBe('700')
    await server.close()
  })

  test('holds another token for each server', async () => {
    const servers = await Promise.all(Array.from({ length: 5 }, () => ideServer()))
    expect(new Set(servers.map(tokenOf)).size).toBe(5)
    expect(new Set(servers.map(({ port }) => port)).size).toBe(5)
  })

  test('is private whatever the umask, and leaves the mode of a folder that was named', async () => {
    const lockDir = join(folder(), 'lock')
    mkdirSync(lockDir)
    chmodSync(lockDir, 0o755)
    const { stdout } = await run(
      `process.umask(0)
       const server = await addon.IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: [], lockDir: args[0] })
       const { statSync } = require('node:fs')
       say([statSync(server.lockFile), statSync(args[0])].map(({ mode }) => (mode & 0o777).toString(8)))
       await server.close()`,
      { args: [lockDir] },
    )
    expect(stdout).toBe('["600","755"]\n')
  })

  test('follows the folders and the focus, and keeps its token', async () => {
    const server = await ideServer()
    const first = content(server)
    await sleep(5)
    await server.setWorkspaceFolders(['/w/other'])
    const second = content(server)
    expect(second).toEqual({ ...first, workspaceFolders: ['/w/other'], updatedAt: second.updatedAt })
    expect(Date.parse(second.updatedAt)).toBeGreaterThan(Date.parse(first.updatedAt))
    const before = Date.now()
    await server.focus()
    const third = content(server)
    expect(third.focusedAt).toBeGreaterThanOrEqual(before - 1000)
    expect(third).toEqual({ ...second, focusedAt: third.focusedAt, updatedAt: third.updatedAt })
    const [candidate] = await discover('/w/other/src', { lockDir: dirname(server.lockFile) })
    expect(candidate).toMatchObject({ direct: true, lastActivity: third.focusedAt })
    expect(mode(server.lockFile)).toBe('600')
  })

  test('changes in the order of the calls, in one step each', async () => {
    const server = await ideServer()
    const seen = new Set<string>()
    let isDone = false
    const reader = (async () => {
      while (!isDone) {
        seen.add(content(server).workspaceFolders.join())
        await sleep(0)
      }
    })()
    for (let round = 0; round < 20; round++) {
      await Promise.all(
        Array.from({ length: 40 }, (_, i) => server.setWorkspaceFolders([`/w/${round}/${i}`])),
      )
      expect(content(server).workspaceFolders).toEqual([`/w/${round}/39`])
    }
    isDone = true
    await reader
    expect(seen.size).toBeGreaterThan(1)
    expect(readdirSync(dirname(server.lockFile))).toHaveLength(1)
  })

  test('is refreshed as time goes by', async () => {
    const server = await ideServer({ heartbeatMs: 20 })
    const first = content(server)
    await until('a refresh', () => content(server).updatedAt !== first.updatedAt)
    const second = content(server)
    expect(second).toEqual({ ...first, updatedAt: second.updatedAt })
  })

  test('comes back when somebody removes it, with the same token', async () => {
    const server = await ideServer()
    const before = content(server)
    for (let i = 0; i < 2; i++) {
      rmSync(server.lockFile)
      await until('the file', () => existsSync(server.lockFile))
      expect(content(server)).toEqual({ ...before, updatedAt: expect.any(String) })
      expect(mode(server.lockFile)).toBe('600')
    }
  })

  test('comes back when its folder is removed, again and again', async () => {
    const home = folder()
    const server = await ideServer({ lockDir: join(home, '.pi/pi-x-ide/lock') })
    for (let i = 0; i < 3; i++) {
      removeBusy(i === 1 ? join(home, '.pi') : dirname(server.lockFile))
      await until('the file', () => existsSync(server.lockFile))
      expect([mode(server.lockFile), mode(dirname(server.lockFile))]).toEqual(['600', '700'])
    }
    expect(closedAfterwards(await connectBest(CWD, { lockDir: dirname(server.lockFile) }))?.state).toBe(
      'connected',
    )
  })

  test('goes with the server, after every refresh that was accepted', async () => {
    const lockDir = join(folder(), 'lock')
    // Often, since the order of what is called at once depends on the addon's threads.
    for (let round = 0; round < 40; round++) {
      const server = await ideServer({ lockDir, heartbeatMs: 1 })
      const refresh = (i: number) => (i % 2 ? server.focus() : server.setWorkspaceFolders([`/w/${i}`]))
      const refreshes = Array.from({ length: 30 }, (_, i) => refresh(i).catch((error) => error.code))
      const closing = server.close()
      expect((await Promise.all(refreshes)).filter(Boolean)).toEqual([])
      await closing
      expect(readdirSync(lockDir)).toEqual([])
    }
    await quiet()
    expect(readdirSync(lockDir)).toEqual([])
  })

  test('does not come back when its server is asked for it afterwards', async () => {
    const server = await ideServer()
    const lockDir = dirname(server.lockFile)
    await server.close()
    for (const late of [server.focus(), server.setWorkspaceFolders([])])
      expect((await rejection(late)).code).toBe('PIX_CLOSED')
    expect(readdirSync(lockDir)).toEqual([])
  })

  test('that is gone already does not disturb the end', async () => {
    const server = await ideServer()
    rmSync(server.lockFile)
    await server.close()
    await quiet()
    expect(existsSync(server.lockFile)).toBe(false)
  })

  test('leaves those of other servers alone', async () => {
    const lockDir = join(folder(), 'lock')
    const [one, other] = [await ideServer({ lockDir }), await ideServer({ lockDir })]
    await one.close()
    await quiet()
    expect(readdirSync(lockDir).map((name) => join(lockDir, name))).toEqual([other.lockFile])
  })
})

describe('a server that cannot start tells why', () => {
  const start = (options: Partial<IdeServerOptions>) =>
    rejection(IdeServer.start({ ide: 'vscode', name: 'VS Code', workspaceFolders: [], ...options }))

  /** Makes a bad place at the path and returns it. */
  const fileAt = (path: string) => {
    writeFileSync(path, '')
    return path
  }
  const linkAt = (path: string, to: string) => {
    symlinkSync(to, path)
    return path
  }
  const places: Record<string, (path: string) => string> = {
    'the folder is a file': fileAt,
    'a folder above is a file': (path) => join(fileAt(path), 'pi-x-ide/lock'),
    'the folder is a link': (path) => linkAt(path, folder()),
    'the folder is a link to nowhere': (path) => linkAt(path, '/nowhere/x'),
    'the file system does not want it': () => '/proc/pi-x-ide/lock',
    'the path is too long': (path) => join(path, 'x'.repeat(300)),
  }

  test.each(Object.keys(places))('%s', async (name) => {
    const lockDir = (places[name] as (path: string) => string)(join(folder(), 'place'))
    const error = await start({ lockDir })
    expect(error).toBeInstanceOf(Error)
    expect(error.code).toBe('PIX_LOCK_FOLDER')
    expect(error.message).toContain(lockDir)
    expect(error.cause).toBeInstanceOf(Error)
  })

  test.skipIf(!isRoot)('the folder belongs to another user', async () => {
    const lockDir = folder()
    chownSync(lockDir, 12_345, 12_345)
    const error = await start({ lockDir })
    expect([error.code, error.message]).toEqual(['PIX_LOCK_FOLDER', expect.stringContaining('another user')])
    expect(readdirSync(lockDir)).toEqual([])
  })

  test('a folder that may not be written', async () => {
    const lockDir = folder()
    chmodSync(lockDir, 0o500)
    const script = `
      const { code, message } = await addon.IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: [], lockDir: args[0] }).catch((error) => error)
      say({ code, message })`
    if (isRoot) {
      // The super-user may write anywhere, so somebody else does it.
      chownSync(lockDir, 65_534, 65_534)
      const { lines } = await asNobody(script, [lockDir])
      expect(lines).toEqual([{ code: 'PIX_LOCK_WRITE', message: expect.stringContaining(lockDir) }])
    } else expect((await start({ lockDir })).code).toBe('PIX_LOCK_WRITE')
  })

  /** Runs a script as another user, with a copy of the addon that this one can read. */
  async function asNobody(script: string, args: unknown[]) {
    const ended = await run(`process.setgid(65534); process.setuid(65534);${script}`, {
      args,
      env: { HOME: '/nonexistent' },
    })
    return {
      ...ended,
      lines: ended.stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line)),
    }
  }

  test('the lock file’s name is too long', async () => {
    const error = await start({ ide: 'x'.repeat(300), lockDir: folder() })
    expect(error.code).toBe('PIX_LOCK_WRITE')
  })

  test.each(['', 'a/b', '../x', 'a b', 'ä', 'a\u0000b', '.'])('the kind of editor is %j', async (ide) => {
    const lockDir = folder()
    expect((await start({ ide, lockDir })).code).toBe('PIX_INVALID_ARGUMENT')
    expect(readdirSync(lockDir)).toEqual([])
  })

  test('a lock folder that depends on where the process stands, and beats that make no sense', async () => {
    expect((await start({ lockDir: 'lock' })).code).toBe('PIX_INVALID_ARGUMENT')
    for (const heartbeatMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 3_600_001])
      expect((await start({ heartbeatMs, lockDir: folder() })).code).toBe('PIX_INVALID_ARGUMENT')
  })

  test('there is no home', async () => {
    const { stdout } = await run(
      `say((await addon.IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: [] }).catch((error) => error)).code)`,
      { env: { HOME: '/dev/null' } },
    )
    expect(stdout).toMatch(/PIX_(NO_HOME|LOCK_FOLDER)/)
  })

  test('values of a wrong type', () => {
    const good = { ide: 'x', name: 'x', workspaceFolders: [] }
    for (const bad of [
      undefined,
      null,
      {},
      5,
      { ...good, ide: 5 },
      { ...good, workspaceFolders: 'x' },
      { ...good, workspaceFolders: [5] },
      { ...good, heartbeatMs: '1' },
      { ...good, wslListener: 'yes' },
      { ...good, wslListener: 1 },
    ])
      expect(() => IdeServer.start(bad as unknown as IdeServerOptions), JSON.stringify(bad)).toThrow()
  })
})
