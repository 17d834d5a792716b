import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { onTestFinished } from 'vitest'
import type { Connection, EditorEvent, IdeServerOptions } from '../../index.d.ts'
import { connectBest, IdeServer } from '../../index.js'
import { CWD, folder, until } from './support.ts'

/** A connection that follows the editors of a folder until the test is over. */
export async function follow(lockDir?: string, cwd = CWD): Promise<Connection> {
  const connection = await connectBest(cwd, { keepAlive: true, ...(lockDir && { lockDir }) })
  if (!connection) throw new Error('null')
  return closedAfterwards(connection)
}

/** Closes a connection when the test is over. */
export function closedAfterwards<T extends Connection | null>(connection: T): T {
  onTestFinished(() => connection?.close())
  return connection
}

/** A real server of the addon that is closed when the test is over. */
export async function ideServer(options: Partial<IdeServerOptions> = {}): Promise<IdeServer> {
  const server = await IdeServer.start({
    ide: 'vscode',
    name: 'VS Code',
    workspaceFolders: [CWD],
    lockDir: join(folder(), 'lock'),
    ...options,
  })
  onTestFinished(() => server.close())
  return server
}

/** The token in a server's lock file. */
export const tokenOf = (server: IdeServer): string =>
  JSON.parse(readFileSync(server.lockFile, 'utf8')).authToken

/** Everything that a connection tells. */
export class Heard {
  readonly events: EditorEvent[] = []
  readonly unsubscribe: () => void

  constructor(connection: Connection) {
    this.unsubscribe = connection.onEvent((event) => this.events.push(event))
  }

  get types(): string[] {
    return this.events.map(({ type }) => type)
  }

  of<T extends EditorEvent['type']>(type: T): Extract<EditorEvent, { type: T }>[] {
    return this.events.filter((event) => event.type === type) as Extract<EditorEvent, { type: T }>[]
  }

  /** The first event of a type, as soon as it is there. */
  async first<T extends EditorEvent['type']>(type: T): Promise<Extract<EditorEvent, { type: T }>> {
    const found = await until(`${type} among ${inspect(this.types)}`, () => this.of(type)[0])
    return found as Extract<EditorEvent, { type: T }>
  }
}
