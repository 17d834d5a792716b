// Sends one byte a millisecond until it is ended.
import { connect } from 'node:net'

const socket = connect(Number(process.argv[2]), '127.0.0.1').setNoDelay()
socket.on('connect', () => setInterval(() => socket.write('x'), 1))
socket.on('close', () => process.exit())
