import { describe, expect, it } from 'vitest'
import { type DoctorFacts, doctorLines, redact, reportLines } from '../../extension/doctor.ts'
import type { Candidate, Connection } from '../../index.js'
import { candidate, diagnosis, FakeConnection } from './fakes.ts'

const connection = (over: Partial<FakeConnection> = {}) =>
  Object.assign(new FakeConnection(), over) as unknown as Connection

const facts = (over: Partial<DoctorFacts> = {}): DoctorFacts => ({
  runtime: { node: 'v20.1.0', platform: 'linux-x64' },
  diagnosis: diagnosis(),
  failure: null,
  connection: connection(),
  reason: null,
  problem: null,
  config: { problems: [], share: 'full' },
  homes: ['/home/alice'],
  ...over,
})

const at = (hour: number, minute: number, second: number) =>
  new Date(2030, 0, 1, hour, minute, second).getTime()

describe('doctorLines', () => {
  it('tells of a configuration that lets nothing go along, also while connected', () => {
    const broken = facts({ config: { problems: ['config.json: line 1 is no JSON'], share: 'off' } })
    expect(doctorLines(broken).join('\n')).toContain('Mend the configuration')
    expect(doctorLines(broken).join('\n')).toContain('line 1 is no JSON')
    const off = doctorLines(facts({ config: { problems: [], share: 'off' } })).join('\n')
    expect(off).toContain('nothing goes along')
    expect(off).not.toContain('Nothing to do')
  })

  it('has nothing to say of a healthy link but that', () => {
    expect(doctorLines(facts())).toEqual([
      'pi-x-ide 0.1.0 · linux-x64 · Node v20.1.0',
      'Connection: VS Code (connected)',
      'Lock folders:',
      '  /home/alice/lock — 1 lock · not watched',
      'Locks:',
      '  * VS Code — usable · port: not asked',
      'Nothing to do.',
    ])
  })
  it('tells of WSL, of overrides, of each folder and its watcher, of hosts, log and advice', () => {
    const checks: Candidate['checks'] = {
      parsed: 'valid',
      pid: 'not-checked',
      probes: [
        { host: '127.0.0.1', outcome: 'refused' },
        { host: '172.20.0.1', outcome: 'timeout' },
      ],
    }
    const reason = 'nothing answers at its port'
    const silent = candidate({ id: 'b', name: 'Zed', port: 4711, verdict: 'not-answering', reason, checks })
    const bad = { id: '/mnt/c/x/bad.lock', verdict: 'malformed', reason: 'is no lock' } as const
    const malformed = candidate({ ...bad, checks: { ...checks, parsed: 'malformed', probes: [] } })
    const watched: ReturnType<Connection['watching']> = [
      { path: '/mnt/c/x', kind: 'polling', reason: 'a Windows drive tells nothing' },
      { path: '/home/alice/lock', kind: 'events' },
    ]
    const logged = [{ time: at(9, 5, 7), message: 'the watcher was started again' }]
    const lines = doctorLines(
      facts({
        diagnosis: diagnosis({
          wsl: { distro: 'Ubuntu', automountRoot: '/mnt/', networking: 'nat', gateway: '172.20.0.1' },
          hostOverride: '10.0.0.5',
          pidCheck: false,
          folders: [
            { path: '/home/alice/lock', windows: false, locks: 0 },
            { path: '/mnt/c/x', windows: true, locks: 2, problem: 'others may write to it' },
          ],
          candidates: [silent, malformed],
          advice: ['Allow it in the firewall.', 'Or switch to mirrored networking.'],
        }),
        connection: connection({ state: 'waiting', message: 'Zed does not answer', watched, logged }),
      }),
    )
    expect(lines).toEqual([
      'pi-x-ide 0.1.0 · linux-x64 · Node v20.1.0',
      'Connection: VS Code (not reachable, trying again)',
      'Reason: Zed does not answer',
      'WSL: Ubuntu · networking nat, gateway 172.20.0.1 · Windows drives under /mnt/',
      'Host override: 10.0.0.5',
      'Process check: off',
      'Lock folders:',
      '  /mnt/c/x — Windows · 2 locks · watched by polling (a Windows drive tells nothing) · problem: others may write to it',
      '  /home/alice/lock — 0 locks · watched by events',
      'Locks:',
      `  Zed — not-answering: ${reason} · 127.0.0.1:4711: refused, 172.20.0.1:4711: timeout`,
      '  bad.lock — malformed: is no lock · port: not asked',
      'Log:',
      '  09:05:07 the watcher was started again',
      'What to do:',
      '  Allow it in the firewall.',
      '  Or switch to mirrored networking.',
    ])
  })
  it('stays on one screen, with the newest of the log and a hint to the rest of the locks', () => {
    const many = <T>(make: (index: number) => T) => Array.from({ length: 30 }, (_, index) => make(index))
    const candidates = many((index) => candidate({ id: `${index}`, name: `Editor ${index}` }))
    const logged = many((index) => ({ time: at(1, 2, index), message: `trouble ${index}` }))
    const folder = (index: number) => ({ path: `/f${index}`, windows: true, locks: index === 29 ? 1 : 0 })

    const few = doctorLines(facts({ diagnosis: diagnosis({ candidates }) }))
    expect(few.filter((line) => line.includes('Editor'))).toHaveLength(8)
    expect(few).toContain('  … 22 more, see /ide list')

    const full = doctorLines(
      facts({
        diagnosis: diagnosis({ candidates, folders: many(folder), advice: ['Do this.'] }),
        connection: connection({ logged }),
      }),
    )
    expect(full.length).toBeLessThanOrEqual(24)
    expect(full.filter((line) => line.includes('trouble'))).toEqual(
      [25, 26, 27, 28, 29].map((index) => `  01:02:${index} trouble ${index}`),
    )
    expect(full).toContain('  /f29 — Windows · 1 lock · not watched')
    expect(full).toContain('  … 24 more')
    expect(full).toContain('  Editor 2 — usable · port: not asked')
  })
  it('names a WSL that does not know its name', () => {
    const wsl = { distro: '', automountRoot: '/mnt/', networking: 'mirrored' } as const
    expect(doctorLines(facts({ diagnosis: diagnosis({ wsl }) }))[2]).toBe(
      'WSL: unknown distribution · networking mirrored · Windows drives under /mnt/',
    )
  })
  it('says when there is nothing to look at', () => {
    const lines = doctorLines(
      facts({ diagnosis: diagnosis({ folders: [], candidates: [] }), connection: null }),
    )
    expect(lines.slice(1)).toEqual([
      'Connection: none',
      'Lock folders:',
      '  none',
      'Locks:',
      '  none',
      'What to do:',
      '  Nothing is known to be wrong; if it stays so, file a bug with /ide report.',
    ])
  })
  it('does not say that there is nothing to do while something is wrong', () => {
    const todo = (over: Partial<DoctorFacts>) => doctorLines(facts(over)).slice(-2)
    const reasons = ['What to do:', '  See the reason above.']
    expect(todo({ connection: null, problem: 'no runtime' })).toEqual(reasons)
    expect(todo({ connection: connection({ state: 'waiting', message: 'no answer' }) })).toEqual(reasons)
    expect(todo({ diagnosis: null, failure: 'it broke' })).toEqual(reasons)
    expect(todo({ connection: null, reason: 'Switched off.' })).toEqual(reasons)
  })
})

describe('reportLines', () => {
  it('says first that it was redacted, and does not spoil what says nothing', () => {
    const [first, ...lines] = reportLines(facts())
    expect(first).toContain('redacted')
    expect(lines).toEqual(doctorLines(facts()).map((line) => line.replace('/home/alice', '~')))
  })
})

describe('redact', () => {
  const ALICE = ['/home/alice']
  const WINDOWS = ['C:\\Users\\Alice']
  it.each<[string, string, string[], string]>([
    ['a folder in it', '/home/alice/x', ALICE, '~/x'],
    ['the folder itself, in a sentence', 'see /home/alice. "/home/alice"', ALICE, 'see ~. "~"'],
    ['a URL', 'file:///home/alice/x', ALICE, 'file://~/x'],
    ['a list', '/home/alice:/home/alice', ALICE, '~:~'],
    ['the user name', 'mail from alice', ALICE, 'mail from user'],
    ['the user name in other folders', '/tmp/alice-1/alice.log', ALICE, '/tmp/user-1/user.log'],
    ['a home with a slash at its end', '/home/alice/x', ['/home/alice/'], '~/x'],
    ['the longest home first', '/home/alice/w/x', ['/home/alice', '/home/alice/w'], '~/x'],
    ['the longest name first', 'ann-lee ann', ['/h/ann', '/h/ann-lee'], 'user user'],
    ['the other slash', 'C:/Users/Alice/x', WINDOWS, '~/x'],
    ['any letter case', 'c:\\users\\ALICE\\x aLiCe', WINDOWS, '~\\x user'],
    ['separators doubled, as in JSON', '"C:\\\\Users\\\\Alice\\\\x"', WINDOWS, '"~\\\\x"'],
    ['a drive in WSL', '/mnt/c/users/ALICE/x', ['/mnt/c/Users/alice'], '~/x'],
    ['a home seen from Windows', '\\\\wsl$\\Ubuntu\\home\\al\\x', ['/home/al'], '\\\\wsl$\\Ubuntu\\~\\x'],
    ['a home on a server', '\\\\srv\\homes\\bo\\x', ['\\\\srv\\homes\\bo'], '\\~\\x'],
    ['hex digits', `t=${'0aF'.repeat(11)}!`, [], 't=[redacted]!'],
    ['hex digits inside a word', `x${'0'.repeat(32)}y`, [], 'x[redacted]y'],
    ['several lines', '/home/alice\nalice', ALICE, '~\nuser'],
    [
      'metacharacters',
      '/home/a.(b)+[c]$/x /home/aXb',
      ['/home/a.(b)+[c]$', '/home/*', '/home/a|'],
      '~/x /home/aXb',
    ],
    ['metacharacters in a name', 'a.b aXb', ['/home/a.b'], 'user aXb'],
    ['a name that a pattern could mean', '/home/$&/x', ['/home/$&'], '~/x'],
    ['names beyond ASCII', '/home/Zoë/x zoë Zoë', ['/home/Zoë'], '~/x zoë user'],
  ])('takes out %s', (_name, text, homes, expected) => {
    expect(redact(text, homes)).toBe(expected)
  })
  it.each<[string, string, string[]]>([
    ['with no homes', '/home/alice/x', []],
    ['with an empty home', '/home/alice x', ['']],
    ['with the root', '/home/alice C:\\x', ['/', '//', '\\', 'C:\\', 'C:', 'c:/']],
    ['in a folder that starts with the name of a home', '/home/alice/x /home/al-2 /home/al.b', ['/home/al']],
    ['in a word that contains the name', 'malice alices alice2', ALICE],
    ['of a short name', 'al Al x al', ['/home/al']],
    ['of a name in another case where case means something', 'Code code-x', ['/home/CODE']],
    ['of a relative home', 'a/b/x', ['a/b']],
    ['of fewer digits', '0'.repeat(31), []],
    ['of digits that are not hex', 'g'.repeat(40), []],
  ])('leaves the text alone %s', (_name, text, homes) => {
    expect(redact(text, homes)).toBe(text)
  })
  it('takes no time worth mentioning for a hostile text', () => {
    const text = `${'/'.repeat(50_000)}home${'/'.repeat(50_000)}${'f'.repeat(31)}g`.repeat(3)
    const start = performance.now()
    redact(text, ['/home/alice', '\\home\\\\alice\\', '/'])
    expect(performance.now() - start).toBeLessThan(2000)
  })
})
