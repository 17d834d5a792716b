import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { DiagnosticFix, SnapshotInput } from '../../index.d.ts'
import { ideServer, tokenOf } from './bridge.ts'
import { Client, join_ } from './fake-client.ts'
import { snapshot } from './fake-editor.ts'
import { Process } from './processes.ts'
import { CWD, folder, sleep, until } from './support.ts'

const file = (name: string) => `${CWD}/${name}`
const files = (messages: SnapshotInput[]) => messages.map(({ filePath }) => filePath)

describe('several clients', () => {
  test('all get the selections, each mention and fix goes to exactly one', async () => {
    const server = await ideServer()
    const clients = [await join_(server, '/w'), await join_(server, CWD), await join_(server, '/elsewhere')]
    const [outer, near, other] = server.clients()
    server.publish(snapshot(file('a.ts'), 1))
    for (const client of clients)
      await until('the selection', () => files(client.of('selection_changed')).includes(file('a.ts')))

    const mention = (path: string) => {
      const { workspaceFolder, ...rest } = snapshot(path, 1)
      return server.mention(rest)
    }
    expect(mention(file('near.ts'))).toEqual({ ...near, chosenBy: 'workspace' })
    expect(mention('/w/lib/outer.ts')).toEqual({ ...outer, chosenBy: 'workspace' })
    expect(mention('/elsewhere/other.ts')).toEqual({ ...other, chosenBy: 'workspace' })
    expect(mention('/tmp/last-used.ts')).toEqual({ ...other, chosenBy: 'last-used' })
    expect(mention(file('near-again.ts'))).toEqual({ ...near, chosenBy: 'workspace' })
    expect(mention(`${CWD}2/no-prefix.ts`)).toEqual({ ...outer, chosenBy: 'workspace' })
    const request: DiagnosticFix = {
      filePath: '/tmp/fix.ts',
      triggerRange: { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } },
      diagnostics: [
        {
          severity: 'warning',
          message: 'm',
          range: { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } },
          selectedText: 't',
          contextLines: [],
        },
      ],
    }
    expect(server.requestFix(request)).toEqual({ ...outer, chosenBy: 'last-used' })
    server.clear()
    for (const client of clients)
      await until('clearing', () => client.messages.at(-1)?.method === 'selection_cleared')
    expect(clients.map((client) => files(client.of('at_mentioned')))).toEqual([
      ['/w/lib/outer.ts', `${CWD}2/no-prefix.ts`],
      [file('near.ts'), file('near-again.ts')],
      ['/elsewhere/other.ts', '/tmp/last-used.ts'],
    ])
    expect(clients.map((client) => client.of('diagnostic_fix_requested').length)).toEqual([1, 0, 0])
    expect(clients[0]?.of('diagnostic_fix_requested')[0]).toMatchObject({
      action: 'fix',
      source: 'vscode',
      filePath: '/tmp/fix.ts',
    })
    expect(clients[0]?.of('at_mentioned')[0]).toHaveProperty('rangeText')
  })

  test('without a client a mention goes nowhere and says so', async () => {
    const server = await ideServer()
    expect(server.mention(snapshot(file('a.ts'), 1))).toBeNull()
    expect(server.clients()).toEqual([])
    const client = await join_(server)
    client.link.terminate()
    await until('it to be gone', () => server.clients().length === 0)
    expect(server.mention(snapshot(file('a.ts'), 1))).toBeNull()
  })

  test('a selection and a mention keep their order', async () => {
    const server = await ideServer()
    const client = await join_(server)
    const before = client.messages.length
    for (let i = 1; i <= 100; i++) {
      server.publish(snapshot(file(`${i}.ts`), 1))
      server.mention(snapshot(file('m.ts'), i))
    }
    server.publish(snapshot(file('last.ts'), 1))
    await until('the last one', () => files(client.of('selection_changed')).at(-1) === file('last.ts'))
    const after = client.messages.slice(before)
    const mentions = after
      .filter(({ method }) => method === 'at_mentioned')
      .map(({ params }) => params?.ranges[0]?.selection.start.line)
    expect(mentions).toEqual(Array.from({ length: 100 }, (_, i) => i))
    expect(after.at(-1)?.method).toBe('selection_changed')
    const shown = files(client.of('selection_changed')).map((name) =>
      Number(/(\d+)\.ts/.exec(name)?.[1] ?? 101),
    )
    expect(shown).toEqual([...shown].sort((a, b) => a - b))
  })

  test('one that is killed while the user selects disturbs nobody', async () => {
    const server = await ideServer()
    const [victim, other] = [await join_(server), await join_(server)]
    for (let i = 0; i < 20; i++) {
      server.publish(snapshot(file(`${i}.ts`), 1))
      if (i === 10) victim.link.terminate()
      await sleep(1)
    }
    await until('the last one', () => files(other.of('selection_changed')).at(-1) === file('19.ts'))
    await until('one client', () => server.clients().length === 1)
  })

  test('more than there are places for are turned away, and places are given back', async () => {
    const server = await ideServer()
    const token = tokenOf(server)
    const settled = await Promise.allSettled(
      Array.from({ length: 80 }, () => Client.open(server.port, token)),
    )
    const inside = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    expect(inside.length).toBeGreaterThanOrEqual(32)
    for (const client of inside) client.link.terminate()
    await until('a place', () => Client.join(server.port, token).then(Boolean, () => false))
  })

  test('one that never reads neither fills memory nor holds up the others', async () => {
    // The server in a process of its own, so that nothing but its memory is measured.
    const lockDir = join(folder(), 'lock')
    const host = new Process(
      `const server = await addon.IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: ['/w'], lockDir: args[0] })
       say(server.port)
       await until(() => server.clients().length === 2)
       const before = process.memoryUsage().rss
       const text = 'x'.repeat(200000)
       const selection = { start: { line: 0, character: 0 }, end: { line: 1, character: 0 } }
       for (let i = 1; i <= 1500; i++) {
         server.publish({ filePath: '/w/' + i, ranges: [{ text, selection }] })
         await new Promise(setImmediate)
         if (i % 50 === 0) await sleep(5)
       }
       gc()
       say(process.memoryUsage().rss - before)
       await until(() => server.clients().length === 0)
       await server.close()
       process.exit(0)`,
      { args: [lockDir], flags: ['--expose-gc'] },
    )
    const port = await host.line<number>(0)
    const token = JSON.parse(readFileSync(join(lockDir, readdirSync(lockDir)[0] as string), 'utf8')).authToken
    const stuck = await Client.join(port, token)
    stuck.link.pause()
    const other = await Client.join(port, token)
    await until('the last selection', () => files(other.of('selection_changed')).at(-1) === '/w/1500')
    expect(await host.line<number>(1)).toBeLessThan(100e6)
    for (const client of [stuck, other]) client.link.terminate()
    expect((await host.ended).code).toBe(0)
  })
})
