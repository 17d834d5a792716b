import { describe, expect, it } from 'vitest'
import { contextMessage, createContextRenderer, lastInjectedHash } from '../../extension/context-message.ts'
import { roughTruncate } from '../../extension/fit.ts'
import type { CustomMessage } from '../../extension/host.ts'
import { cells, plain, prepared, theme, truncate } from './fakes.ts'

const custom = (details?: unknown, customType = 'pi-x-ide/context') => ({
  type: 'custom_message',
  id: 'x',
  parentId: null,
  timestamp: '2026-01-01T00:00:00.000Z',
  customType,
  content: 'text',
  display: true,
  details,
})
const user = { type: 'message', id: 'u', parentId: null, message: { role: 'user', content: 'hi' } }
/** Entries that only 1.6.0 writes. */
const newer = [
  { type: 'usage', kind: 'cache_warm' },
  { type: 'context_edit', targetId: 'x', replacement: null },
  { type: 'compaction', details: { hash: 'not ours' } },
]

describe('lastInjectedHash', () => {
  it('is that of the last message of ours on the branch', () => {
    const branch = [user, custom({ hash: 'one' }), user, custom({ hash: 'two' }), user, ...newer]
    expect(lastInjectedHash(branch)).toBe('two')
  })
  it('looks at no message of another kind', () => {
    const branch = [custom({ hash: 'one' }), custom({ hash: 'x' }, 'pi-ide-context')]
    expect(lastInjectedHash([...branch, { type: 'custom', customType: 'pi-x-ide/context' }])).toBe('one')
  })
  it.each([[[]], [[user]], [[custom()]], [[custom(null)]], [[custom({ hash: 7 })]], [[custom('hash')]]])(
    'is none for %j',
    (branch) => expect(lastInjectedHash(branch)).toBeUndefined(),
  )
})

it('contextMessage carries the block as it is and the facts beside it', () => {
  const { message } = contextMessage(prepared())
  expect(message.content).toBe(prepared().content)
  expect(message.customType).toBe('pi-x-ide/context')
  expect(message.display).toBe(true)
  expect(message.details).toMatchObject({ hash: 'h1', source: 'vscode', displayPath: 'src/foo.ts' })
})

describe('the renderer', () => {
  const render = (message: CustomMessage, expanded: boolean, width: number, cut = truncate) => {
    const renderer = createContextRenderer({ truncate: () => cut, icon: () => '⧉' })
    return renderer(message, { expanded }, theme)?.render(width) ?? []
  }
  const ours = contextMessage(prepared()).message

  it('names editor, file and lines in one line, without a heading', () => {
    expect(render(ours, false, 80)).toEqual(['<customMessageLabel> ⧉ vscode · src/foo.ts L10-L20</>'])
  })
  it('shows the whole block when expanded', () => {
    const lines = render(ours, true, 80).map(plain)
    expect(lines.slice(1)).toEqual(ours.content.split('\n').map((line) => ` ${line}`))
  })

  const foreign: CustomMessage[] = [
    ours,
    { content: '', details: undefined },
    { content: 'a block\nof an older session' },
    {
      content: [
        { type: 'text', text: '### IDE Context\n- **File**: `项目\u001b[31m.ts`' },
        { type: 'image' },
      ],
    },
    { content: 'x', details: { displayPath: 7, ranges: 'no', rangeLabels: [1, null, 'L3'] } },
    { content: 'x', details: { filePath: '/a\nb/👨‍👩‍👧‍👦🇩🇪.ts', rangeLabels: {} } },
    { content: 'x', details: ['an', 'array'] },
    { content: null as unknown as string, details: null },
    { content: [null, 1] as unknown as string },
  ]
  it.each(foreign)('is safe at every width: %j', (message) => {
    for (const cut of [truncate, roughTruncate]) {
      for (const expanded of [false, true]) {
        for (let width = 0; width <= 200; width += 1) {
          const lines = render(message, expanded, width, cut)
          expect(lines.length).toBeGreaterThan(0)
          for (const line of lines) {
            expect(cells(plain(line))).toBeLessThanOrEqual(width)
            expect(line).not.toMatch(/\p{Cc}/u)
          }
        }
      }
    }
  })
  it('falls back to the first line of the block', () => {
    expect(render({ content: '### IDE Context\n- **File**: `a.ts`' }, false, 80).map(plain)).toEqual([
      ' ⧉ - **File**: `a.ts`',
    ])
  })
})
