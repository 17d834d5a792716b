import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { SnapshotInput } from '../../index.d.ts'
import * as addon from '../../index.js'
import { formatContext, formatMention, truncateToWidth } from '../../index.js'
import { snapshot } from './fake-editor.ts'
import { CWD, thrown } from './support.ts'

interface Case<Input, Expect> {
  name: string
  input: Input & { env?: { os: string; wslDistro?: string } }
  expect: Expect
}

interface OfSnapshot {
  cwd: string
  snapshot: SnapshotInput | null
}

/** The cases of an area that are about a plain Linux, which is where these tests run. */
function vectors<Input, Expect>(area: string): Case<Input, Expect>[] {
  const { cases } = JSON.parse(readFileSync(new URL(`../../vectors/${area}.json`, import.meta.url), 'utf8'))
  return cases.filter(
    ({ input: { env } }: Case<Input, Expect>) => !env || (env.os === 'linux' && !env.wslDistro),
  )
}

describe.skipIf(process.platform !== 'linux')('vectors', () => {
  const areas = {
    mention: vectors<OfSnapshot, string[]>('mention'),
    'context-block': vectors<OfSnapshot, string | null>('context-block'),
    width: vectors<{ text: string; width: number }, { line: string; width: number }>('width'),
  }

  test('there are some of each area', () => {
    for (const [area, cases] of Object.entries(areas)) expect(cases.length, area).toBeGreaterThan(5)
  })

  test.each(areas.mention)('mention: $name', ({ input, expect: wanted }) => {
    expect(formatMention(input.snapshot as SnapshotInput, input.cwd)).toEqual(wanted)
  })

  test.each(areas['context-block'])('context-block: $name', ({ input, expect: wanted }) => {
    expect(formatContext(input.snapshot, input.cwd)).toBe(wanted)
  })

  test.each(areas.width)('width: $name', ({ input, expect: wanted }) => {
    expect(truncateToWidth(input.text, input.width)).toBe(wanted.line)
  })
})

describe('positions from JavaScript', () => {
  const at = (line: unknown, character: unknown = 0) =>
    ({
      filePath: `${CWD}/a.ts`,
      ranges: [{ text: '', selection: { start: { line: 0, character: 0 }, end: { line, character } } }],
    }) as SnapshotInput

  test('whole numbers from 0 to 2^32 - 1 count', () => {
    expect(formatMention(at(0), CWD)).toEqual(['@a.ts#L1'])
    expect(formatMention(at(-0, -0), CWD)).toEqual(['@a.ts#L1'])
    expect(formatMention(at(2 ** 32 - 2, 1), CWD)).toEqual(['@a.ts#L1-L4294967295'])
    expect(formatMention(at(2 ** 32 - 1, 2 ** 32 - 1), CWD)[0]).toMatch(/^@a\.ts#L1-L4294967\d{3}$/)
  })

  test.each([
    -1,
    0.5,
    2 ** 32,
    2 ** 53,
    1e300,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
  ])('%d is refused', (n) => {
    for (const bad of [at(n), at(1, n)]) {
      for (const call of [() => formatMention(bad, CWD), () => formatContext(bad, CWD)]) {
        const error = thrown(call)
        expect(error).toBeInstanceOf(Error)
        expect(error.code).toBe('PIX_INVALID_ARGUMENT')
        expect(error.message).toMatch(/line|character/)
      }
    }
  })

  test('an end before its start does no harm', () => {
    const backwards = snapshot(`${CWD}/a.ts`, 9, 2)
    expect(formatMention(backwards, CWD)).toEqual(['@a.ts#L9'])
  })
})

describe('bad arguments', () => {
  const good = snapshot(`${CWD}/a.ts`, 1)

  test('an empty path is refused', () => {
    expect(thrown(() => formatMention({ filePath: '', ranges: [] }, CWD)).code).toBe('PIX_INVALID_ARGUMENT')
    expect(thrown(() => formatContext({ filePath: '', ranges: [] }, CWD)).code).toBe('PIX_INVALID_ARGUMENT')
  })

  test('no snapshot has no block', () => {
    expect([formatContext(null, CWD), formatContext(undefined, CWD)]).toEqual([null, null])
  })

  const bad: [name: string, snapshot: unknown, cwd: unknown][] = [
    ['nothing', undefined, undefined],
    ['a number', 5, CWD],
    ['text', 'x', CWD],
    ['a list', [], CWD],
    ['an empty object', {}, CWD],
    ['a path that is a number', { ...good, filePath: 5 }, CWD],
    ['no ranges', { filePath: '/a' }, CWD],
    ['ranges that are no list', { filePath: '/a', ranges: { length: 1 } }, CWD],
    ['a range that is null', { filePath: '/a', ranges: [null] }, CWD],
    ['a range without a selection', { filePath: '/a', ranges: [{ text: '' }] }, CWD],
    [
      'a line that is text',
      {
        filePath: '/a',
        ranges: [
          { text: '', selection: { start: { line: '1', character: 0 }, end: { line: 1, character: 0 } } },
        ],
      },
      CWD,
    ],
    ['a source that is an object', { ...good, source: {} }, CWD],
    ['no folder', good, undefined],
    ['a folder that is a number', good, 5],
    ['a folder that is a symbol', good, Symbol('x')],
    [
      'a proxy that throws',
      new Proxy(
        {},
        {
          get: () => {
            throw new TypeError('trapped')
          },
        },
      ),
      CWD,
    ],
  ]

  test.each(bad)('%s is refused, without a crash', (_, value, cwd) => {
    for (const call of [formatMention, formatContext] as ((value: unknown, cwd: unknown) => unknown)[]) {
      if (call === formatContext && value === undefined) continue
      expect(thrown(() => call(value, cwd))).toBeInstanceOf(Error)
    }
  })

  test('a getter is called no more than it takes, and what it throws comes through', () => {
    const trapped = new RangeError('trapped')
    const value = {
      get filePath() {
        throw trapped
      },
      ranges: [],
    }
    expect(thrown(() => formatMention(value as never, CWD))).toBe(trapped)
  })

  test('a folder that is not absolute just contains nothing', () => {
    for (const cwd of ['', '.', 'w/app', '/', '\u0000']) expect(formatMention(good, cwd)).toHaveLength(1)
    expect(formatMention(good, '')).toEqual([`@${CWD}/a.ts#L1`])
  })

  test('long and odd text is no problem', () => {
    const long = `${CWD}/${'x'.repeat(1_000_000)}`
    expect(formatMention({ filePath: long, ranges: [] }, CWD)[0]).toHaveLength(1_000_001)
    const ranges = Array(20_000).fill(good.ranges[0])
    expect(formatMention({ filePath: long.slice(0, 50), ranges }, CWD)).toHaveLength(20_000)
    for (const path of [
      '\u0000',
      '\ud800',
      '\u202e/x',
      '//',
      '/',
      '/..',
      '/a/./../../b',
      'C:\\x\\y',
      '\\\\server\\share\\x',
      'file:///%',
      '~/x',
    ]) {
      expect(formatMention({ filePath: path, ranges: [] }, CWD)).toHaveLength(1)
      expect(formatContext({ filePath: path, ranges: [] }, CWD)?.split('\n')).toHaveLength(3)
    }
  })
})

describe('truncateToWidth', () => {
  test.each([Number.NaN, -1, -0.1, Number.NEGATIVE_INFINITY])('a width of %d is refused', (width) => {
    const error = thrown(() => truncateToWidth('text', width))
    expect(error.code).toBe('PIX_INVALID_ARGUMENT')
    expect(error.message).toContain('width')
  })

  test('any other width will do', () => {
    for (const width of [4, 4.9, 1e10, 2 ** 53, 1e308, Number.MAX_VALUE, Number.POSITIVE_INFINITY])
      expect(truncateToWidth('text', width), String(width)).toBe('text')
    for (const width of [0, -0, 0.5, Number.MIN_VALUE])
      expect(truncateToWidth('text', width), String(width)).toBe('')
    expect(truncateToWidth('text', 1.9)).toBe('…')
  })

  test.each([undefined, null, '4', {}, [], true, 4n, Symbol('x')])('%s is no width', (width) => {
    expect(() => truncateToWidth('text', width as unknown as number)).toThrow()
  })

  test.each([undefined, null, 4, {}, Symbol('x')])('%s is no text', (text) => {
    expect(() => truncateToWidth(text as unknown as string, 4)).toThrow()
  })

  test('a result is never too wide, and nothing that could move the cursor is left', () => {
    const texts = [
      '\u001b[2J\u0007x',
      'a\nb\r\tc',
      '\u202eevil\u2066',
      '👨‍👩‍👧‍👦🇩🇪',
      'e\u0301'.repeat(50),
      '한국어'.repeat(20),
      '\ud83d',
      'x'.repeat(100_000),
    ]
    for (const text of texts) {
      for (const width of [0, 1, 2, 3, 10, 1000]) {
        const line = truncateToWidth(text, width)
        // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
        expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/)
        expect([...new Intl.Segmenter().segment(line)].length).toBeLessThanOrEqual(width)
      }
    }
  })

  test('a width of 0 gives an empty line, whatever the text', () => {
    for (const text of ['', 'x', '\u0301', '\u200d', '\u0000', '…'])
      expect(truncateToWidth(text, 0), JSON.stringify(text)).toBe('')
  })

  test('cutting twice is the same as once', () => {
    for (let width = 0; width < 12; width++) {
      const once = truncateToWidth('⧉ ⇡ 项目说明.ts#L10-L20', width)
      expect(truncateToWidth(once, width)).toBe(once)
    }
  })
})

describe('the exports', () => {
  test('are those of the types, and no more', () => {
    const types = readFileSync(new URL('../../index.d.ts', import.meta.url), 'utf8')
    const declared = [...types.matchAll(/^export declare (?:function|class) (\w+)/gm)].map(
      (match) => match[1],
    )
    expect(
      Object.keys(addon)
        .filter((name) => name !== 'default')
        .sort(),
    ).toEqual(declared.sort())
  })

  test('the version is that of the package', () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    expect(addon.version()).toBe(version)
  })

  test('classes are made by the addon alone, and methods want their own kind', async () => {
    for (const Class of [addon.Connection, addon.IdeServer] as unknown as (new () => object)[]) {
      expect(() => new Class()).toThrow()
      for (const [name, { value, get }] of Object.entries(
        Object.getOwnPropertyDescriptors(Class.prototype),
      )) {
        const call = get ?? value
        if (name === 'constructor' || typeof call !== 'function') continue
        for (const self of [undefined, {}, Class.prototype, [], 5])
          expect(() => call.call(self, {}), `${name} of ${String(self)}`).toThrow()
      }
    }
  })
})
