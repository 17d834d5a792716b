// The editors that are left: a process that listens at as many ports, and the lock folder with them and the dead ones.
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { serve } from '../lib/child.mjs'
import { ASKED, fill, LIVE } from './folder.mjs'

serve({
  async start(box) {
    const servers = Array.from({ length: LIVE }, () => createServer().listen(0, '127.0.0.1'))
    await Promise.all(servers.map((server) => once(server, 'listening')))
    const lockDir = join(box, 'lock')
    await fill(
      box,
      lockDir,
      servers.map((server) => server.address().port),
    )
    return { lockDir, cwd: join(box, ASKED) }
  },
})
