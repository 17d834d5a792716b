// The test suites, each shown as it runs and counted.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inRoot, readJson } from './project.mjs'
import { exitCode } from './steps.mjs'

/** `cargo test` of the whole workspace. */
export async function cargoSuite() {
  const counts = { passed: 0, failed: 0 }
  const code = await exitCode('cargo', ['test', '--workspace', '--no-fail-fast'], {
    onLine: (line) => {
      const result = /^test result: .*? (\d+) passed; (\d+) failed;/.exec(line)
      if (!result) return
      counts.passed += Number(result[1])
      counts.failed += Number(result[2])
    },
  })
  return suite('cargo test', counts, code)
}

/** One project of vitest.config.ts. */
export async function vitestSuite(project, extra = []) {
  const folder = mkdtempSync(join(tmpdir(), 'pix-vitest-'))
  const report = join(folder, 'report.json')
  try {
    const args = [
      'run',
      '--project',
      project,
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${report}`,
    ]
    const code = await exitCode(process.execPath, [
      inRoot('node_modules/vitest/vitest.mjs'),
      ...args,
      ...extra,
    ])
    return suite(`vitest ${project}`, counted(report), code)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function counted(report) {
  try {
    const { numPassedTests, numFailedTests, testResults } = readJson(report)
    const broken = testResults.filter(
      ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
    )
    return { passed: numPassedTests, failed: numFailedTests + broken.length }
  } catch {
    return { passed: 0, failed: 0 }
  }
}

/** A run that ended badly without a failed test (it did not compile, an error came after the last test) is one failure. */
function suite(name, { passed, failed }, code) {
  return { name, passed, failed: failed === 0 && code !== 0 ? 1 : failed }
}
