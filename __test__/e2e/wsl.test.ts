import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import type { Box } from '../harness/box.ts'
import { block, CHECKOUT, expectBlocks } from '../harness/extension.ts'
import { bothVersions, host } from '../harness/hosts.ts'
import { Rpc } from '../harness/rpc.ts'
import { TEST_MS, test } from '../harness/test.ts'
import { settled, until } from '../harness/until.ts'
import {
  FAR_HOST,
  GATEWAY,
  NO_USERS,
  USERS,
  WINDOWS_PID,
  type WindowsLock,
  Wsl,
  type WslOptions,
  whyNoNamespaces,
} from '../harness/wsl.ts'

const A = block('src/a.ts', 'L1-L2')
/** What a row of `/ide list` says of an editor that can be used and has the project open. */
const USABLE = /contains this folder$/

const refusal = whyNoNamespaces()
if (refusal) console.warn(`WSL is not tested: ${refusal}`)

/** The answer to a word of `/ide` that has no bad news. */
async function ide(rpc: Rpc, word: string): Promise<string> {
  const notices = () => rpc.ui('notify').filter((line) => line.notifyType === 'info')
  const before = notices().length
  await rpc.call('prompt', { message: `/ide ${word}` })
  await rpc.until(`the notice of /ide ${word}`, () => notices().length > before)
  return notices().at(-1)?.message
}

interface Row {
  name: string
  /** How its folder matches, or why it cannot be used. */
  verdict: string
  isCurrent: boolean
}

/** The rows below the headline. */
async function list(rpc: Rpc): Promise<Row[]> {
  const [, ...rows] = (await ide(rpc, 'list')).split('\n')
  return rows.map((row) => {
    const [name = '', , verdict = ''] = row.replace(/^\* /, '').split(' — ')
    return { name, verdict, isCurrent: row.startsWith('* ') }
  })
}

/**
 * Exactly one row has this name, and it tells that the editor does not answer at any of these hosts. Whether one
 * refuses or is silent is not compared: on a busy machine a refusal may come too late.
 */
function expectUnusable(rows: Row[], name: string, asked: readonly string[]) {
  const verdicts = rows.filter((row) => row.name === name).map(({ verdict }) => verdict)
  const hosts = verdicts.map((verdict) => verdict.replaceAll(/ (refuses|is silent)(?=,|$)/g, ''))
  expect(hosts).toEqual([`its editor does not answer: ${asked.join(', ')}`])
}

function age(file: string, minutes: number) {
  const time = Date.now() / 1000 - minutes * 60
  utimesSync(file, time, time)
}

/** A lock of an editor on Windows that is not there: its port is below those that the kernel gives away. */
const goneEditor = (wsl: Wsl, name: string, port: number): WindowsLock => ({
  version: 1,
  ide: 'vscode',
  name,
  transport: 'ws',
  host: '127.0.0.1',
  port,
  authToken: 'f'.repeat(64),
  workspaceFolders: [wsl.folder],
  pid: WINDOWS_PID,
  runningInWindows: true,
})

/** Everything that pi has said, written down and sent to its model. */
async function everythingSaid(our: Box, rpc: Rpc): Promise<string> {
  const { sessionFile } = await rpc.call('get_state')
  const spoken = [rpc.stderr, rpc.lines, our.model.requests].map((said) => JSON.stringify(said))
  return [...spoken, readFileSync(sessionFile, 'utf8')].join('\n')
}

/** What somebody in WSL gets who connects to a port. */
async function reach(wsl: Wsl, address: string, port: number): Promise<string> {
  const script = `
    const socket = require('node:net').connect(${port}, '${address}')
    const tell = (what) => { console.log(what); socket.destroy() }
    socket.on('connect', () => tell('accepted')).on('error', (error) => tell(error.code))
    socket.setTimeout(3000, () => tell('silent'))`
  return (await wsl.run(process.execPath, '-e', script)).stdout.trim()
}

const title = refusal ? `WSL (not tested: ${refusal})` : 'WSL'
describe.skipIf(refusal !== undefined)(title, { concurrent: true, timeout: TEST_MS }, () => {
  describe('as it is played here', () => {
    test('shows its own network, configuration and drives', async ({ box }) => {
      const our = await box(host('new'))
      const wsl = await Wsl.start(our, { networking: 'mirrored', automountRoot: '/win/', onDriveC: true })
      const read = async (...command: string[]) => (await wsl.run(...command)).stdout
      expect(await read('cat', '/etc/wsl.conf')).toBe('[automount]\nroot = /win/\n')
      expect(await read('cat', '/proc/version')).toContain('microsoft')
      expect(await read('cat', '/proc/net/route')).toMatch(/^eth0\t00000000\t010014AC\t0003\t/m)
      expect(await read('ls', '/sys/class/net')).toMatch(/^eth0\nlo\nloopback0\n/)
      const users = (await read('ls', '-A', '/win/c/Users')).trim().split('\n')
      expect(users.sort()).toEqual([...USERS, ...NO_USERS, 'desktop.ini'].sort())
      expect(await read('stat', '-c', '%a', '/win/c/Users/me/.pi/pi-x-ide/lock')).toBe('777\n')
      expect(await read('pwd')).toBe('/win/c/work/app\n')
      our.write('a.ts', 'text of the project')
      expect(await read('cat', 'a.ts')).toBe('text of the project')
      expect(existsSync('/etc/wsl.conf')).toBe(false)
    })

    test('has a gateway that refuses, answers, or is silent', async ({ box }) => {
      const our = await box(host('new'))
      const wsl = await Wsl.start(our)
      const { port } = await wsl.startEditor()
      expect(await reach(wsl, GATEWAY, port)).toBe('ECONNREFUSED')
      expect(await reach(wsl, '127.0.0.1', port)).toBe('ECONNREFUSED')
      const relay = await wsl.forward(port)
      expect(await reach(wsl, GATEWAY, port)).toBe('accepted')
      const far = await wsl.listen(FAR_HOST, port)
      await wsl.silenceGateway()
      expect(await reach(wsl, GATEWAY, port)).toBe('silent')
      expect(await reach(wsl, FAR_HOST, port)).toBe('accepted')
      await wsl.unsilenceGateway()
      expect(await reach(wsl, GATEWAY, port)).toBe('accepted')
      await until('both to have told', () => relay.connections === 2 && far.connections === 1)
    })

    test('has room for an editor of the distribution, and the gateway is not asked for it', async ({
      box,
    }) => {
      const our = await box(host('new'))
      const wsl = await Wsl.start(our)
      const editor = await wsl.startLinuxEditor()
      const router = await wsl.listen(GATEWAY, editor.port)
      const rpc = new Rpc(our, CHECKOUT)
      await editor.select('src/a.ts', 1, 2)
      await rpc.seeStatus(/⇡ a\.ts#L1-L2/)
      await rpc.prompt('first')
      expectBlocks(our, A)
      await settled('the router', () => router.connections)
      expect(router.connections).toBe(0)
    })
  })

  const projects: [string, WslOptions][] = [
    ['a folder of the distribution', {}],
    ['a folder of drive C', { onDriveC: true }],
    ['a folder of drive C below another mount point', { onDriveC: true, automountRoot: '/win' }],
  ]
  describe.each(bothVersions())('$label', (pi) => {
    test.for(projects)(
      'an editor of Windows is reached by way of the gateway: %s',
      async ([, options], { box }) => {
        const our = await box(pi)
        const wsl = await Wsl.start(our, options)
        const { editor, lock, port } = await wsl.startEditor()
        const relay = await wsl.forward(port)
        const rpc = new Rpc(our, CHECKOUT)
        await editor.select('src/a.ts', 1, 2)
        expect(await rpc.seeStatus(/a\.ts/)).toMatch(/^\s*⧉ ⇡ a\.ts#L1-L2\s*$/)
        const [client] = await editor.waitForClients(1)
        expect(client?.cwd).toBe(wsl.cwd)
        const status = await ide(rpc, 'status')
        for (const line of [`Workspace: ${wsl.cwd}`, `File: ${wsl.cwd}/src/a.ts`])
          expect(status).toContain(line)

        await rpc.prompt('first')
        expectBlocks(our, A)
        await ide(rpc, 'list')
        await rpc.call('prompt', { message: '/ide attach' })
        await rpc.until('the mention', () =>
          rpc.ui('set_editor_text').some((line) => line.text === '@src/a.ts#L1-L2 '),
        )
        await editor.mention('src/my docs/b c.ts', 3, 4)
        await rpc.until('the mention of the editor', () =>
          rpc.ui('set_editor_text').some((line) => line.text.includes('@"src/my docs/b c.ts"#L3-L4')),
        )
        const said = await everythingSaid(our, rpc)
        expect(said).not.toContain(lock.authToken)
        expect(said).not.toMatch(/wsl\.localhost|C:\\/)
        expect(relay.received).toContain(`Host: ${GATEWAY}:${port}`)
      },
    )
  })

  const modes = ['refuses', 'is silent'] as const
  const gatewayThat = async (mode: (typeof modes)[number], wsl: Wsl) =>
    mode === 'is silent' ? wsl.silenceGateway() : undefined

  test.for(modes)(
    'when the gateway %s, a lock is hidden, and deleted after two heartbeats',
    async (mode, { box }) => {
      const our = await box(host('new'))
      const wsl = await Wsl.start(our)
      const { editor, lockFile, port } = await wsl.startEditor()
      const asked = [`${GATEWAY}:${port}`, `127.0.0.1:${port}`]
      await gatewayThat(mode, wsl)
      await editor.select('src/a.ts', 1, 2)
      const rpc = new Rpc(our, CHECKOUT)
      expectUnusable(await list(rpc), 'Windows Code', asked)
      age(lockFile, 29)
      expectUnusable(await list(rpc), 'Windows Code', asked)
      expect(existsSync(lockFile)).toBe(true)
      await rpc.prompt('first')
      expectBlocks(our)
      age(lockFile, 31)
      await list(rpc)
      expect(existsSync(lockFile)).toBe(false)
    },
  )

  test.for(modes)(
    'a lock is used as soon as a gateway that %s answers, however old it is',
    async (mode, { box }) => {
      const our = await box(host('new'))
      const wsl = await Wsl.start(our)
      const { editor, lockFile, port } = await wsl.startEditor()
      await gatewayThat(mode, wsl)
      await editor.select('src/a.ts', 1, 2)
      const rpc = new Rpc(our, CHECKOUT)
      expectUnusable(await list(rpc), 'Windows Code', [`${GATEWAY}:${port}`, `127.0.0.1:${port}`])
      if (mode === 'is silent') await wsl.unsilenceGateway()
      await wsl.forward(port)
      age(lockFile, 3 * 24 * 60)
      await ide(rpc, 'auto')
      await rpc.seeStatus(/⇡ a\.ts#L1-L2/)
      const verdict = expect.stringMatching(USABLE)
      expect(await list(rpc)).toEqual([{ name: 'Windows Code', verdict, isCurrent: true }])
      expect(existsSync(lockFile)).toBe(true)
    },
  )

  test.for(['an interface', 'a profile'])(
    'with mirrored networking, told by %s, the gateway is never asked',
    async (by, { box }) => {
      const our = await box(host('new'))
      const wsl = await Wsl.start(our, { networking: by === 'an interface' ? 'mirrored' : 'nat' })
      if (by === 'a profile')
        writeFileSync(wsl.drive(`c/Users/${USERS[1]}/.wslconfig`), '[wsl2]\r\nnetworkingMode=mirrored\r\n')
      const { editor, port } = await wsl.startEditor({ sharesLoopback: true })
      const router = await wsl.listen(GATEWAY, port)
      await editor.select('src/a.ts', 1, 2)
      const rpc = new Rpc(our, CHECKOUT)
      await rpc.seeStatus(/⇡ a\.ts#L1-L2/)
      await rpc.prompt('first')
      expectBlocks(our, A)

      // Not even when loopback does not help any more.
      await editor.kill()
      await rpc.seeStatus(/^(?!.*a\.ts)/)
      expectUnusable(await list(rpc), 'Windows Code', [`127.0.0.1:${port}`])
      await settled('the router', () => router.connections, { quietMs: 3000 })
      expect(router).toMatchObject({ connections: 0, received: '' })
    },
  )

  test('editors of every user are found, and none in folders that belong to no user', async ({ box }) => {
    const our = await box(host('new'))
    const wsl = await Wsl.start(our)
    const [mine, theirs] = [
      await wsl.startEditor({ name: 'Mine' }),
      // Windows is another machine by this measure, which counts for nothing.
      await wsl.startEditor({ name: 'Theirs', user: USERS[1], lock: { hostId: '0123456789abcdef' } }),
    ]
    for (const { port } of [mine, theirs]) await wsl.forward(port)
    for (const profile of NO_USERS) wsl.writeLock(profile, { ...mine.lock, name: profile })
    await theirs.editor.select('src/a.ts', 1, 2)
    age(mine.lockFile, 1) // so that the other one is the better match
    const rpc = new Rpc(our, CHECKOUT)
    await rpc.seeStatus(/⇡ a\.ts#L1-L2/)
    const rows = await list(rpc)
    expect(rows.map(({ name }) => name).sort()).toEqual(['Mine', 'Theirs'])
    for (const { verdict } of rows) expect(verdict).toMatch(USABLE)
  })

  test.for(['nat', 'mirrored'] as const)(
    'the override is dialled and nothing is deleted (%s)',
    async (networking, { box }) => {
      const our = await box(host('new'))
      const wsl = await Wsl.start(our, { networking })
      const { editor, port } = await wsl.startEditor()
      const relay = await wsl.forward(port)
      const gone = wsl.writeLock(USERS[1], goneEditor(wsl, 'Gone', 1001))
      age(gone, 24 * 60 - 1)
      await editor.select('src/a.ts', 1, 2)
      const rpc = new Rpc(our, CHECKOUT, { PI_X_IDE_HOST_OVERRIDE: GATEWAY })
      await rpc.seeStatus(/⇡ a\.ts#L1-L2/)
      await rpc.prompt('first')
      expectBlocks(our, A)
      await list(rpc)
      expect(existsSync(gone)).toBe(true)
      expect(relay.received).toContain(`Host: ${GATEWAY}:${port}`)
    },
  )

  test('a far host in a lock is never dialled, and its token goes nowhere', async ({ box }) => {
    const our = await box(host('new'))
    const wsl = await Wsl.start(our)
    const { editor, port, lock } = await wsl.startEditor({ lock: { host: FAR_HOST } })
    const far = await wsl.listen(FAR_HOST, port)
    await wsl.silenceGateway()
    await editor.select('src/a.ts', 1, 2)
    const rpc = new Rpc(our, CHECKOUT)
    expectUnusable(await list(rpc), 'Windows Code', [`${GATEWAY}:${port}`])
    await ide(rpc, 'auto')
    await rpc.prompt('first')
    expectBlocks(our)
    // Not even when it is picked by hand.
    rpc.send({ type: 'prompt', message: '/ide' })
    const question = await rpc.until('the list of editors', () => rpc.ui('select').at(0))
    const before = rpc.ui('notify').length
    rpc.send({ type: 'extension_ui_response', id: question.id, value: question.options[0] })
    await rpc.until('the outcome', () => rpc.ui('notify').length > before)
    await settled('the far host', () => far.connections, { quietMs: 3000 })
    expect(far).toMatchObject({ connections: 0, received: '' })
    expect(await everythingSaid(our, rpc)).not.toContain(lock.authToken)
  })

  test('ten editors that cannot be reached are all listed', async ({ box }) => {
    const our = await box(host('new'))
    const wsl = await Wsl.start(our)
    await wsl.silenceGateway()
    const ports = Array.from({ length: 10 }, (_, index) => 1001 + index)
    const files = ports.map((port) =>
      wsl.writeLock(USERS[port % 2] as string, goneEditor(wsl, `Gone ${port}`, port)),
    )
    const rpc = new Rpc(our, CHECKOUT)
    const rows = await list(rpc)
    expect(rows).toHaveLength(10)
    for (const port of ports)
      expectUnusable(rows, `Gone ${port}`, [`${GATEWAY}:${port}`, `127.0.0.1:${port}`])
    expect(files.filter((file) => !existsSync(file))).toEqual([])
  })
})
