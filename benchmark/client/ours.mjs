import { loadAddon } from '../lib/addon.mjs'

/** Returns what closes the connection. */
export async function connect({ lockDir, folder }, { onSelection, onMention }) {
  const { discover, connect } = loadAddon()
  const [candidate] = await discover(folder, { lockDir })
  const connection = await connect(candidate, { cwd: folder })
  connection.onEvent((event) => {
    if (event.type === 'selection') onSelection(event.snapshot)
    else if (event.type === 'mention') onMention()
  })
  return () => connection.close()
}
