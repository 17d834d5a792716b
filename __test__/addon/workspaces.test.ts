import { mkdirSync, realpathSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Candidate, DiagnosticFix } from '../../index.d.ts'
import { connect, connectBest, diagnose, discover } from '../../index.js'
import { closedAfterwards, Heard, ideServer } from './bridge.ts'
import { FakeEditor, mentioned, notification, selectionChanged } from './fake-editor.ts'
import { writeLock } from './lock-files.ts'
import { configure, environment, folder, ownHome, until } from './support.ts'

/** How the only editor, with these folders open, relates to pi's folder. */
async function matched(workspaceFolders: string[], cwd: string): Promise<Candidate> {
  const lockDir = folder()
  writeLock(lockDir, { workspaceFolders })
  const found = await discover(cwd, { lockDir })
  expect(found).toHaveLength(1)
  return found[0] as Candidate
}

/** An editor with one folder open, and a connection of pi in another one, made as pi makes it. */
async function connected(workspaceFolder: string, cwd: string, changes = {}) {
  const editor = await FakeEditor.start({ lock: { workspaceFolders: [workspaceFolder], ...changes } })
  const connection = closedAfterwards(await connectBest(cwd, { lockDir: editor.lockDir }))
  if (!connection) throw new Error(`${workspaceFolder} is not matched with ${cwd}`)
  return { editor, connection, heard: new Heard(connection) }
}

const at = (line: number) => ({ line, character: 0 })
const range = { start: at(2), end: { line: 4, character: 1 } }

/** The first lines of a file, in the words of an editor. */
const words = (filePath: string, workspaceFolder: string) => ({
  source: 'vscode',
  filePath,
  workspaceFolder,
  ranges: [{ text: 'x', selection: range }],
})

const fixOf = (filePath: string, workspaceFolder: string, related: string): DiagnosticFix => ({
  action: 'fix',
  filePath,
  workspaceFolder,
  triggerRange: range,
  diagnostics: [
    {
      severity: 'error',
      message: `not found: ${filePath}`,
      range,
      selectedText: filePath,
      contextLines: [],
      relatedInformation: [{ filePath: related, range, message: 'declared here' }],
    },
  ],
})

/** What reaches pi of a file that the editor names `theirs`, and pi `ours`. */
async function expectSpelling(
  { editor, connection, heard }: Awaited<ReturnType<typeof connected>>,
  theirs: { file: string; folder: string },
  ours: { file: string; folder: string; mention: string; shown: string },
): Promise<void> {
  editor.send(selectionChanged(words(theirs.file, theirs.folder)))
  const selection = await heard.first('selection')
  const seen = { filePath: ours.file, workspaceFolder: ours.folder }
  expect(selection.snapshot).toMatchObject(seen)
  expect(connection.latest()).toMatchObject(seen)
  expect(connection.mentions()).toEqual([ours.mention])
  const context = await connection.prepareContext()
  expect(context).toMatchObject({ filePath: ours.file, displayPath: ours.shown })
  expect(context?.content).toContain(`- **File**: \`${ours.shown}\``)
  expect(context?.content).not.toContain(theirs.folder)

  editor.send(mentioned(words(theirs.file, theirs.folder)))
  const mention = await heard.first('mention')
  expect([mention.mentions, mention.snapshot.filePath]).toEqual([[ours.mention], ours.file])

  const fix = fixOf(theirs.file, theirs.folder, theirs.file)
  editor.send(notification('diagnostic_fix_requested', { source: 'vscode', ...fix }))
  const { request } = await heard.first('diagnosticFix')
  expect(request).toMatchObject(seen)
  // Places are mapped, words and text are left as they are.
  expect(request.diagnostics[0]).toMatchObject({
    message: `not found: ${theirs.file}`,
    selectedText: theirs.file,
    relatedInformation: [{ filePath: ours.file, message: 'declared here' }],
  })
}

const toldFolder = (editor: FakeEditor) => JSON.parse(editor.received[0] as string).params.cwd

describe('folders inside pi’s', () => {
  test.each([
    ['several of a multi-root workspace', ['/w/my/a', '/w/my/b'], '/w/my'],
    ['one below', ['/w/repo/packages/web'], '/w/repo'],
  ])('%s are a weaker match that names both sides and never connects by itself', async (_, folders, cwd) => {
    const editor = await FakeEditor.start({ lock: { workspaceFolders: folders } })
    const other = await FakeEditor.start({
      lockDir: editor.lockDir,
      lock: { workspaceFolders: ['/elsewhere'] },
    })
    const { lockDir } = editor
    const found = await discover(cwd, { lockDir })
    expect(found.map(({ id }) => id)).toEqual([editor.lockFile, other.lockFile])
    const [inside, unrelated] = found as [Candidate, Candidate]
    expect(inside).toMatchObject({
      direct: false,
      matchLength: cwd.length,
      workspaceFolder: folders[0],
      workspaceFolders: folders,
      reason: expect.stringContaining(`${folders[0]} lies inside ${cwd}`),
    })
    expect(unrelated).toMatchObject({ direct: false, matchLength: 0 })
    expect(await connectBest(cwd, { lockDir })).toBeNull()
    // By hand it connects, and files of every folder go along.
    const connection = closedAfterwards(await connect(inside, { cwd }))
    for (const open of folders) {
      editor.send(selectionChanged(words(`${open}/x.ts`, open)))
      const mention = `@${open.slice(cwd.length + 1)}/x.ts#L3-L5`
      await until(mention, () => connection.mentions()[0] === mention)
      expect((await connection.prepareContext())?.displayPath).toBe(`${open.slice(cwd.length + 1)}/x.ts`)
    }
  })

  test('a containing folder is preferred, however short', async () => {
    const lockDir = folder()
    writeLock(lockDir, { name: 'inside', workspaceFolders: ['/w/my/a'], port: 1 })
    writeLock(lockDir, { name: 'around', workspaceFolders: ['/w'], port: 2 })
    const found = await discover('/w/my', { lockDir })
    expect(found.map(({ name }) => name)).toEqual(['around', 'inside'])
  })
})

describe('folders compared by their parts', () => {
  test.each([
    ['/w/app/', '/w/app'],
    ['/w/app', '/w/app/'],
    ['/w/./app', '/w/app'],
    ['/w/app', '/w/./app/.'],
    ['/w//app', '/w/app/src'],
    ['/w/x/../app', '/w/app'],
  ])('%s contains %s', async (theirs, ours) => {
    expect(await matched([theirs], ours)).toMatchObject({ direct: true })
  })

  test.each([
    ['/w/app', '/w/app2'],
    ['/w/app2', '/w/app'],
    ['/w/app', '/w/app-old/src'],
    ['/w/app', '/x/w/app'],
    ['/w/App', '/w/app'],
  ])('%s has nothing to do with %s, and the reason says so', async (theirs, ours) => {
    const candidate = await matched([theirs], ours)
    expect(candidate).toMatchObject({ direct: false, matchLength: 0 })
    expect(candidate.reason).toContain(theirs)
  })

  test('what only looks alike is another folder where the file system says so', async () => {
    const root = folder()
    for (const [theirs, ours] of [
      ['te\u0301st', 't\u00e9st'],
      ['Desktop/App', 'desktop/app'],
    ].map((pair) => pair.map((name) => join(root, name))) as [string, string][]) {
      mkdirSync(theirs, { recursive: true })
      mkdirSync(ours, { recursive: true })
      const isOne = realpathSync.native(theirs) === realpathSync.native(ours)
      expect((await matched([theirs], ours)).direct, theirs).toBe(isOne)
      expect((await matched([ours], theirs)).direct, ours).toBe(isOne)
    }
  })

  test('a folder behind a linked parent, as /tmp and /private/tmp, is the same', async () => {
    const root = folder()
    mkdirSync(join(root, 'private/tmp/x/src'), { recursive: true })
    symlinkSync('private/tmp', join(root, 'tmp'))
    const [behind, real] = [join(root, 'tmp/x'), join(root, 'private/tmp/x')]
    for (const [theirs, ours] of [
      [behind, real],
      [real, behind],
      [behind, join(real, 'src')],
      [join(root, 'tmp'), real],
    ] as [string, string][])
      expect((await matched([theirs], ours)).direct, `${theirs} ${ours}`).toBe(true)
    expect((await matched([`${behind}2`], real)).direct).toBe(false)
  })
})

describe('a linked project keeps the spelling of pi', () => {
  test.each([
    ['the editor came by the link', 'proj', 'data/proj'],
    ['pi came by the link', 'data/proj', 'proj'],
    ['pi stands below it', 'proj', 'data/proj/src'],
    ['pi stands below, by the link', 'data/proj', 'proj/src'],
  ])('%s', async (_, theirs, ours) => {
    const root = folder()
    mkdirSync(join(root, 'data/proj/src'), { recursive: true })
    symlinkSync(join(root, 'data/proj'), join(root, 'proj'))
    const [theirFolder, cwd] = [join(root, theirs), join(root, ours)]
    const link = await connected(theirFolder, cwd)
    const inside = ours.endsWith('/src')
    const project = inside ? join(cwd, '..') : cwd
    await expectSpelling(
      link,
      { file: join(theirFolder, 'src/a.ts'), folder: theirFolder },
      {
        file: join(project, 'src/a.ts'),
        folder: project,
        mention: inside ? '@a.ts#L3-L5' : '@src/a.ts#L3-L5',
        shown: inside ? 'a.ts' : 'src/a.ts',
      },
    )
    // The editor learns where this pi stands in its own words.
    expect(toldFolder(link.editor)).toBe(inside ? join(theirFolder, 'src') : theirFolder)
  })

  test('a file of the workspace outside pi’s folder goes along, by pi’s name of it', async () => {
    const root = folder()
    mkdirSync(join(root, 'data/proj/src'), { recursive: true })
    symlinkSync(join(root, 'data/proj'), join(root, 'proj'))
    const { editor, connection, heard } = await connected(join(root, 'proj'), join(root, 'data/proj/src'))
    editor.send(selectionChanged(words(join(root, 'proj/README.md'), join(root, 'proj'))))
    await heard.first('selection')
    const readme = join(root, 'data/proj/README.md')
    expect(connection.mentions()).toEqual([`@${readme}#L3-L5`])
    expect(await connection.prepareContext()).toMatchObject({ filePath: readme, displayPath: readme })
  })

  test('a link to nowhere is no match and throws nothing', async () => {
    const root = folder()
    symlinkSync(join(root, 'gone'), join(root, 'proj'))
    expect(await matched([join(root, 'proj')], join(root, 'gone'))).toMatchObject({ direct: false })
    expect(await matched([join(root, 'gone')], join(root, 'proj'))).toMatchObject({ direct: false })
    // By its own name it is what it always was.
    const { editor, connection } = await connected(join(root, 'proj'), join(root, 'proj'))
    editor.send(selectionChanged(words(join(root, 'proj/a.ts'), join(root, 'proj'))))
    await until('the mention', () => connection.mentions()[0] === '@a.ts#L3-L5')
  })
})

describe('a folder that has another name here', () => {
  const THERE = '/Users/u/p'

  test('is no silent match; picked by hand it works, and the reason says what differs', async () => {
    const cwd = folder()
    const editor = await FakeEditor.start({ lock: { workspaceFolders: [THERE] } })
    const [candidate] = (await discover(cwd, { lockDir: editor.lockDir })) as [Candidate]
    expect(candidate).toMatchObject({ direct: false, matchLength: 0, verdict: 'usable' })
    expect(candidate.reason).toMatch(/^is open for \/Users\/u\/p, which does not exist here: .*pathMap/)
    expect(await connectBest(cwd, { lockDir: editor.lockDir })).toBeNull()
    const connection = closedAfterwards(await connect(candidate, { cwd }))
    editor.send(selectionChanged(words(`${THERE}/src/a.ts`, THERE)))
    await until('the mention', () => connection.mentions()[0] === `@${THERE}/src/a.ts#L3-L5`)
  })

  test('one that does exist here is told apart from it', async () => {
    const [theirs, ours] = [folder(), folder()]
    expect((await matched([theirs], ours)).reason).toBe(
      `is open for ${theirs}, not for ${ours}; pick it by hand`,
    )
  })

  test.each([
    ['of the host', THERE, `${THERE}/src/a.ts`],
    ['of Windows', 'C:\\p', 'C:\\p\\src\\a.ts'],
    ['of Windows, spelt otherwise', 'c:\\p\\', 'c:/p/src/a.ts'],
  ])('with a pathMap it is the same folder: %s', async (_, theirs, theirFile) => {
    const cwd = folder()
    const pathMap = { from: theirs.startsWith('/') ? THERE : 'C:\\p', to: cwd }
    configure(ownHome(), { pathMap })
    const link = await connected(theirs, cwd)
    expect(link.connection.candidate).toMatchObject({ direct: true, matchLength: 10_000 + cwd.length })
    await expectSpelling(
      link,
      { file: theirFile, folder: theirs },
      {
        file: join(cwd, 'src/a.ts'),
        folder: theirs.endsWith('\\') ? `${cwd}/` : cwd,
        mention: '@src/a.ts#L3-L5',
        shown: 'src/a.ts',
      },
    )
    expect(toldFolder(link.editor)).toBe(pathMap.from)
  })

  test('a pathMap maps whole names, the closest folder first, and nothing else', async () => {
    const [cwd, library] = [folder(), folder()]
    configure(ownHome(), {
      pathMap: [
        { from: THERE, to: cwd },
        { from: `${THERE}/lib`, to: library },
      ],
    })
    const lockDir = folder()
    for (const [i, open] of [THERE, `${THERE}2`, '/users/u/p', '/x/Users/u/p'].entries())
      writeLock(lockDir, { workspaceFolders: [open], port: i + 1 })
    const direct = (await discover(cwd, { lockDir })).filter((candidate) => candidate.direct)
    expect(direct.map(({ port }) => port)).toEqual([1])
    const { editor, connection } = await connected(THERE, cwd)
    const seen: [string, string][] = [
      [`${THERE}/lib/a.ts`, `@${library}/a.ts#L3-L5`],
      [`${THERE}/library/a.ts`, '@library/a.ts#L3-L5'],
      [`${THERE}2/a.ts`, `@${THERE}2/a.ts#L3-L5`],
    ]
    for (const [file, mention] of seen) {
      editor.send(selectionChanged(words(file, THERE)))
      await until(mention, () => connection.mentions()[0] === mention)
    }
  })

  test('a pathMap may lead to a link, and pi stands in the real folder', async () => {
    const root = folder()
    mkdirSync(join(root, 'real'))
    symlinkSync(join(root, 'real'), join(root, 'workspace'))
    configure(ownHome(), { pathMap: { from: THERE, to: join(root, 'workspace') } })
    const cwd = join(root, 'real')
    const link = await connected(THERE, cwd)
    await expectSpelling(
      link,
      { file: `${THERE}/src/a.ts`, folder: THERE },
      { file: join(cwd, 'src/a.ts'), folder: cwd, mention: '@src/a.ts#L3-L5', shown: 'src/a.ts' },
    )
    expect(toldFolder(link.editor)).toBe(THERE)
  })

  test('a pathMap of the project, which is not trusted, counts for nothing', async () => {
    const cwd = folder()
    ownHome()
    configure(cwd, { pathMap: { from: THERE, to: cwd } })
    expect(await matched([THERE], cwd)).toMatchObject({ direct: false, matchLength: 0 })
  })
})

test('a drive of Windows is the mounted one in WSL, whatever the case of its letter', async () => {
  // The host is named, so that the test asks no gateway of the machine that it runs on.
  environment({ WSL_DISTRO_NAME: 'Ubuntu', PI_X_IDE_HOST_OVERRIDE: '127.0.0.1' })
  ownHome()
  const cwd = '/mnt/d/Projects/app'
  for (const drive of ['d', 'D']) {
    const theirs = `${drive}:\\Projects\\app`
    const link = await connected(theirs, cwd, { runningInWindows: true })
    await expectSpelling(
      link,
      { file: `${theirs}\\src\\a.ts`, folder: theirs },
      { file: `${cwd}/src/a.ts`, folder: cwd, mention: '@src/a.ts#L3-L5', shown: 'src/a.ts' },
    )
  }
})

test('an editor of another folder is told with everything that was looked at', async () => {
  ownHome()
  const server = await ideServer({ workspaceFolders: ['/w/other'] })
  const diagnosis = await diagnose('/w/app', { lockDir: join(server.lockFile, '..') })
  expect(diagnosis.candidates).toMatchObject([
    {
      id: server.lockFile,
      verdict: 'usable',
      direct: false,
      matchLength: 0,
      pid: process.pid,
      checks: { parsed: 'valid', pid: 'alive', probes: [{ host: '127.0.0.1', outcome: 'reachable' }] },
      reason: expect.stringMatching(/^is open for \/w\/other, /),
    },
  ])
  expect(diagnosis.folders).toMatchObject([{ locks: 1, windows: false }])
  expect(diagnosis.folders[0]).not.toHaveProperty('problem')
  expect(diagnosis.advice).toEqual([expect.stringContaining('Open this folder')])
})
