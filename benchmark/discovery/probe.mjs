import { connect } from 'node:net'

const TIMEOUT_MS = 500

/** Whether somebody listens at a port of this machine: `reachable`, `refused`, or `timeout`, which proves nothing. */
export const probe = (port) =>
  new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: TIMEOUT_MS })
    const end = (outcome) => {
      socket.destroy()
      resolve(outcome)
    }
    socket.once('connect', () => end('reachable'))
    socket.once('timeout', () => end('timeout'))
    socket.once('error', ({ code }) => end(code === 'ECONNREFUSED' ? 'refused' : 'timeout'))
  })
