import { test as base } from 'vitest'
import { Box, type BoxOptions } from './box.ts'
import type { Host } from './hosts.ts'

/** How long one test may take. Long, since several real pi processes share the machine; a hang is found by the steps' own deadlines. */
export const TEST_MS = 150_000

/** Makes a box that lives as long as the test. */
export type MakeBox = (host: Host, options?: BoxOptions) => Promise<Box>

/** `test` of vitest with a maker of boxes that closes them when the test is over. */
export const test = base.extend<{ box: MakeBox }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures that a fixture needs from this pattern
  box: async ({}, use) => {
    const boxes: Box[] = []
    await use(async (host, options) => {
      const box = await Box.create(host, options)
      boxes.push(box)
      return box
    })
    for (const box of boxes.reverse()) await box.close()
  },
})
