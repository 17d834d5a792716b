import { loadAddon } from '../lib/addon.mjs'

const { discover } = loadAddon()

/** The dead locks stay, for the next round. */
export const find = (cwd, { lockDir }) => discover(cwd, { lockDir, cleanUp: false })
