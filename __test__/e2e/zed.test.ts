import { readdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect } from 'vitest'
import type { Box } from '../harness/box.ts'
import { Editor } from '../harness/editor.ts'
import { block, CHECKOUT, expectBlocks } from '../harness/extension.ts'
import { bothVersions } from '../harness/hosts.ts'
import { Rpc } from '../harness/rpc.ts'
import { TEST_MS, test } from '../harness/test.ts'
import { BUILD_MS, fixture, LiveZed, pretendThatZedRuns } from '../harness/zed.ts'

const IN_ZED = { TERM_PROGRAM: 'zed', ZED_TERM: 'true' }

/** A box whose project is the folder that the database's workspace names. */
async function withZed(box: Box): Promise<LiveZed> {
  const zed = new LiveZed(box.root, ['--interval-ms', '3600000'])
  box.defer(() => zed.end('kill'))
  await zed.database()
  rmSync(box.cwd, { recursive: true })
  symlinkSync(join(box.root, 'projects/alpha'), box.cwd)
  return zed
}

const start = (box: Box, env: Record<string, string>) =>
  new Rpc(box, CHECKOUT, { XDG_DATA_HOME: box.root, ...env })

beforeAll(() => void fixture(), BUILD_MS)

describe.skipIf(process.platform !== 'linux').each(bothVersions())('$label', { timeout: TEST_MS }, (host) => {
  test('in a terminal of Zed its selection reaches the model, and goes when Zed ends', async ({ box }) => {
    const our = await box(host)
    await withZed(our)
    const folder = join(our.root, 'zed/db/0-stable')
    const before = readdirSync(folder)
    const end = pretendThatZedRuns(join(our.root, 'zed.app/libexec'))
    our.defer(end)
    const rpc = start(our, IN_ZED)
    expect(await rpc.seeStatus(/main\.py/)).toMatch(/^\s*⧉ ⇡ main\.py#L43 \(Zed\)\s*$/)
    await rpc.prompt('first')
    expectBlocks(our, block('src/main.py', 'L43', 'zed'))
    expect(await rpc.seeStatus(/✓/)).toMatch(/^\s*⧉ ✓ main\.py#L43 \(Zed\)\s*$/)
    await rpc.prompt('second')
    expectBlocks(our, block('src/main.py', 'L43', 'zed'))
    expect(readdirSync(folder)).toEqual(before)
    end()
    await rpc.seeStatus(/^(?!.*main)/)
    await rpc.call('prompt', { message: '/ide doctor' })
    expect(JSON.stringify(rpc.ui('notify').at(-1))).toContain('Zed does not run')
    expect(await rpc.close()).toEqual({ code: 0, signal: null })
  })

  test('what Zed left behind is nobody’s context, and elsewhere another editor comes first', async ({
    box,
  }) => {
    const our = await box(host)
    await withZed(our)
    const left = start(our, IN_ZED)
    await left.call('get_state')
    await left.prompt('first')
    expectBlocks(our)
    await left.close()
    our.defer(pretendThatZedRuns(join(our.root, 'zed.app/libexec')))
    const editor = await Editor.start(our)
    const rpc = start(our, {})
    await editor.select('src/foo.ts', 10, 20)
    await rpc.seeStatus(/⇡ foo\.ts#L10-L20\s*$/)
    await rpc.prompt('second')
    expectBlocks(our, block('src/foo.ts', 'L10-L20'))
  })
})
