// What the server sends. Every message is a `selection_changed`; its first line number is the message's number.

/** `rate` in messages a second, as fast as the client takes them where there is none; `stalls` blocks the client's thread. */
export const scenarios = [
  { name: 'burst', text: 'short', count: 20_000, rounds: 9 },
  { name: 'burst, 4 KB ASCII', text: 'ascii', count: 5_000, rounds: 7 },
  { name: 'burst, 4 KB non-ASCII', text: 'nonAscii', count: 5_000, rounds: 7 },
  { name: '1 kHz', text: 'short', count: 1_000, rate: 1_000, rounds: 7 },
  { name: '1 kHz, 4 KB ASCII', text: 'ascii', count: 1_000, rate: 1_000, rounds: 7 },
  { name: '1 kHz, 4 KB non-ASCII', text: 'nonAscii', count: 1_000, rate: 1_000, rounds: 7 },
  { name: '60 Hz', text: 'short', count: 100, rate: 60, rounds: 5 },
  {
    name: 'stalled, 4 KB non-ASCII',
    text: 'nonAscii',
    count: 8_000,
    rate: 4_000,
    rounds: 3,
    stalls: { blockMs: 200, freeMs: 50 },
  },
]

const CODE = `export function total(items: readonly Item[], rate = 0.19): number {
\tconst net = items.reduce((sum, item) => sum + item.price * item.count, 0)
\tif (!Number.isFinite(net)) throw new RangeError("a price is no number")
\treturn Math.round(net * (1 + rate) * 100) / 100
}
`

const PROSE = `/** 合計を計算する 🧮 — «Summe der Preise»,税込み。 */
const größe = "幅 × 高さ\\n";\t// naïve café: \\"引用符\\" と 改行 😀
`

/** Texts of about 80 bytes and of 4 KB in UTF-8, with the escapes that code needs in JSON. */
const TEXTS = {
  short: CODE.slice(0, 75),
  ascii: filled(CODE, 4_096),
  nonAscii: filled(PROSE, 4_096),
}

function filled(piece, bytes) {
  let text = ''
  while (Buffer.byteLength(text + piece) <= bytes) text += piece
  return text + 'x'.repeat(bytes - Buffer.byteLength(text))
}

export function selectionMessage(text, line, receivedAt) {
  const params = {
    source: 'vscode',
    filePath: '/bench/project/src/invoice/total.ts',
    workspaceFolder: '/bench/project',
    ranges: [
      {
        text: TEXTS[text],
        selection: { start: { line, character: 0 }, end: { line: line + 5, character: 1 } },
      },
    ],
    receivedAt,
  }
  return JSON.stringify({ jsonrpc: '2.0', method: 'selection_changed', params })
}

/** Ends a round: it is no state, so no client may leave it out. */
export function endMessage() {
  const params = { source: 'vscode', filePath: '/bench/end', ranges: [], rangeText: '' }
  return JSON.stringify({ jsonrpc: '2.0', method: 'at_mentioned', params })
}
