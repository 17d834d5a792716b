import { describe, expect } from 'vitest'
import { Editor } from '../harness/editor.ts'
import { block, CHECKOUT, expectBlocks } from '../harness/extension.ts'
import { bothVersions } from '../harness/hosts.ts'
import { TEST_MS, test } from '../harness/test.ts'
import { Tui } from '../harness/tui.ts'

/** 200 characters that take from none to two cells: wide ones, joined and modified emoji, flags, combining marks. */
const NAME = '项目说明書한국어ｆｕｌｌ👨‍👩‍👧‍👦👍🏽🇪🇺é́́x⌚️‼️ーテスト'.repeat(20).slice(0, 197).concat('.ts')
const WIDE_NAME = `${'项目'.repeat(99)}.ts`

const WIDEST = 120
const NARROWEST = 20

/** Waits until pi has drawn itself anew at a width: the rules of its input box are as long as that. */
const drawn = (tui: Tui, columns: number) => tui.see(new RegExp(`^─{${columns}}$`, 'm'))

describe.each(bothVersions())('$label', { concurrent: true, timeout: TEST_MS }, (host) => {
  test(`a file name of every kind of width fits from ${WIDEST} down to ${NARROWEST} columns and up again`, async ({
    box,
  }) => {
    const our = await box(host)
    const editor = await Editor.start(our)
    await editor.select(`src/${NAME}`, 10, 20)
    const tui = await Tui.start(our, CHECKOUT, { columns: WIDEST })
    await tui.seeStatus(/^⧉ ⇡ /)
    for (let columns = WIDEST; columns >= NARROWEST; columns--) {
      await tui.resize(columns)
      await drawn(tui, columns)
      // How far the name itself reaches is not looked at: tmux has its own idea of joined emoji.
      await tui.seeStatus(/^⧉ ⇡ /)
    }

    // The message in the chat has to fit as well, folded and unfolded.
    await tui.prompt('go')
    expectBlocks(our, block(`src/${NAME}`, 'L10-L20'))
    await tui.seeStatus(/^⧉ ✓ /)
    await tui.keys('C-o')
    for (let columns = NARROWEST; columns <= WIDEST; columns += 4) {
      await tui.resize(columns)
      await drawn(tui, columns)
    }
    await tui.keys('C-o')

    // With wide characters that everybody counts alike, the name gives way and the lines stay readable.
    await editor.select(`src/${WIDE_NAME}`, 10, 20)
    for (const columns of [WIDEST, 80, 41, 40, NARROWEST]) {
      await tui.resize(columns)
      await drawn(tui, columns)
      await tui.seeStatus(/^⧉ ⇡ 项.*ts#L10-L20$/)
    }
    expect(await tui.isRunning()).toBe(true)
    expect(await tui.quit()).toBe(0)
  })

  test(`pi starts at ${NARROWEST} columns with the line in the footer`, async ({ box }) => {
    const our = await box(host)
    our.write('../home/.pi/pi-x-ide/config.json', JSON.stringify({ status_display: 'statusline' }))
    const editor = await Editor.start(our)
    await editor.select(`src/${NAME}`, 10, 20)
    const tui = await Tui.start(our, CHECKOUT, { columns: NARROWEST })
    await tui.seeStatus(/⧉ ⇡/)
    await tui.prompt('go')
    await tui.seeStatus(/⧉ ✓/)
    for (let columns = NARROWEST; columns <= WIDEST; columns += 10) {
      await tui.resize(columns)
      await drawn(tui, columns)
    }
    await tui.seeStatus(/⧉ ✓/)
    expect(await tui.quit()).toBe(0)
  })
})
