import { createRequire } from 'node:module'

/** The package as a user gets it: index.js, its loader, the native library. */
export const loadAddon = () => createRequire(import.meta.url)('../../index.js')
