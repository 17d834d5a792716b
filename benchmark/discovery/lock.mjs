/** A lock of version 1, its members checked as `discover` checks them; undefined for anything else. */
export function parseLock(text) {
  const lock = JSON.parse(text)
  const { version, ide, name, transport, host, port, authToken, workspaceFolders, pid, focusedAt } = lock
  if (version !== 1 || transport !== 'ws') return undefined
  if (typeof ide !== 'string' || ide === '' || typeof host !== 'string') return undefined
  if (!Number.isInteger(port) || port < 1 || port > 65_535 || typeof authToken !== 'string') return undefined
  if (!Array.isArray(workspaceFolders) || !workspaceFolders.every((one) => typeof one === 'string')) {
    return undefined
  }
  return {
    ide,
    name: name ?? ide,
    host: host || '127.0.0.1',
    port,
    workspaceFolders,
    pid: Number.isSafeInteger(pid) && pid > 0 ? pid : undefined,
    focusedAt: typeof focusedAt === 'number' ? focusedAt : undefined,
  }
}
