import { describe, expect } from 'vitest'
import { Editor } from '../harness/editor.ts'
import { block, CHECKOUT, expectBlocks } from '../harness/extension.ts'
import { bothVersions } from '../harness/hosts.ts'
import { usage } from '../harness/processes.ts'
import { Rpc } from '../harness/rpc.ts'
import { TEST_MS, test } from '../harness/test.ts'
import { Tui } from '../harness/tui.ts'
import { settled, until } from '../harness/until.ts'

const FOO = block('src/foo.ts', 'L10-L20')
const RELOADS = 20

/** Exactly one client, and no other one that turns up a little later. */
async function expectOneClient(editor: Editor) {
  await editor.waitForClients(1)
  expect(await settled('the clients', () => editor.clients())).toHaveLength(1)
}

describe.each(bothVersions())('$label', { concurrent: true, timeout: TEST_MS }, (host) => {
  test(`${RELOADS} reloads leave one client and no thread or descriptor`, {
    skip: process.platform !== 'linux',
  }, async ({ box }) => {
    const our = await box(host)
    const editor = await Editor.start(our)
    await editor.select('src/foo.ts', 10, 20)
    const tui = await Tui.start(our, CHECKOUT)
    await tui.seeStatus(/⇡ foo\.ts/)
    await tui.prompt('first')
    await tui.seeStatus(/✓ foo\.ts/)

    const reload = async () => {
      const [before] = await editor.waitForClients(1)
      await tui.submit('/reload')
      await until('the client of the reloaded extension', async () => {
        const clients = await editor.clients()
        return clients.length === 1 && clients[0]?.id !== before?.id
      })
      await tui.seeStatus(/✓ foo\.ts/)
    }
    const pid = await tui.pid
    await reload()
    const first = await settled('threads and descriptors', () => usage(pid), { quietMs: 2000 })
    for (let count = 1; count < RELOADS; count++) await reload()

    await expectOneClient(editor)
    await until(
      'threads and descriptors to go back',
      () => {
        const now = usage(pid)
        return now.threads <= first.threads && now.descriptors <= first.descriptors
      },
      {
        explain: () =>
          `after the first reload ${JSON.stringify(first)}, after ${RELOADS} ${JSON.stringify(usage(pid))}`,
      },
    )
    await tui.prompt('second')
    expectBlocks(our, FOO)
    expect(await tui.quit()).toBe(0)
    await editor.waitForClients(0)
  })

  test('a new session injects anew, a resumed one does not repeat itself (rpc)', async ({ box }) => {
    const our = await box(host)
    const editor = await Editor.start(our)
    await editor.select('src/foo.ts', 10, 20)
    const rpc = new Rpc(our, CHECKOUT)
    await rpc.seeStatus(/⇡ foo\.ts/)
    await rpc.prompt('first')
    await rpc.seeStatus(/✓ foo\.ts/)
    const { sessionFile } = await rpc.call('get_state')

    await rpc.call('new_session')
    await expectOneClient(editor)
    await rpc.seeStatus(/⇡ foo\.ts/)
    await rpc.prompt('second')
    expectBlocks(our, FOO)
    expect(JSON.stringify(our.model.last)).not.toContain('first')

    await rpc.call('switch_session', { sessionPath: sessionFile })
    await expectOneClient(editor)
    await rpc.seeStatus(/✓ foo\.ts/)
    await rpc.prompt('third')
    expectBlocks(our, FOO)
    expect(our.model.last.messages.map((message) => message.text)).toEqual(
      expect.arrayContaining(['first', FOO, 'third']),
    )
    expect(rpc.lines.filter((line) => line.type === 'extension_error')).toEqual([])
    expect(await rpc.close()).toEqual({ code: 0, signal: null })
    await editor.waitForClients(0)
  })

  test('/new and /resume leave one client (tui)', async ({ box }) => {
    const our = await box(host)
    const editor = await Editor.start(our)
    await editor.select('src/foo.ts', 10, 20)
    const tui = await Tui.start(our, CHECKOUT)
    await tui.seeStatus(/⇡ foo\.ts/)
    await tui.prompt('alpha')
    await tui.seeStatus(/✓ foo\.ts/)

    await tui.submit('/new')
    await tui.seeStatus(/⇡ foo\.ts/)
    await expectOneClient(editor)
    await tui.prompt('beta')
    expectBlocks(our, FOO)
    expect(JSON.stringify(our.model.last)).not.toContain('alpha')
    await tui.seeStatus(/✓ foo\.ts/)

    await tui.submit('/resume')
    await tui.see(/Resume Session/)
    await tui.type('alpha')
    await tui.see(/Resume Session(?![\s\S]*beta)[\s\S]*› alpha/) // the only one left in the list
    await tui.keys('Enter')
    await tui.see(/alpha[\s\S]*REPLY-1/)
    await tui.seeStatus(/✓ foo\.ts/)
    await expectOneClient(editor)
    await tui.prompt('gamma')
    expectBlocks(our, FOO)
    expect(JSON.stringify(our.model.last)).toContain('alpha')
    expect(await tui.quit()).toBe(0)
  })

  test('a continued session does not repeat what was injected before the restart', async ({ box }) => {
    const our = await box(host)
    const editor = await Editor.start(our)
    await editor.select('src/foo.ts', 10, 20)
    const before = new Rpc(our, CHECKOUT)
    await before.seeStatus(/⇡ foo\.ts/)
    await before.prompt('first')
    await before.close()

    const after = new Rpc(our, ['-c', ...CHECKOUT])
    await after.seeStatus(/✓ foo\.ts/)
    await after.prompt('second')
    expectBlocks(our, FOO)
    expect(our.model.last.messages.map(({ text }) => text)).toEqual(
      expect.arrayContaining(['first', 'second']),
    )
    await editor.select('src/foo.ts', 30, 30)
    await after.seeStatus(/⇡ foo\.ts#L30/)
    await after.prompt('third')
    expectBlocks(our, FOO, block('src/foo.ts', 'L30'))
  })
})
