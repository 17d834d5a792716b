import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { DiagnosticFix, IdeServerOptions, RouteOptions, SnapshotInput } from '../../index.d.ts'
import type { IdeServer } from '../../index.js'
import { ideServer } from './bridge.ts'
import { Client } from './fake-client.ts'
import { notification, request, snapshot } from './fake-editor.ts'
import { quiet, thrown, until } from './support.ts'

/** What the client under test is told apart by: its folder and its terminal. */
interface Who {
  cwd?: unknown
  terminalSessionId?: unknown
}

/** A server and clients that have joined one after the other. */
async function serverWith(clients: Who[], options: Partial<IdeServerOptions> = {}) {
  const server = await ideServer({ workspaceFolders: [], ...options })
  const joined: Client[] = []
  for (const who of clients) joined.push(await join(server, who))
  return { server, clients: joined }
}

async function join(server: IdeServer, who: Who): Promise<Client> {
  const token = JSON.parse(readFileSync(server.lockFile, 'utf8')).authToken
  const client = await Client.open(server.port, token)
  const params = { protocolVersion: 1, client: { name: 'fake', version: '0' }, ...who }
  client.link.send(request(1, 'initialize', params))
  await until('the first state', () => client.messages.length >= 2)
  return client
}

/** A mention of this file, and of this workspace folder where there is one. */
const about = (filePath: string, workspaceFolder?: string): SnapshotInput => {
  const { workspaceFolder: _, ...rest } = snapshot(filePath, 1)
  return workspaceFolder === undefined ? rest : { ...rest, workspaceFolder }
}

/** Which client a mention went to, as `2 workspace`, counted from 1 in the order of joining. */
function route(server: IdeServer, mention: SnapshotInput, options?: RouteOptions): string | null {
  const chosen = server.mention(mention, options)
  return chosen && `${chosen.id} ${chosen.chosenBy}`
}

const at = { line: 0, character: 0 }
const fix: DiagnosticFix = {
  filePath: '/elsewhere/fix.ts',
  triggerRange: { start: at, end: at },
  diagnostics: [
    {
      severity: 'warning',
      message: 'm',
      range: { start: at, end: at },
      selectedText: 't',
      contextLines: [],
    },
  ],
}

describe('the terminal that is asked for', () => {
  test('wins over every folder, and the client tells of it', async () => {
    const { server, clients } = await serverWith([
      { cwd: '/w/app', terminalSessionId: 'one' },
      { cwd: '/elsewhere', terminalSessionId: 'two' },
      { cwd: '/w' },
    ])
    expect(server.clients().map(({ terminalSessionId }) => terminalSessionId)).toEqual([
      'one',
      'two',
      undefined,
    ])
    expect(server.mention(about('/w/app/a.ts'), { terminalSessionId: 'two' })).toEqual({
      id: 2,
      name: 'fake',
      version: '0',
      cwd: '/elsewhere',
      terminalSessionId: 'two',
      chosenBy: 'terminal',
    })
    expect(server.requestFix(fix, { terminalSessionId: 'one' })).toMatchObject({
      id: 1,
      chosenBy: 'terminal',
    })
    await until('both', () => clients[1]?.of('at_mentioned').length === 1)
    await until('the request', () => clients[0]?.of('diagnostic_fix_requested').length === 1)
    await quiet()
    const words = clients.map(({ messages }) => messages.length - 2)
    expect(words, 'exactly one client each').toEqual([1, 1, 0])
  })

  test('that nobody runs in is no reason, and an empty name is no terminal', async () => {
    const { server } = await serverWith([{ cwd: '/w/app', terminalSessionId: '' }, { cwd: '/w' }])
    expect(server.clients()[0]).toEqual({ id: 1, name: 'fake', version: '0', cwd: '/w/app' })
    for (const options of [{ terminalSessionId: 'x' }, { terminalSessionId: '' }, {}, undefined])
      expect(route(server, about('/w/app/a.ts'), options)).toBe('1 workspace')
  })

  test('with two clients means the one used last', async () => {
    const who = { terminalSessionId: 'same' }
    const { server, clients } = await serverWith([who, who])
    expect(route(server, about('/a'), who)).toBe('2 terminal')
    clients[0]?.link.send(notification('prompt_submitted'))
    await until('the prompt', () => route(server, about('/b')) === '1 last-used')
    expect(route(server, about('/a'), who)).toBe('1 terminal')
  })
})

describe('without a terminal', () => {
  test('the nearest folder around the file, of equal ones the one used last', async () => {
    const { server } = await serverWith([{ cwd: '/w' }, { cwd: '/w/app' }, { cwd: '/w/app' }, { cwd: '/x' }])
    expect(route(server, about('/w/app/a.ts'))).toBe('3 workspace')
    expect(route(server, about('/w/app2/a.ts'))).toBe('1 workspace')
    expect(route(server, about('/w/lib/a.ts', '/x'))).toBe('1 workspace')
  })

  test('else the workspace folder of the snapshot, and of a request', async () => {
    const { server } = await serverWith([{ cwd: '/w/a' }, { cwd: '/w/b' }, { cwd: '/x' }])
    expect(route(server, about('/w/c/a.ts', '/w'))).toBe('2 workspace')
    expect(route(server, about('/w/a/x.ts'))).toBe('1 workspace')
    expect(route(server, about('/w/c/a.ts', '/w'))).toBe('1 workspace')
    expect(route(server, about('/elsewhere/a.ts', '/x/deep'))).toBe('3 workspace')
    expect(server.requestFix({ ...fix, workspaceFolder: '/w' })).toMatchObject({
      id: 1,
      chosenBy: 'workspace',
    })
  })

  test('else the open folder around the file, as it is now', async () => {
    const { server } = await serverWith([{ cwd: '/w/a' }, { cwd: '/x' }], { workspaceFolders: ['/w', '/x'] })
    expect(route(server, about('/w/c/a.ts'))).toBe('1 workspace')
    expect(route(server, about('/x/a.ts'))).toBe('2 workspace')
    const written = server.setWorkspaceFolders(['/x'])
    expect(route(server, about('/w/c/a.ts'))).toBe('2 last-used')
    await written
    await server.setWorkspaceFolders(['/', '/w'])
    expect(route(server, about('/w/c/a.ts'))).toBe('1 workspace')
    expect(route(server, about('/elsewhere/a.ts')), 'a root is nobody’s workspace').toBe('1 last-used')
  })

  test('else whoever was chosen, joined or prompted last', async () => {
    const { server, clients } = await serverWith([{ cwd: '/a' }, { cwd: '/b' }, {}])
    const lost = about('/elsewhere/x.ts')
    expect(route(server, lost)).toBe('3 last-used')
    expect(route(server, about('/a/x.ts'))).toBe('1 workspace')
    expect(route(server, lost)).toBe('1 last-used')
    clients[1]?.link.send(notification('prompt_submitted', { ignored: true }))
    await until('the prompt', () => route(server, lost) === '2 last-used')
    // As a request, or before the handshake, it says nothing.
    clients[0]?.link.send(request(7, 'prompt_submitted'))
    await until('an error', () => clients[0]?.messages.some(({ error }) => error))
    const token = JSON.parse(readFileSync(server.lockFile, 'utf8')).authToken
    const stranger = await Client.open(server.port, token)
    stranger.link.send(notification('prompt_submitted'))
    await quiet()
    expect(route(server, lost)).toBe('2 last-used')
    clients[1]?.link.terminate()
    await until('it to be gone', () => server.clients().length === 2)
    expect(route(server, lost)).toBe('1 last-used')
    await join(server, {})
    expect(route(server, lost)).toBe('4 last-used')
  })

  test('and without a client nobody', async () => {
    const server = await ideServer()
    expect(server.mention(about('/a'), { terminalSessionId: 'x' })).toBeNull()
    expect(server.requestFix(fix, { terminalSessionId: 'x' })).toBeNull()
  })
})

describe('values of a wrong type', () => {
  test.each([7, null, {}, ['x'], true])('%j from a client counts as absent', async (terminalSessionId) => {
    const { server } = await serverWith([{ cwd: '/w', terminalSessionId }])
    expect(server.clients()).toEqual([{ id: 1, name: 'fake', version: '0', cwd: '/w' }])
  })

  test('from the editor are refused, and nobody is told anything', async () => {
    const { server, clients } = await serverWith([{ cwd: '/w' }])
    for (const bad of [5, 'x', true, { terminalSessionId: 5 }, { terminalSessionId: {} }]) {
      const options = bad as RouteOptions
      for (const call of [
        () => server.mention(about('/w/a'), options),
        () => server.requestFix(fix, options),
      ])
        expect(thrown(call).code, JSON.stringify(bad)).toMatch(/\w/)
    }
    for (const call of [
      () => server.mention(about(''), { terminalSessionId: 'x' }),
      () => server.requestFix({ ...fix, diagnostics: [] }, { terminalSessionId: 'x' }),
    ])
      expect(thrown(call).code).toBe('PIX_INVALID_ARGUMENT')
    await quiet()
    expect(clients[0]?.messages).toHaveLength(2)
  })
})
