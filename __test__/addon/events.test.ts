import { readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Connection, EditorEvent } from '../../index.d.ts'
import { connectBest } from '../../index.js'
import { closedAfterwards, Heard, ideServer } from './bridge.ts'
import { cleared, FakeEditor, mentioned, notification, selectionChanged, snapshot } from './fake-editor.ts'

import { lines, Process, run } from './processes.ts'
import { block, CWD, folder, quiet, sleep, until, writeFileOf } from './support.ts'

const file = (n: number | string) => `${CWD}/${n}.ts`

/** What a listener was told, in few words. */
const told = (event: EditorEvent): string => {
  if (event.type === 'selection') return event.snapshot.filePath.slice(CWD.length + 1)
  if (event.type === 'mention') return event.mentions.join(' ')
  if (event.type === 'status') return event.state
  return event.type
}

const fix = {
  action: 'send-diagnostic',
  source: 'vscode',
  filePath: file('fix'),
  workspaceFolder: CWD,
  documentVersion: 7,
  triggerRange: { start: { line: 9, character: 4 }, end: { line: 9, character: 10 } },
  diagnostics: [
    {
      severity: 'error',
      message: 'no such type',
      source: 'ts',
      code: { value: 2322, target: 'https://example.com/2322' },
      range: { start: { line: 9, character: 4 }, end: { line: 9, character: 10 } },
      selectedText: 'value',
      contextLines: [{ line: 9, text: 'const value = 1', isPrimary: true }],
      relatedInformation: [
        {
          filePath: file('other'),
          range: { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } },
          message: 'here',
        },
      ],
    },
  ],
}

describe('order', () => {
  test('events come in the order of the messages, with all that they carry', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    const heard = new Heard(connection)
    const steps: [message: string, word: string][] = [
      [selectionChanged(snapshot(file('a'), 1, 2)), 'a.ts'],
      [mentioned(snapshot(file('b'), 3)), '@b.ts#L3'],
      [notification('diagnostic_fix_requested', fix), 'diagnosticFix'],
      [cleared(), 'cleared'],
      [selectionChanged(snapshot(file('c'))), 'c.ts'],
    ]
    for (const [i, [message]] of steps.entries()) {
      editor.send(message)
      await until(`event ${i}`, () => heard.events.length > i)
    }
    expect(heard.events.map(told)).toEqual(steps.map(([, word]) => word))
    const text = 'secret text'
    expect(heard.events[0]).toEqual({
      type: 'selection',
      attach: 'pending',
      snapshot: {
        source: 'vscode',
        filePath: file('a'),
        workspaceFolder: CWD,
        receivedAt: expect.any(Number),
        ranges: [
          {
            selection: { start: { line: 0, character: 0 }, end: { line: 1, character: 4 } },
            textLength: text.length,
            hash: expect.stringMatching(/^[0-9a-f]{16}$/),
          },
        ],
      },
    })
    const { code, ...diagnostic } = fix.diagnostics[0] as (typeof fix.diagnostics)[0]
    const { source, diagnostics, ...rest } = fix
    expect(heard.of('diagnosticFix')[0]?.request).toEqual({
      ...rest,
      diagnostics: [{ ...diagnostic, code: code.value, codeTarget: code.target }],
    })
    expect(JSON.stringify(heard.events)).not.toContain(text)
  })

  test('paths and times are those of this machine and of the editor', async () => {
    const editor = await FakeEditor.start()
    const heard = new Heard(await editor.connect())
    const before = Date.now()
    editor.send(selectionChanged(snapshot('file:///w/app/a%20b.ts', 1)))
    const first = await heard.first('selection')
    expect(first.snapshot.receivedAt).toBeGreaterThanOrEqual(before)
    expect(first.snapshot.receivedAt).toBeLessThanOrEqual(Date.now())
    editor.send(mentioned({ ...snapshot(file('b'), 1), receivedAt: 1_780_963_200_123 }))
    expect((await heard.first('mention')).snapshot.receivedAt).toBe(1_780_963_200_123)
  })

  test('odd names arrive as they are', async () => {
    const name = '"\\\u0000\u001b[31m\n\u2028\u202e😀e\u0301__proto__</script>'
    const editor = await FakeEditor.start({
      answer: JSON.stringify({ jsonrpc: '2.0', id: 1, result: { server: { name, ide: name } } }),
      lock: { name },
    })
    const connection = await editor.connect()
    const heard = new Heard(connection)
    editor.send(selectionChanged({ ...snapshot(file(name), 1), source: name, workspaceFolder: `/w/${name}` }))
    const { snapshot: told } = await heard.first('selection')
    expect(told).toEqual(connection.latest())
    expect(told).toMatchObject({ filePath: file(name), source: name, workspaceFolder: `/w/${name}` })
    expect(connection.server).toEqual({ name, ide: name })
    await connection.close()
    expect(heard.of('status')[0]).toEqual({ type: 'status', state: 'closed' })
  })

  test('a connection that follows tells its states in order, beginning with its listener', async () => {
    const server = await ideServer()
    server.publish(snapshot(file('a'), 1))
    const lockDir = folder()
    const connection = closedAfterwards(await connectBest(CWD, { lockDir, keepAlive: true }))
    const heard = new Heard(connection as Connection)
    // Not before somebody listens: what was heard by then is told by `state` and `latest()` alone.
    const id = join(lockDir, 'found.lock')
    renameSync(writeFileOf(join(lockDir, 'tmp'), readFileSync(server.lockFile, 'utf8')), id)
    await heard.first('selection')
    const [status] = heard.of('status').slice(-1)
    expect(status).toMatchObject({
      state: 'connected',
      server: { name: 'VS Code' },
      candidate: { id },
    })
    await connection?.close()
    const words = heard.events.map(told)
    expect(words.slice(words.indexOf('connected'))).toEqual(['connected', 'a.ts', 'closed', 'closed'])
    expect(heard.events.at(-2)).toEqual({ type: 'status', state: 'closed' })
    expect(heard.events.at(-1)).toEqual({ type: 'closed', reason: expect.stringMatching(/\w/) })
  })
})

describe('a thread that is busy', () => {
  test('gets all mentions in order and only the latest selection', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    const heard = new Heard(connection)
    const words: string[] = []
    for (let i = 0; i < 300; i++) {
      editor.send(selectionChanged(snapshot(file(i), 1)))
      if (i % 3 === 0) {
        editor.send(mentioned(snapshot(file('m'), i + 1)))
        words.push(`@m.ts#L${i + 1}`)
      }
    }
    editor.send(cleared(), selectionChanged(snapshot(file('last'), 1)))
    block(() => connection.latest()?.filePath === file('last'))
    expect(heard.events).toHaveLength(0)
    await until('the last selection', () => heard.of('selection').length > 0)
    await quiet()
    expect(heard.events.map(told)).toEqual([...words, 'last.ts'])
  })

  test('holds the editor back instead of losing mentions', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    const heard = new Heard(connection)
    const count = 5000
    for (let i = 1; i <= count; i++) editor.send(mentioned(snapshot(file('m'), i)))
    const end = Date.now() + 300
    block(() => Date.now() > end)
    await until('the last mention', () => heard.events.length >= count)
    expect(heard.events.map(told)).toEqual(Array.from({ length: count }, (_, i) => `@m.ts#L${i + 1}`))
  })

  test('loses no status, and the connection can still be closed', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    const heard = new Heard(connection)
    for (let i = 1; i <= 3000; i++) editor.send(mentioned(snapshot(file('m'), i)))
    let isClosed = false
    const closing = connection.close().then(() => {
      isClosed = true
      return heard.types.at(-1)
    })
    const end = Date.now() + 1300
    block(() => Date.now() > end)
    expect(isClosed).toBe(false)
    expect(await closing).toBe('closed')
    expect(heard.of('status').map(({ state }) => state)).toEqual(['closed'])
  })
})

describe('listeners', () => {
  test('one that was removed is not called any more, not even for what was on its way', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    const removed = new Heard(connection)
    const stays = new Heard(connection)
    editor.send(mentioned(snapshot(file('a'), 1)), selectionChanged(snapshot(file('b'), 1)))
    block(() => connection.latest()?.filePath === file('b'))
    removed.unsubscribe()
    removed.unsubscribe()
    await until('both events', () => stays.events.length === 2)
    editor.send(mentioned(snapshot(file('c'), 1)))
    await until('the third event', () => stays.events.length === 3)
    await quiet()
    expect(removed.events).toEqual([])
    await connection.close()
    removed.unsubscribe()
  })

  test('one may remove itself or another one while it is called', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    let calls = 0
    const unsubscribe = connection.onEvent(() => {
      calls++
      unsubscribe()
      victim.unsubscribe()
    })
    const victim = new Heard(connection)
    const stays = new Heard(connection)
    for (let i = 1; i <= 5; i++) editor.send(mentioned(snapshot(file('m'), i)))
    await until('five events', () => stays.events.length === 5)
    expect([calls, victim.events.length]).toEqual([1, 0])
  })

  test('several hear the same, and one that comes later only what comes later', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    const first = new Heard(connection)
    const second = new Heard(connection)
    editor.send(mentioned(snapshot(file('a'), 1)))
    await until('the first event', () => first.events.length === 1 && second.events.length === 1)
    const late = new Heard(connection)
    editor.send(mentioned(snapshot(file('b'), 1)))
    await until('the second event', () => late.events.length === 1)
    await until('it everywhere', () => first.events.length === 2 && second.events.length === 2)
    expect(second.events).toEqual(first.events)
    expect(late.events).toEqual(first.events.slice(1))
  })

  test('the same function twice is called twice, until one of both is removed', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    let calls = 0
    const listener = () => {
      calls++
    }
    const unsubscribe = connection.onEvent(listener)
    connection.onEvent(listener)
    editor.send(mentioned(snapshot(file('a'), 1)))
    await until('both calls', () => calls === 2)
    unsubscribe()
    editor.send(mentioned(snapshot(file('b'), 1)))
    await until('one more call', () => calls === 3)
    await quiet()
    expect(calls).toBe(3)
  })

  test('what a listener does with an event changes nothing for the others', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    connection.onEvent((event) => {
      if (event.type === 'mention') {
        event.mentions.length = 0
        event.snapshot.ranges.length = 0
      }
    })
    const other = new Heard(connection)
    editor.send(mentioned(snapshot(file('a'), 1)))
    expect((await other.first('mention')).mentions).toEqual(['@a.ts#L1'])
    expect(connection.latest()?.ranges).toHaveLength(1)
  })

  test('a listener may use the connection', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    const seen: unknown[] = []
    connection.onEvent((event) => {
      if (event.type !== 'selection') return
      connection.attach()
      seen.push(
        connection.state,
        connection.latest()?.filePath,
        connection.mentions(),
        connection.attachState,
      )
      void connection.close()
    })
    const heard = new Heard(connection)
    editor.send(selectionChanged(snapshot(file('a'), 1)))
    await heard.first('closed')
    expect(seen).toEqual(['connected', file('a'), ['@a.ts#L1'], 'pending'])
  })

  test('something that is no function is refused', async () => {
    const connection = await (await FakeEditor.start()).connect()
    for (const listener of [undefined, null, 5, 'x', {}, []])
      expect(() => connection.onEvent(listener as unknown as () => void), JSON.stringify(listener)).toThrow()
  })

  /** Listens in a process of its own: one listener that throws, one that does not. */
  const THROWS = `
    const [candidate, withHandler] = args
    if (withHandler) process.on('uncaughtException', (error) => say({ uncaught: error.message, same: error === thrown }))
    const thrown = new Error('listener is broken')
    const connection = await addon.connect(candidate, { cwd: '/w/app' })
    let calls = 0
    connection.onEvent(() => { if (++calls === 2) throw thrown; say({ first: calls }) })
    connection.onEvent(({ type }) => say({ second: type }))
    setInterval(() => {}, 1000)
    say('ready')`

  test('one that throws is an uncaught exception, and the next events are whole', async () => {
    const editor = await FakeEditor.start()
    const listener = new Process(
      `${THROWS};await until(() => calls === 4); await connection.close(); process.exit(3)`,
      {
        args: [await editor.candidate, true],
      },
    )
    await listener.line()
    for (let i = 1; i <= 4; i++) {
      editor.send(mentioned(snapshot(file('m'), i)))
      await until(
        `mention ${i}`,
        () => listener.said.filter((line) => (line as { second?: string }).second === 'mention').length >= i,
      )
    }
    const ended = await listener.ended
    expect(ended.stderr).toBe('')
    expect(ended.code).toBe(3)
    const said = lines(ended)
    expect(said).toContainEqual({ uncaught: 'listener is broken', same: true })
    const calls = said.map((line) => (line as { first?: number }).first).filter(Boolean)
    expect(calls.slice(0, 3)).toEqual([1, 3, 4])
  })

  test('without a handler it ends the process as any exception does', async () => {
    const editor = await FakeEditor.start()
    const listener = new Process(THROWS, { args: [await editor.candidate, false] })
    await listener.line()
    for (let i = 1; i <= 3; i++) editor.send(mentioned(snapshot(file('m'), i)))
    const { code, signal, stderr } = await listener.ended
    expect([code, signal]).toEqual([1, null])
    expect(stderr).toContain('listener is broken')
  })
})

describe('close', () => {
  test('closing often is the same as once, and each call returns after the last event', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    const heard = [new Heard(connection), new Heard(connection)]
    editor.send(mentioned(snapshot(file('a'), 1)))
    await heard[0]?.first('mention')
    const seen = await Promise.all(
      Array.from({ length: 5 }, () => connection.close().then(() => heard.map(({ types }) => types.at(-1)))),
    )
    expect(seen).toEqual(Array(5).fill(['closed', 'closed']))
    await connection.close()
    await quiet()
    for (const { events } of heard) expect(events.map(told)).toEqual(['@a.ts#L1', 'closed', 'closed'])
    await until('the link to be closed', () => editor.open === 0)
  })

  test('a closed connection is still there to be asked', async () => {
    const server = await ideServer()
    const connection = (await connectBest(CWD, { lockDir: dirname(server.lockFile) })) as Connection
    server.publish(snapshot(file('a'), 1))
    await until('the selection', () => connection.latest())
    const prepared = await connection.prepareContext()
    await connection.close()
    expect([connection.state, connection.candidate, connection.server, connection.latest()]).toEqual([
      'closed',
      null,
      null,
      null,
    ])
    expect([connection.mentions(), connection.label(), connection.attachState]).toEqual([[], null, 'idle'])
    connection.attach()
    if (prepared) connection.markInjected(prepared)
    expect(await connection.prepareContext({ waitMs: 5000 })).toBeNull()
    const late = new Heard(connection)
    await quiet()
    expect(late.events).toEqual([])
    late.unsubscribe()
    await until('no client', () => server.clients().length === 0)
  })

  test('an editor that does not answer the farewell does not hold it up', async () => {
    const editor = await FakeEditor.start()
    const connection = await editor.connect()
    const heard = new Heard(connection)
    editor.link.pause()
    expect(await Promise.race([connection.close(), sleep(5000).then(() => 'late')])).toBeUndefined()
    expect(heard.types.at(-1)).toBe('closed')
  })

  test('a connection that searches or waits closes at once', async () => {
    const connection = (await connectBest(CWD, { lockDir: folder(), keepAlive: true })) as Connection
    const heard = new Heard(connection)
    await until('searching', () => connection.state === 'searching')
    await connection.close()
    expect(heard.types.at(-1)).toBe('closed')
  })

  test('so does one that is being made', async () => {
    const editor = await FakeEditor.start({ answer: null })
    const connection = (await connectBest(CWD, {
      lockDir: editor.lockDir,
      keepAlive: true,
      timeoutMs: 60_000,
    })) as Connection
    const heard = new Heard(connection)
    await until('initialize', () => editor.received.length === 1)
    await connection.close()
    expect(heard.types.at(-1)).toBe('closed')
    await until('the link to be closed', () => editor.open === 0)
  })

  test('the end that the editor sets closes for good, too', async () => {
    const server = await ideServer()
    const connection = (await connectBest(CWD, { lockDir: dirname(server.lockFile) })) as Connection
    const heard = new Heard(connection)
    await server.close()
    await heard.first('closed')
    await connection.close()
    expect(heard.types.filter((type) => type === 'closed')).toHaveLength(1)
  })
})

describe('garbage collection', () => {
  const COLLECT = 'const collect = async () => { for (let i = 0; i < 10; i++) { gc(); await sleep(10) } };'

  test('a connection that somebody listens to stays open, and goes when nobody does any more', async () => {
    const editor = await FakeEditor.start()
    const script = `${COLLECT}
      let heard = 0
      const unsubscribe = await (async () => (await addon.connect(args[0])).onEvent(() => heard++))()
      await collect()
      say('listens')
      await until(() => heard === 1)
      unsubscribe()
      await collect()
      say('gone')
      await until(() => false)`
    const listener = new Process(script, { args: [await editor.candidate], flags: ['--expose-gc'] })
    await listener.line(0)
    expect(editor.open).toBe(1)
    editor.send(mentioned(snapshot(file('a'), 1)))
    await listener.line(1)
    await until('the link to be closed', () => editor.open === 0)
  })

  test('a server that nobody holds any more takes its lock file along', async () => {
    const lockDir = join(folder(), 'lock')
    const script = `${COLLECT}
      const start = () => addon.IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: [], lockDir: args[0] })
      await (async () => { await start() })()
      await collect()
      say('collected')
      await until(() => false)`
    const server = new Process(script, { args: [lockDir], flags: ['--expose-gc'] })
    await server.line()
    await until('the file to be gone', () => readdirSync(lockDir).length === 0)
  })
})

describe('the process can end', () => {
  const scripts: Record<string, string> = {
    'an open connection with a listener': `
      const connection = await addon.connect(args[0], { cwd: '/w/app' })
      connection.onEvent(() => {})
      globalThis.kept = connection`,
    'a connection that follows and is connected': `
      const connection = await addon.connectBest('/w/app', { lockDir: args[1], keepAlive: true })
      connection.onEvent(() => {})
      await until(() => connection.state === 'connected')
      globalThis.kept = connection`,
    'a connection that searches': `
      const connection = await addon.connectBest('/elsewhere', { lockDir: args[1], keepAlive: true })
      connection.onEvent(() => {})
      await until(() => connection.state === 'searching')
      globalThis.kept = connection`,
    'a connection that waits to try again': `
      const connection = await addon.connectBest('/w/dead', { lockDir: args[1], keepAlive: true })
      connection.onEvent(() => {})
      await until(() => connection.state === 'waiting')
      globalThis.kept = connection`,
    'a server with its lock file': `
      const server = await addon.IdeServer.start({ ide: 'nvim', name: 'x', workspaceFolders: ['/x'], lockDir: args[1] })
      server.publish({ filePath: '/x/a', ranges: [] })
      globalThis.kept = server`,
    'a closed connection and a closed server': `
      const server = await addon.IdeServer.start({ ide: 'nvim', name: 'x', workspaceFolders: ['/x'], lockDir: args[1] })
      const connection = await addon.connectBest('/x', { lockDir: args[1] })
      connection.onEvent(() => {})
      await connection.close()
      await server.close()`,
    'process.exit in the middle of everything': `
      const connection = await addon.connect(args[0], { cwd: '/w/app' })
      connection.onEvent(() => {})
      for (let i = 0; i < 20; i++) { addon.discover('/w/app', { lockDir: args[1] }); addon.connect(args[0]); addon.IdeServer.start({ ide: 'x', name: 'x', workspaceFolders: [], lockDir: args[1] }) }
      say('going')
      process.exit(0)`,
  }

  test.each(Object.keys(scripts))('%s does not keep it', async (name) => {
    const server = await ideServer()
    const lockDir = dirname(server.lockFile)
    const script = name.includes('waits')
      ? `require('node:fs').writeFileSync(args[1] + '/dead.lock', JSON.stringify({ version: 1, ide: 'x', transport: 'ws', host: '127.0.0.1', port: 1, authToken: 'x', workspaceFolders: ['/w/dead'], pid: process.pid }), { mode: 0o600 });${scripts[name]}`
      : scripts[name]
    const connection = (await connectBest(CWD, { lockDir })) as Connection
    const candidate = connection.candidate
    await connection.close()
    const { code, signal, stderr } = await run(script as string, { args: [candidate, lockDir] })
    expect([code, signal, stderr]).toEqual([0, null, ''])
    await until('no client', () => server.clients().length === 0)
    rmSync(`${lockDir}/dead.lock`, { force: true })
  })
})
