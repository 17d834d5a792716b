import { readFileSync } from 'node:fs'
import { connect as dial } from 'node:net'
import { describe, expect, test } from 'vitest'
import { ideServer, tokenOf } from './bridge.ts'
import { join_, upgradeStatus } from './fake-client.ts'
import { until } from './support.ts'

describe('who is let in', () => {
  test('only with the token, and only once', async () => {
    const server = await ideServer()
    const token = tokenOf(server)
    const header = (value: string) => `x-pi-x-ide-authorization: ${value}`
    const host = `Host: 127.0.0.1:${server.port}`
    const cases: [number, string[]][] = [
      [101, [header(token)]],
      [101, [`X-PI-X-IDE-AUTHORIZATION:${token}`]],
      [401, []],
      [401, [header('')]],
      [401, [header(token.slice(0, -1))]],
      [401, [header(`${token}0`)]],
      [401, [header(token.toUpperCase())]],
      [401, [header('0'.repeat(64))]],
      [401, [header(`Bearer ${token}`)]],
      [401, [`Authorization: ${token}`]],
      [401, [header(token), header(token)]],
      [401, [header('x'), header(token)]],
      [401, [header(`${token}, ${token}`)]],
      [401, [`Sec-WebSocket-Protocol: ${token}`]],
    ]
    for (const [status, headers] of cases)
      expect(await upgradeStatus(server.port, [host, ...headers]), headers.join()).toBe(status)
    await until('no client', () => server.clients().length === 0)
  })

  test('nobody with an Origin', async () => {
    const server = await ideServer()
    for (const origin of [
      'https://evil.example',
      'null',
      '',
      'http://localhost',
      `http://127.0.0.1:${server.port}`,
      'vscode-webview://x',
    ])
      for (const token of [tokenOf(server), 'wrong']) {
        const headers = [
          `Host: 127.0.0.1:${server.port}`,
          `Origin: ${origin}`,
          `x-pi-x-ide-authorization: ${token}`,
        ]
        expect(await upgradeStatus(server.port, headers), origin).toBe(403)
      }
  })

  test('only under a name that cannot be rebound', async () => {
    const server = await ideServer({ allowedHosts: ['host.docker.internal', 'Build-Box'] })
    const { port } = server
    const status = (...hosts: string[]) =>
      upgradeStatus(port, [
        ...hosts.map((host) => `Host: ${host}`),
        `x-pi-x-ide-authorization: ${tokenOf(server)}`,
      ])
    for (const host of [
      `127.0.0.1:${port}`,
      '127.0.0.1',
      'localhost',
      `LOCALHOST:${port}`,
      `[::1]:${port}`,
      '10.0.2.2',
      '192.168.1.5:9',
      '[fe80::1]:9',
      `host.docker.internal:${port}`,
      'HOST.docker.internal',
      'build-box',
    ])
      expect(await status(host), host).toBe(101)
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      'xlocalhost',
      'docker.internal',
      'a.host.docker.internal',
      '',
      ':80',
      '127.0.0.1@evil.example',
      'localhost,evil.example',
    ])
      expect(await status(host), host).toBe(403)
    expect(await status(), 'no host').toBe(403)
    expect(await status('localhost', 'evil.example'), 'two hosts').toBe(403)
  })

  test('nobody who does not ask for a WebSocket', async () => {
    const server = await ideServer()
    const headers = [`Host: 127.0.0.1:${server.port}`, `x-pi-x-ide-authorization: ${tokenOf(server)}`]
    for (const method of ['POST', 'OPTIONS', 'HEAD', 'CONNECT']) {
      const status = await upgradeStatus(server.port, headers, method)
      expect(status, method).not.toBe(101)
    }
    for (const bytes of [
      'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n',
      '\u0016\u0003\u0001',
      'hello\r\n\r\n',
      `GET / HTTP/1.1\r\n${'x: y\r\n'.repeat(5000)}\r\n`,
      'G'.repeat(200_000),
    ]) {
      const socket = dial(server.port, '127.0.0.1')
      let answer = ''
      socket.on('data', (chunk) => {
        answer += chunk
      })
      socket.on('error', () => {})
      socket.end(bytes)
      await until('the end', () => socket.closed)
      expect(answer).not.toMatch(/101|access-control/i)
    }
    expect((await join_(server)).closed).toBe(false)
  })

  test('the answer to a stranger tells nothing', async () => {
    const server = await ideServer()
    const socket = dial(server.port, '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.write(
      'GET / HTTP/1.1\r\nHost: evil.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    )
    await until('the answer', () => answer.includes('\r\n\r\n'))
    expect(answer).not.toContain(tokenOf(server))
    expect(answer).not.toMatch(/access-control|VS Code/i)
    socket.destroy()
  })

  test('nobody from outside this machine', async () => {
    // Also with the listener for WSL, which is for native Windows only.
    const server = await ideServer({ wslListener: true })
    const listening = readFileSync('/proc/net/tcp', 'utf8') + readFileSync('/proc/net/tcp6', 'utf8')
    const port = server.port.toString(16).toUpperCase().padStart(4, '0')
    const addresses = [...listening.matchAll(new RegExp(`^ *\\d+: ([0-9A-F]+):${port} \\S+ 0A`, 'gm'))].map(
      (match) => match[1],
    )
    expect(addresses).toEqual(['0100007F'])
  })

  test('sockets that say nothing do not keep others out', async () => {
    const server = await ideServer()
    const silent = Array.from({ length: 50 }, () => dial(server.port, '127.0.0.1').on('error', () => {}))
    await until('all of them', () => silent.every(({ readyState }) => readyState === 'open'))
    expect((await join_(server)).messages[0]).toHaveProperty('result')
    for (const socket of silent) socket.destroy()
  })
})
