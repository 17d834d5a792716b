import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import { Editor } from '../harness/editor.ts'
import { block, CHECKOUT, expectBlocks } from '../harness/extension.ts'
import { bothVersions } from '../harness/hosts.ts'
import { Rpc } from '../harness/rpc.ts'
import { TEST_MS, test } from '../harness/test.ts'
import { Tui } from '../harness/tui.ts'

const FOO = block('src/foo.ts', 'L10-L20')

/** What editors do that must leave nothing behind for the next prompt. */
const farewells: Record<string, (editor: Editor) => Promise<void>> = {
  'a cleared selection': (editor) => editor.clear(),
  'a closed editor': (editor) => editor.close(),
  'an editor that was killed': (editor) => editor.kill(),
}

describe.each(bothVersions())('$label', { concurrent: true, timeout: TEST_MS }, (host) => {
  describe('rpc', () => {
    test('a selection reaches the model once, after the prompt that it goes with', async ({ box }) => {
      const our = await box(host)
      const editor = await Editor.start(our)
      const rpc = new Rpc(our, CHECKOUT)
      await editor.select('src/foo.ts', 10, 20)
      expect(await rpc.seeStatus(/foo\.ts/)).toMatch(/^\s*⧉ ⇡ foo\.ts#L10-L20\s*$/)

      await rpc.prompt('first')
      expectBlocks(our, FOO)
      expect(our.model.last.messages.slice(1)).toEqual([
        { role: 'user', text: 'first' },
        { role: 'user', text: FOO },
      ])
      expect(await rpc.seeStatus(/✓/)).toMatch(/^\s*⧉ ✓ foo\.ts#L10-L20\s*$/)

      await rpc.prompt('second')
      await rpc.prompt('third')
      expectBlocks(our, FOO)

      await editor.select('src/foo.ts', 30, 30)
      await rpc.seeStatus(/⇡ foo\.ts#L30/)
      await rpc.prompt('fourth')
      expectBlocks(our, FOO, block('src/foo.ts', 'L30'))
      expect(our.model.requests).toHaveLength(4)

      const { authToken } = JSON.parse(readFileSync(editor.lockFile, 'utf8'))
      const { sessionFile } = await rpc.call('get_state')
      expect(await rpc.close()).toEqual({ code: 0, signal: null })
      const said = [rpc.stderr, JSON.stringify(rpc.lines), readFileSync(sessionFile, 'utf8')].join('\n')
      expect(said).toContain('foo.ts')
      expect(said).not.toContain(authToken)
    })

    test('an open file without a selection reaches the model', async ({ box }) => {
      const our = await box(host)
      const editor = await Editor.start(our)
      const rpc = new Rpc(our, CHECKOUT)
      await editor.open('src/foo.ts')
      expect(await rpc.seeStatus(/foo\.ts/)).toMatch(/^\s*⧉ ⇡ foo\.ts\s*$/)
      await rpc.prompt('first')
      expectBlocks(our, block('src/foo.ts'))
    })

    test.for(Object.keys(farewells))('%s adds no block', async (name, { box }) => {
      const our = await box(host)
      const editor = await Editor.start(our)
      const rpc = new Rpc(our, CHECKOUT)
      await editor.select('src/foo.ts', 10, 20)
      await rpc.seeStatus(/⇡ foo\.ts#L10-L20/)
      await farewells[name]?.(editor)
      await rpc.seeStatus(/^(?!.*foo)/)
      await rpc.prompt('first')
      expectBlocks(our)
      expect(rpc.ui('notify').filter((line) => line.notifyType === 'error')).toEqual([])
    })

    test('an editor that comes back is found again, and what the model knows is not repeated', async ({
      box,
    }) => {
      const our = await box(host)
      const first = await Editor.start(our)
      const rpc = new Rpc(our, CHECKOUT)
      await first.select('src/foo.ts', 10, 20)
      await rpc.seeStatus(/⇡ foo\.ts#L10-L20/)
      await rpc.prompt('first')
      await rpc.seeStatus(/✓ foo\.ts#L10-L20/)
      await first.kill()
      await rpc.seeStatus(/^(?!.*foo)/)

      const second = await Editor.start(our)
      await second.select('src/foo.ts', 10, 20)
      await rpc.seeStatus(/✓ foo\.ts#L10-L20/, { ms: 60_000 })
      await rpc.prompt('second')
      expectBlocks(our, FOO)
      await second.waitForClients(1)
    })

    test('a file outside the project and the workspace stays out, unless it is attached', async ({ box }) => {
      const our = await box(host)
      const outside = join(our.root, 'elsewhere/private.ts')
      const editor = await Editor.start(our)
      const rpc = new Rpc(our, CHECKOUT)
      await editor.select('src/foo.ts', 10, 20)
      await rpc.seeStatus(/⇡ foo\.ts/)
      await rpc.prompt('first')
      await rpc.seeStatus(/✓ foo\.ts/)
      await editor.select(outside, 1, 2)
      await rpc.seeStatus(/^(?!.*foo)/)
      await rpc.prompt('second')
      expectBlocks(our, FOO)
      expect(JSON.stringify(our.model.last)).not.toContain('private.ts')

      await rpc.call('prompt', { message: '/ide attach' })
      await rpc.until('the mention', () =>
        rpc.ui('set_editor_text').some((line) => line.text === `@${outside}#L1-L2 `),
      )
      await rpc.prompt('third')
      expectBlocks(our, FOO, block(outside, 'L1-L2'))
    })

    test('a file of the workspace goes along although pi works in a folder of it', async ({ box }) => {
      const our = await box(host)
      const editor = await Editor.start(our, { workspaceFolders: [our.root] })
      const rpc = new Rpc(our, CHECKOUT)
      await editor.select('shared/types.ts', 5, 5)
      await rpc.seeStatus(/⇡ types\.ts#L5/)
      await rpc.prompt('first')
      expectBlocks(our, block(join(our.root, 'shared/types.ts'), 'L5'))
    })

    test('a mention of the editor is pasted, and sends its selection again', async ({ box }) => {
      const our = await box(host)
      const editor = await Editor.start(our)
      const rpc = new Rpc(our, CHECKOUT)
      await editor.select('src/foo.ts', 10, 20)
      await rpc.seeStatus(/⇡ foo\.ts/)
      await rpc.prompt('first')
      await rpc.seeStatus(/✓ foo\.ts/)
      expect(await editor.mention('src/foo.ts', 10, 20)).not.toBeNull()
      await rpc.until('the mention', () => rpc.ui('set_editor_text').length > 0)
      expect(rpc.ui('set_editor_text').map((line) => line.text)).toEqual(['@src/foo.ts#L10-L20 '])
      await rpc.seeStatus(/⇡ foo\.ts/)
      await rpc.prompt('second')
      expectBlocks(our, FOO, FOO)
    })
  })

  describe('/ide', () => {
    test('tells what is connected, switches off and on, and takes another editor', async ({ box }) => {
      const our = await box(host)
      const first = await Editor.start(our, { name: 'First' })
      await first.select('src/foo.ts', 10, 20)
      const rpc = new Rpc(our, CHECKOUT)
      await rpc.seeStatus(/⇡ foo\.ts/)
      const ide = async (word: string): Promise<string> => {
        const before = rpc.ui('notify').length
        await rpc.call('prompt', { message: `/ide ${word}` })
        await rpc.until(`the notice of /ide ${word}`, () => rpc.ui('notify').length > before)
        return rpc.ui('notify').at(-1)?.message
      }
      const status = await ide('status')
      for (const part of ['First', our.cwd, 'foo.ts', 'L10-L20']) expect(status).toContain(part)
      expect(await ide('list')).toMatch(/^\* First/m)

      await ide('off')
      await first.waitForClients(0)
      await rpc.seeStatus(/^(?!.*foo)/)
      await rpc.prompt('first')
      expectBlocks(our)

      await first.close()
      const second = await Editor.start(our, { name: 'Second' })
      await second.select('src/bar.ts', 1, 1)
      await ide('auto')
      await rpc.seeStatus(/⇡ bar\.ts#L1/)

      const third = await Editor.start(our, { name: 'Third' })
      await third.select('src/foo.ts', 10, 20)
      rpc.send({ type: 'prompt', message: '/ide' })
      const question = await rpc.until('the list of editors', () => rpc.ui('select').at(0))
      expect(question.options).toHaveLength(2)
      const value = question.options.find((option: string) => option.includes('Third'))
      rpc.send({ type: 'extension_ui_response', id: question.id, value })
      await rpc.seeStatus(/⇡ foo\.ts#L10-L20/)
      await third.waitForClients(1)
      await second.waitForClients(0)
      await rpc.prompt('second')
      expectBlocks(our, FOO)
    })
  })

  describe('tui', () => {
    test('the line goes from ⇡ to ✓ as the selection reaches the model once', async ({ box }) => {
      const our = await box(host)
      const editor = await Editor.start(our)
      await editor.select('src/foo.ts', 10, 20)
      const tui = await Tui.start(our, CHECKOUT)
      expect(await tui.seeStatus(/foo\.ts/)).toBe('⧉ ⇡ foo.ts#L10-L20')
      await tui.prompt('first')
      expectBlocks(our, FOO)
      expect(await tui.seeStatus(/✓ foo\.ts/)).toBe('⧉ ✓ foo.ts#L10-L20')
      const screen = await tui.screen()
      expect(screen).not.toContain('[pi-x-ide/context]')
      await tui.prompt('second')
      expectBlocks(our, FOO)

      await editor.select('src/bar.ts', 1, 1)
      await tui.seeStatus(/⇡ bar\.ts#L1/)
      await editor.kill()
      await tui.seeStatus(/^(?!.*bar)/)
      await tui.prompt('third')
      expectBlocks(our, FOO)
      expect(await tui.quit()).toBe(0)
    })

    test('a command that is typed out runs with one Enter', async ({ box }) => {
      const our = await box(host)
      const editor = await Editor.start(our)
      await editor.select('src/foo.ts', 10, 20)
      const tui = await Tui.start(our, CHECKOUT)
      await tui.seeStatus(/⇡ foo\.ts/)
      await tui.type('/ide off')
      await tui.until('the typed text', async () => (await tui.input()).includes('/ide off'))
      // pi looks for completions only a moment after the last key.
      await sleep(500)
      await tui.keys('Enter')
      await editor.waitForClients(0)
      expect(await tui.quit()).toBe(0)
    })

    test('ctrl+alt+k and the editor put a mention into the input box', async ({ box }) => {
      const our = await box(host)
      const editor = await Editor.start(our)
      await editor.select('src/foo.ts', 10, 20)
      const tui = await Tui.start(our, CHECKOUT)
      await tui.seeStatus(/⇡ foo\.ts/)
      await tui.type('why ')
      await tui.keys('C-M-k')
      await tui.until('the mention', async () => (await tui.input()).includes('why @src/foo.ts#L10-L20'))
      // No newline and exactly one space: what is typed next continues the line.
      await tui.type('is')
      await tui.until('the typed text', async () =>
        (await tui.input()).includes('why @src/foo.ts#L10-L20 is'),
      )

      await tui.keys('C-c')
      await tui.until('an empty input box', async () => !(await tui.input()).includes('@'))
      await editor.mention('src/my docs/a b.ts', 3, 4)
      // Nothing is pressed: the extension itself has to make it visible.
      await tui.until('the mention', async () => (await tui.input()).includes('@"src/my docs/a b.ts"#L3-L4'))
      expect(await tui.quit()).toBe(0)
    })
  })
})
