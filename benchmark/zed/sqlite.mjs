// Following Zed as a bridge in JavaScript does: three fresh read-only opens per poll on the JavaScript thread, a join over
// four tables, offsets walked with an encoder call per code point.
import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'

const encoder = new TextEncoder()

const ACTIVE = `
  SELECT i.item_id, i.workspace_id, w.paths, w.timestamp, e.buffer_path, e.contents
  FROM items i
  JOIN panes p ON i.pane_id = p.pane_id AND i.workspace_id = p.workspace_id
  JOIN workspaces w ON i.workspace_id = w.workspace_id
  LEFT JOIN editors e ON i.item_id = e.item_id AND i.workspace_id = e.workspace_id
  WHERE i.kind = 'Editor' AND i.active = 1 AND p.active = 1`

export function follow({ cwd, db }) {
  const query = (sql, ...parameters) => {
    const connection = new DatabaseSync(db, { readOnly: true })
    try {
      return connection.prepare(sql).all(...parameters)
    } finally {
      connection.close()
    }
  }

  function poll() {
    const editors = query(ACTIVE).filter(({ paths }) =>
      paths?.split('\n').some((path) => contains(path, cwd)),
    )
    editors.sort((a, b) => b.paths.length - a.paths.length || b.timestamp.localeCompare(a.timestamp))
    const [editor] = editors
    if (!editor) return undefined
    const [selection] = query(
      'SELECT start, end FROM editor_selections WHERE editor_id = ? AND workspace_id = ?',
      editor.item_id,
      editor.workspace_id,
    )
    const [dirty] = query(
      'SELECT contents FROM editors WHERE item_id = ? AND workspace_id = ?',
      editor.item_id,
      editor.workspace_id,
    )
    const text = dirty?.contents ?? readFileSync(editor.buffer_path, 'utf8')
    return selection && map(text, selection.start, selection.end).text
  }

  return {
    rest: async () => {},
    changed: async () => poll(),
    async unchanged(rounds) {
      for (let round = 0; round < rounds; round++) poll()
      return rounds
    },
    async mapping({ big }) {
      const text = readFileSync(big.path, 'utf8')
      const { start, end, text: expected } = big.selections[0]
      const from = performance.now()
      const mapped = map(text, start, end)
      const took = performance.now() - from
      if (mapped.text !== expected) throw new Error(JSON.stringify(mapped))
      return took
    },
  }
}

const contains = (folder, path) => path === folder || path.startsWith(`${folder}/`)

function map(text, start, end) {
  let [bytes, line, character, at] = [0, 0, 0, 0]
  let from
  for (const letter of text) {
    if (bytes >= start && !from) from = { line, character, at }
    if (bytes >= end) break
    bytes += encoder.encode(letter).length
    at += letter.length
    if (letter === '\n') [line, character] = [line + 1, 0]
    else character += letter.length
  }
  from ??= { line, character, at }
  return { start: from, end: { line, character }, text: text.slice(from.at, at) }
}
