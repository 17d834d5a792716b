// The pi extension as one ES module that needs nothing but Node.js and the addon beside it.
import { existsSync, mkdirSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { inRoot, root, writeIfChanged } from './project.mjs'
import { Failure } from './steps.mjs'

const ENTRY = 'extension/index.ts'
export const BUNDLE = 'dist/extension.mjs'

export async function bundleExtension() {
  if (!existsSync(inRoot(ENTRY))) throw new Failure(`${ENTRY} is not there: nothing to bundle`)
  const { build } = await import('esbuild')
  const result = await build({
    absWorkingDir: root,
    entryPoints: [ENTRY],
    outfile: BUNDLE,
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    charset: 'utf8',
    legalComments: 'inline',
    logLevel: 'warning',
  })
  refuseForeignCode(result.metafile)
  mkdirSync(inRoot('dist'), { recursive: true })
  return writeIfChanged(inRoot(BUNDLE), result.outputFiles[0].text) ? BUNDLE : 'unchanged'
}

/** A host package or a dependency would not resolve in every pi, and a bundled copy of one would be a second, older host. */
function refuseForeignCode({ inputs, outputs }) {
  const bundled = Object.keys(inputs).filter((file) => !file.startsWith('extension/'))
  const imported = Object.values(outputs)
    .flatMap((output) => output.imports)
    .filter(({ path, external }) => external && !isBuiltin(path))
    .map(({ path }) => path)
  const foreign = [...bundled, ...imported]
  if (foreign.length > 0)
    throw new Failure(
      `The extension may use Node.js built-ins and its own files only, it also needs: ${foreign.join(', ')}`,
    )
}
