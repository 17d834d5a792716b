import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ideServer } from './bridge.ts'
import { Process } from './processes.ts'
import { ownHome } from './support.ts'

/** Runs a command in a user namespace where this limit of inotify is used up. */
const exhausted = (limit: string): string[] => [
  'unshare',
  '-r',
  'sh',
  '-c',
  `echo 0 > /proc/sys/user/${limit} && exec "$@"`,
  'sh',
]

const canExhaust =
  process.platform === 'linux' &&
  spawnSync('unshare', ['-r', 'sh', '-c', 'echo 0 > /proc/sys/user/max_inotify_watches']).status === 0

interface Report {
  events: { type: string; code?: string; state?: string; message?: string }[]
  watching: { kind: string; reason?: string }[]
}

const FOLLOW = `
  const connection = await addon.connectBest('/w/app', { keepAlive: true })
  const events = []
  connection.onEvent((event) => events.push(event))
  await until(() => connection.state === 'searching')
  say('searching')
  await until(() => connection.state === 'connected')
  await sleep(50)
  say({ events, watching: connection.watching() })
  await connection.close()
`

// User namespaces are switched off on some machines; there the limits are tested in Rust with an injected error only.
describe.skipIf(!canExhaust)('a system that watches no more folders', () => {
  it.each(['max_inotify_instances', 'max_inotify_watches'])(
    'is told of once, and pi connects all the same: %s',
    async (limit) => {
      const lockDir = join(ownHome(), '.pi/pi-x-ide/lock')
      const pi = new Process(FOLLOW, { under: exhausted(limit) })
      await pi.line(0)
      await ideServer({ workspaceFolders: ['/w'], lockDir })
      const { events, watching } = await pi.line<Report>(1)
      const warnings = events.filter(({ type }) => type === 'error')
      expect(warnings.map(({ code }) => code)).toEqual(['PIX_WATCH_LIMIT'])
      expect(warnings[0]?.message).toContain(limit.replace('inotify', 'user'))
      expect(watching).toEqual([
        expect.objectContaining({ kind: 'polling', reason: expect.stringContaining('fs.inotify') }),
      ])
    },
  )

  it('is not told of where there are watches left', async () => {
    const lockDir = join(ownHome(), '.pi/pi-x-ide/lock')
    const pi = new Process(FOLLOW)
    await pi.line(0)
    await ideServer({ workspaceFolders: ['/w'], lockDir })
    const { events, watching } = await pi.line<Report>(1)
    expect(events.filter(({ type }) => type === 'error')).toEqual([])
    expect(watching.map(({ kind }) => kind)).toEqual(['events'])
  })
})
