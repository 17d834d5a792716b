// Folders against the asked one, by components: `/work/app` does not contain `/work/application`.
import { isAbsolute, resolve, sep } from 'node:path'

/** A folder that contains the asked one beats every folder inside it. */
const DIRECT = 10_000

export function components(folder) {
  const path = resolve(folder)
  return { path, parts: path.split(sep).filter(Boolean) }
}

/** The folder that fits best, the first one on a tie; no root, which would claim every project. */
export function best(folders, asked) {
  let found = { matchLength: 0, direct: false }
  for (const folder of folders.filter(isAbsolute).map(components)) {
    const match = matchOf(folder, asked)
    if (match.matchLength > found.matchLength) found = { ...match, folder: folder.path }
  }
  return found
}

function matchOf(folder, asked) {
  if (folder.parts.length === 0) return { matchLength: 0, direct: false }
  if (contains(folder, asked)) return { matchLength: DIRECT + folder.path.length, direct: true }
  return { matchLength: contains(asked, folder) ? asked.path.length : 0, direct: false }
}

const contains = ({ parts }, inner) => parts.every((part, i) => part === inner.parts[i])
