import { describe, expect } from 'vitest'
import { Editor } from '../harness/editor.ts'
import { block, CHECKOUT, expectBlocks, IN_PRINT } from '../harness/extension.ts'
import { bothVersions } from '../harness/hosts.ts'
import { runPrint } from '../harness/print.ts'
import { TEST_MS, test } from '../harness/test.ts'

const FOO = block('src/foo.ts', 'L10-L20')

// One after the other: print mode waits a second for its editor, and no longer on a busy machine.
describe.each(bothVersions())('$label, print mode', { timeout: TEST_MS }, (host) => {
  test('a selection reaches the model when it is switched on', async ({ box }) => {
    const our = await box(host)
    const editor = await Editor.start(our)
    await editor.select('src/foo.ts', 10, 20)
    const result = await runPrint(our, CHECKOUT, 'first', IN_PRINT)
    expect(result).toMatchObject({ code: 0, stdout: 'REPLY-1\n', stderr: '' })
    expect(our.model.requests).toHaveLength(1)
    expect(our.model.last.messages.slice(1)).toEqual([
      { role: 'user', text: 'first' },
      { role: 'user', text: FOO },
    ])
    await editor.waitForClients(0)
  })

  test('a continued session does not repeat it', async ({ box }) => {
    const our = await box(host)
    const editor = await Editor.start(our)
    await editor.select('src/foo.ts', 10, 20)
    await runPrint(our, CHECKOUT, 'first', IN_PRINT)
    expectBlocks(our, FOO)
    await runPrint(our, ['-c', ...CHECKOUT], 'second', IN_PRINT)
    expectBlocks(our, FOO)
    expect(our.model.last.messages.map(({ text }) => text)).toEqual(
      expect.arrayContaining(['first', 'second']),
    )
  })

  test('nothing is injected when nothing is selected, and without an editor', async ({ box }) => {
    const our = await box(host)
    expect(await runPrint(our, CHECKOUT, 'first', IN_PRINT)).toMatchObject({
      code: 0,
      stdout: 'REPLY-1\n',
      stderr: '',
    })
    expectBlocks(our)
    await Editor.start(our)
    expect(await runPrint(our, CHECKOUT, 'second', IN_PRINT)).toMatchObject({
      code: 0,
      stdout: 'REPLY-2\n',
      stderr: '',
    })
    expectBlocks(our)
  })

  test.for([
    ['by default', {}],
    ['when everything is off', { ...IN_PRINT, PI_X_IDE: 'off' }],
  ] as const)('nothing is injected %s', async ([, env], { box }) => {
    const our = await box(host)
    const editor = await Editor.start(our)
    await editor.select('src/foo.ts', 10, 20)
    const result = await runPrint(our, CHECKOUT, 'first', env)
    expect(result).toMatchObject({ code: 0, stdout: 'REPLY-1\n', stderr: '' })
    expectBlocks(our)
  })

  test('a connected one ends without delay', async ({ box }) => {
    const our = await box(host)
    const editor = await Editor.start(our)
    await editor.select('src/foo.ts', 10, 20)
    // The quickest runs are compared, and a busy machine gets more of them: a delay of ours would be in every one.
    const on: number[] = []
    const off: number[] = []
    const excess = () => Math.min(...on) - Math.min(...off)
    do {
      const connected = await runPrint(our, CHECKOUT, 'on', IN_PRINT)
      expect(connected).toMatchObject({ code: 0 })
      expectBlocks(our, FOO)
      on.push(connected.ms)
      const plain = await runPrint(our, CHECKOUT, 'off', { PI_X_IDE: 'off' })
      expect(plain).toMatchObject({ code: 0 })
      off.push(plain.ms)
    } while (excess() > 1500 && on.length < 6)
    expect(excess()).toBeLessThan(1500)
  })
})
