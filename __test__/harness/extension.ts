import { expect } from 'vitest'
import type { Box } from './box.ts'
import { SELECTED_TEXT } from './editor.ts'
import { REPO } from './hosts.ts'

/** Arguments that load the extension of this checkout, as a package with its manifest. */
export const CHECKOUT = ['-e', REPO]

/** What print mode needs so that the bridge works there. */
export const IN_PRINT = { PI_X_IDE_PRINT: '1' }

/** The block that the model gets for one file. */
export const block = (file: string, selection?: string, ide = 'vscode'): string =>
  [
    `### IDE Context`,
    `- **IDE**: ${ide}`,
    `- **File**: \`${file}\``,
    ...(selection ? [`- **Selection**: ${selection}`] : []),
  ].join('\n')

/** The model's latest request holds exactly these blocks, in this order, nothing else of ours, and none of the selected text. */
export function expectBlocks(box: Box, ...blocks: string[]): void {
  const { messages } = box.model.last
  const ours = messages.filter(({ text }) => text.includes('IDE Context'))
  expect(ours).toEqual(blocks.map((text) => ({ role: 'user', text })))
  expect(messages.map(({ text }) => text).join('\n')).not.toContain(SELECTED_TEXT.trim())
}
