// Sums over test suites. With PIX_TEST_SUMMARY every suite is also added to the file of that name, so that several runs can be summed.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

const FILE = process.env.PIX_TEST_SUMMARY

/** A suite is `{ name, passed, failed }`; one that could not run at all counts as one failure. */
export function record(suite) {
  if (FILE) appendFileSync(FILE, `${JSON.stringify(suite)}\n`)
  return suite
}

export function recorded(file) {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.filter(Boolean).map((line) => JSON.parse(line))
}

/** The one line that ends a test run; sets the exit code. */
export function conclude(suites) {
  const passed = suites.reduce((sum, suite) => sum + suite.passed, 0)
  const failed = suites.reduce((sum, suite) => sum + suite.failed, 0)
  for (const suite of suites) console.log(`${suite.name}: ${suite.passed} passed, ${suite.failed} failed`)
  console.log(`${passed} passed, ${failed} failed`)
  if (failed > 0 || passed === 0) process.exitCode = 1
}
