import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { fitLine, printable, roughTruncate, shortenMiddle } from '../../extension/fit.ts'
import { cells, graphemes, truncate } from './fakes.ts'

const NAMES = [
  'main.ts',
  'a-rather-long-component-name.stories.tsx',
  'no_extension_at_all_but_quite_long_indeed',
  '项目说明文档与更多说明.md',
  '한국어파일이름입니다.ts',
  '🇩🇪🇫🇷🇯🇵🇧🇷-flags.txt',
  '👨‍👩‍👧‍👦👩🏽‍💻-family.ts',
  'e\u0301e\u0301e\u0301-combining.ts',
  '✅⭐️❤️-emoji.test.ts',
  '.gitignore',
  '.a-hidden-file-with-one-dot-only-and-long',
  'evil\u001b[31m\u202e\nname.ts',
  '',
]
const widths = Array.from({ length: 201 }, (_, width) => width)

describe.each([
  { name: 'exact', cut: truncate },
  { name: 'rough', cut: roughTruncate },
])('fitLine ($name)', ({ cut }) => {
  it.each(NAMES)('never exceeds the width, nor splits a grapheme: %j', (name) => {
    for (const ellipsis of ['…', '...']) {
      for (const width of widths) {
        const line = fitLine({ prefix: '⧉ ⇡ ', name, suffix: '#L10-L20' }, width, cut, ellipsis)
        expect(cells(line)).toBeLessThanOrEqual(width)
        expect(line).not.toMatch(/\p{Cc}|\u202e/u)
        const known = new Set([...graphemes(cut(`⧉ ⇡ ${name}#L10-L20`, 10_000)), '…', '.'])
        expect(graphemes(line).filter((cluster) => !known.has(cluster))).toEqual([])
      }
    }
  })
})

describe('fitLine', () => {
  const parts = { prefix: '⧉ ⇡ ', name: 'a-rather-long-component-name.stories.tsx', suffix: '#L10-L20' }

  it('leaves a line that fits alone', () => {
    expect(fitLine(parts, 52, truncate)).toBe('⧉ ⇡ a-rather-long-component-name.stories.tsx#L10-L20')
  })
  it('shortens the name in its middle first and keeps mark, extension and lines', () => {
    expect(fitLine(parts, 51, truncate)).toMatch(/^⧉ ⇡ a-rather.*….*\.stories\.tsx#L10-L20$/)
    expect(fitLine(parts, 24, truncate)).toBe('⧉ ⇡ a-rath…s.tsx#L10-L20')
  })
  it('cuts at the end when even that is too wide', () => {
    expect(fitLine(parts, 12, truncate)).toBe('⧉ ⇡ a-…sx#L…')
  })
  it('shows nothing where nothing is readable', () => {
    for (const width of [0, 1, 2, 3, -5, Number.NaN]) expect(fitLine(parts, width, truncate)).toBe('')
  })
  it('escapes control and bidi characters', () => {
    const line = fitLine({ prefix: '', name: 'a\u001b]0;x\u0007\u202eb\nc', suffix: '' }, 80, truncate)
    expect(line).toBe('a\\u{1b}]0;x\\u{7}\\u{202e}b\\u{a}c')
  })
})

describe('shortenMiddle', () => {
  it('prefers the file extension to half of the room', () => {
    expect(shortenMiddle('component.d.ts', 6, truncate)).toBe('co….ts')
    expect(shortenMiddle('a.verylongextension', 8, truncate)).toBe('a.ve…ion')
  })
  it('does not take a leading dot for an extension', () => {
    expect(shortenMiddle('.gitignore', 7, truncate)).toBe('.gi…ore')
  })
})

describe('roughTruncate', () => {
  const file = new URL('../../vectors/width.json', import.meta.url)
  const { cases } = JSON.parse(readFileSync(file, 'utf8')) as {
    cases: { name: string; input: { text: string; width: number } }[]
  }

  it.each(cases)('never exceeds the width: $name', ({ input }) => {
    expect(cells(roughTruncate(input.text, input.width))).toBeLessThanOrEqual(input.width)
  })
})

describe('printable', () => {
  it('keeps the line breaks of a message and nothing else that steers a terminal', () => {
    expect(printable('one\ntwo\u001b[2J', truncate)).toBe('one\ntwo\\u{1b}[2J')
  })
})
