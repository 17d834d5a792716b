import { describe, expect, it } from 'vitest'
import { ago, headline, hostsTried, listReport } from '../../extension/report.ts'
import type { Candidate } from '../../index.js'
import { candidate, cells, truncate } from './fakes.ts'

const other = candidate({ direct: false })
const silent = candidate({ verdict: 'not-answering' })
const silentElsewhere = candidate({ verdict: 'not-answering', direct: false })
const stale = candidate({ verdict: 'stale' })
const removed = candidate({ verdict: 'removed' })
const foreign = candidate({ verdict: 'foreign-host' })

describe('headline', () => {
  it.each<[string, Candidate[]]>([
    ['1 editor has this folder open.', [candidate()]],
    ['1 editor has this folder open.', [candidate(), other, silent, stale]],
    ['2 editors have this folder open.', [candidate(), candidate()]],
    ['No editor has this folder open; 1 is running for another folder.', [other, stale, foreign]],
    ['No editor has this folder open; 2 are running for other folders.', [other, other]],
    ['1 editor has this folder open but does not answer.', [silent]],
    ['2 editors have this folder open but do not answer.', [silent, silent]],
    ['1 editor has this folder open but does not answer; 1 is running for another folder.', [other, silent]],
    ['No editor has this folder open; 1 does not answer.', [silentElsewhere]],
    ['No editor can be used; each row says why.', [foreign, stale]],
    ['No editor was found; start one with a pi-x-ide plugin and open this folder in it.', []],
    ['No editor was found; start one with a pi-x-ide plugin and open this folder in it.', [stale, removed]],
  ])('%s', (sentence, candidates) => {
    expect(headline(candidates)).toBe(sentence)
  })
})

describe('listReport', () => {
  const row = (over: Partial<Candidate>, now = 10_000) =>
    listReport([candidate(over)], null, now, truncate)[1] ?? ''

  it('shows the file of what is no lock, which has no folder', () => {
    const checks: Candidate['checks'] = { parsed: 'malformed', pid: 'unusable', probes: [] }
    const none = { id: '/lock/x.lock', name: 'unknown', workspaceFolders: [], pid: 7, port: 9 }
    expect(row({ ...none, verdict: 'malformed', reason: 'is no lock', checks, lastActivity: 0 })).toBe(
      'unknown — /lock/x.lock — is no lock — parsed: malformed · pid 7: unusable · port 9: not asked · score 5',
    )
  })
  it('keeps what decided, however long or hostile the rest is', () => {
    const long = row({
      name: 'n'.repeat(900),
      workspaceFolder: `/${'f'.repeat(900)}`,
      reason: '\u001b\n'.repeat(99),
    })
    expect(cells(long)).toBeLessThanOrEqual(400)
    expect(long).toMatch(
      /^n{59}… — \/f+… — parsed: valid · pid: not checked · .* · score 5 · active just now$/,
    )
    expect(long).not.toMatch(/\p{Cc}/u)
  })
})

describe('hostsTried', () => {
  it('keeps the order, and brackets an IPv6 address', () => {
    const probes: Candidate['checks']['probes'] = [
      { host: '::1', outcome: 'timeout' },
      { host: '172.20.0.1', outcome: 'reachable' },
    ]
    const checks: Candidate['checks'] = { parsed: 'valid', pid: 'alive', probes }
    expect(hostsTried(candidate({ port: 80, checks }))).toBe('[::1]:80: timeout, 172.20.0.1:80: reachable')
  })
})

describe('ago', () => {
  const minute = 60_000
  it.each([
    [-5000, 'just now'],
    [0, 'just now'],
    [minute - 1, 'just now'],
    [minute, '1 minute ago'],
    [59 * minute, '59 minutes ago'],
    [60 * minute, '1 hour ago'],
    [47 * 60 * minute, '1 day ago'],
    [48 * 60 * minute, '2 days ago'],
  ])('%i ms: %s', (ms, words) => {
    expect(ago(ms)).toBe(words)
  })
})
