import { spawnSync } from 'node:child_process'
import { rmSync, truncateSync, writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Candidate, ConnectOptions } from '../../index.d.ts'
import { connect, connectBest } from '../../index.js'
import { closedAfterwards, ideServer } from './bridge.ts'
import { FakeEditor } from './fake-editor.ts'
import { candidateAt, expectNoToken, lock, look, TOKEN } from './lock-files.ts'
import { Listener, requestHead } from './sockets.ts'
import { CWD, environment, quiet, rejection, until } from './support.ts'

/** An address of this machine that is not loopback. */
const OUTSIDE = Object.values(networkInterfaces())
  .flat()
  .find((face) => face?.family === 'IPv4' && !face.internal)?.address

describe('where the token may go', () => {
  const strangers = [
    '192.0.2.7',
    '10.0.0.1',
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '0.0.0.0',
    '169.254.169.254',
    '[2001:db8::1]',
    '127.0.0.1@evil.example',
    '127.0.0.1/evil',
    'localhost\r\nx: y',
  ]
  test.each(strangers)('not to %j', async (host) => {
    const error = await rejection(connect(await candidateAt(9, { host }), { timeoutMs: 2000 }))
    expect(error.code).toBe('PIX_HOST_REFUSED')
    expectNoToken(error)
  })

  test.skipIf(!OUTSIDE)(
    'not to another address, even of this machine, unless the user named it',
    async () => {
      const heads: string[] = []
      const listener = await Listener.open((socket) => {
        void requestHead(socket).then((head) => {
          heads.push(head)
          socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n')
        })
      }, '0.0.0.0')
      const candidate = await candidateAt(listener.port, { host: OUTSIDE })
      const error = await rejection(connect(candidate))
      expect([error.code, error.message]).toEqual([
        'PIX_HOST_REFUSED',
        expect.stringContaining(OUTSIDE as string),
      ])
      expect(await connectBest(CWD, { lockDir: dirname(candidate.id) })).toBeNull()
      const [found] = await look(dirname(candidate.id))
      expect(found).toMatchObject({ verdict: 'host-refused', direct: true })
      expect(found?.reason).toContain(OUTSIDE)
      await quiet()
      expect(listener.accepted).toHaveLength(0)
      environment({ PI_X_IDE_HOST_OVERRIDE: OUTSIDE })
      expect((await rejection(connect(candidate))).code).toBe('PIX_REFUSED')
      expect(heads[0]).toContain(TOKEN)
    },
  )

  test('not through a proxy', async () => {
    const proxy = await Listener.open((socket) => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'))
    const url = `http://127.0.0.1:${proxy.port}`
    const names = [
      'HTTP_PROXY',
      'http_proxy',
      'HTTPS_PROXY',
      'https_proxy',
      'ALL_PROXY',
      'all_proxy',
      'WS_PROXY',
      'ws_proxy',
    ]
    environment({
      ...Object.fromEntries(names.map((name) => [name, url])),
      NO_PROXY: undefined,
      no_proxy: undefined,
    })
    const server = await ideServer()
    const connection = closedAfterwards(await connectBest(CWD, { lockDir: dirname(server.lockFile) }))
    expect(connection?.state).toBe('connected')
    await until('the client', () => server.clients().length === 1)
    expect(proxy.accepted).toHaveLength(0)
  })

  test('a token that is no header value is refused without being told', async () => {
    const listener = await Listener.open()
    for (const authToken of [`${TOKEN}\r\nx: y`, `${TOKEN}\u0000`, `${TOKEN}\u2028`]) {
      const outcome = await rejection(
        connect(await candidateAt(listener.port, { authToken }), { timeoutMs: 150 }),
      )
      expectNoToken(outcome)
      expect(outcome.code).toMatch(/^PIX_/)
    }
  })
})

describe('a candidate that cannot be used', () => {
  test('the lock file is gone, or is something else by now', async () => {
    const changes: Record<string, (file: string) => unknown> = {
      gone: (file) => rmSync(file),
      'a pipe': (file) => spawnSync('sh', ['-c', 'rm "$0" && mkfifo "$0"', file]),
      'a link': (file) => spawnSync('sh', ['-c', 'mv "$0" "$0.old" && ln -s "$0.old" "$0"', file]),
      '50 MB': (file) => truncateSync(file, 50_000_000),
      'no lock': (file) => writeFileSync(file, '{}'),
      'of another version': (file) => writeFileSync(file, JSON.stringify(lock({ version: 2 }))),
    }
    for (const [name, change] of Object.entries(changes)) {
      const editor = await FakeEditor.start()
      const candidate = await editor.candidate
      change(editor.lockFile)
      const error = await rejection(connect(candidate))
      expect(error.code, name).toBe('PIX_LOCK_GONE')
      expectNoToken(error)
      expect(editor.links, name).toHaveLength(0)
    }
  })

  test('its verdict is another than usable', async () => {
    const editor = await FakeEditor.start()
    const candidate = await editor.candidate
    for (const verdict of [
      'foreign-host',
      'unsupported',
      'malformed',
      'untrusted',
      'stale',
      'removed',
    ] as const)
      expect(
        (await rejection(connect({ ...candidate, verdict, reason: 'is not for you' }))).message,
      ).toContain('is not for you')
    expect(editor.links).toHaveLength(0)
  })

  test('one that was made up does not crash', async () => {
    const editor = await FakeEditor.start()
    const candidate = await editor.candidate
    for (const id of [
      '',
      '/',
      '.',
      '/proc/self/mem',
      '/dev/zero',
      '/tmp\u0000x',
      editor.lockDir,
      `${editor.lockFile}x`,
      '\ud800',
    ])
      expect((await rejection(connect({ ...candidate, id }))).code, JSON.stringify(id)).toBe('PIX_LOCK_GONE')
    const numbers = [Number.NaN, -1, 1e300, Number.POSITIVE_INFINITY]
    for (const n of numbers) {
      const odd = { ...candidate, pid: n, port: n, matchLength: n, lastActivity: n }
      expect(closedAfterwards(await connect(odd, { cwd: CWD })).state).toBe('connected')
    }
  })

  test('values of a wrong type are refused', async () => {
    const candidate = await candidateAt(9)
    const bad = [
      undefined,
      null,
      5,
      'x',
      {},
      { ...candidate, id: 5 },
      { ...candidate, verdict: 'fine' },
      { ...candidate, workspaceFolders: 'x' },
    ]
    for (const value of bad) {
      const call = () => connect(value as unknown as Candidate)
      expect(call, JSON.stringify(value)).toThrow()
    }
    const options: ConnectOptions[] = [
      { timeoutMs: '5' },
      { cwd: 5 },
      { lastInjected: 7 },
    ] as unknown as ConnectOptions[]
    for (const value of options) expect(() => connect(candidate, value), JSON.stringify(value)).toThrow()
  })

  test.each([0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 3_600_001, 1e300])(
    'a time limit of %d is refused',
    async (timeoutMs) => {
      const editor = await FakeEditor.start()
      const candidate = await editor.candidate
      for (const attempt of [
        () => connect(candidate, { timeoutMs }),
        () => connectBest(CWD, { lockDir: editor.lockDir, timeoutMs }),
      ])
        expect((await rejection(attempt())).code).toBe('PIX_INVALID_ARGUMENT')
      expect((await rejection(connect(await editor.candidate, { cwd: 'app' }))).code).toBe(
        'PIX_INVALID_ARGUMENT',
      )
      expect(editor.links).toHaveLength(0)
    },
  )
})
