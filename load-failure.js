// Puts into words why no native library could be loaded: what was tried, what stands in the way, and what to do about it.

const OVERRIDE = 'PI_X_IDE_NATIVE_LIBRARY'

/** Every platform that has a prebuilt library. */
const TARGETS = [
  'linux-x64-gnu',
  'linux-arm64-gnu',
  'linux-x64-musl',
  'linux-arm64-musl',
  'darwin-x64',
  'darwin-arm64',
  'win32-x64-msvc',
  'win32-arm64-msvc',
]

/** What is wrong with a file, by the stage at which it failed (see `open` in index.js). */
const STAGES = {
  path: { code: 'PIX_NATIVE_MISSING', problem: () => 'not an absolute path' },
  package: { code: 'PIX_NATIVE_MISSING', problem: () => 'not installed' },
  manifest: { code: 'PIX_NATIVE_MISSING', problem: quoting('the package.json beside it cannot be read') },
  file: { code: 'PIX_NATIVE_MISSING', problem: quoting('no such file') },
  description: { code: 'PIX_NATIVE_MISSING', problem: quoting('the native.json beside it cannot be read') },
  version: { code: 'PIX_NATIVE_VERSION', problem: ({ is }, version) => `version ${is}, needs ${version}` },
  size: {
    code: 'PIX_NATIVE_TRUNCATED',
    problem: ({ is, shouldBe }) => `has ${is} bytes, should have ${shouldBe}`,
  },
  load: { code: 'PIX_NATIVE_LOAD', problem: quoting('cannot be loaded') },
  identity: { code: 'PIX_NATIVE_LOAD', problem: quoting('not the library of pi-x-ide') },
  'loaded version': {
    code: 'PIX_NATIVE_VERSION',
    problem: ({ is }, version) => `version ${is} is loaded, needs ${version}`,
  },
}

const SUMMARY = {
  PIX_NATIVE_MISSING: 'is not there',
  PIX_NATIVE_VERSION: 'has another version',
  PIX_NATIVE_TRUNCATED: 'is incomplete',
  PIX_NATIVE_LOAD: 'cannot be loaded',
}

/** The error to throw: `code`, `message`, `cause`, and `tried: { file, problem }[]`. */
function failure(misfits, { version, isCheckout }) {
  const [{ target, isOverride }] = misfits
  if (!isOverride && !TARGETS.includes(target)) return unsupported()
  const tried = misfits.map((misfit) => ({
    file: misfit.file,
    problem: STAGES[misfit.stage].problem(misfit, version),
  }))
  const reason =
    misfits.find((misfit) => misfit.target === target && codeOf(misfit) !== 'PIX_NATIVE_MISSING') ??
    misfits[0]
  const { problem } = tried[misfits.indexOf(reason)]
  const code = codeOf(reason)
  const message = [
    `The native library of pi-x-ide ${SUMMARY[code]} (${process.platform} ${process.arch}):`,
    ...tried.map((one) => `  ${one.file}: ${one.problem}`),
    advice(reason, { isCheckout, problem }),
  ].join('\n')
  return Object.assign(new Error(message, { cause: reason.cause ?? new Error(problem) }), { code, tried })
}

const codeOf = ({ stage }) => STAGES[stage].code

function advice({ stage, isOverride }, { isCheckout, problem }) {
  if (isOverride) return `Correct or unset ${OVERRIDE}.`
  // Removed first: npm looks at names and versions only, and takes a damaged package for one that is installed already.
  const mend = isCheckout ? 'run: npm run build' : 'run: pi remove npm:pi-x-ide && pi install npm:pi-x-ide'
  if (stage === 'loaded version') {
    return `Restart pi: a process keeps the library that it has loaded, also after an update. If that is not it, ${mend}`
  }
  if (isCheckout) return `This is a source checkout, ${mend}`
  if (stage === 'version') return `An update left an old platform package behind. To mend it, ${mend}`
  if (stage === 'size')
    return `Its download or copy was cut short (is the disk full?). To get it again, ${mend}`
  if (problem.includes('GLIBC_'))
    return 'The C library of this system is too old: glibc 2.28 or newer is needed.'
  if (codeOf({ stage }) === 'PIX_NATIVE_LOAD') return `To replace it, ${mend}`
  return [
    'npm leaves platform packages out with --omit=optional, and when node_modules or a lock file comes from another system.',
    `To mend it, ${mend}`,
    'If that does not help, remove node_modules and package-lock.json of that folder in between.',
  ].join('\n')
}

function unsupported() {
  const message = [
    `pi-x-ide has no native library for ${process.platform} ${process.arch}, only for ${TARGETS.join(', ')}.`,
    `A library that you built yourself is loaded from the absolute path in ${OVERRIDE}.`,
  ].join('\n')
  return Object.assign(new Error(message), { code: 'PIX_UNSUPPORTED_PLATFORM', tried: [] })
}

/** A problem followed by the words of its cause, unless these only say that a file is absent. */
function quoting(problem) {
  return ({ file, cause }) => {
    if (cause.code === 'ENOENT') return problem
    const [firstLine] = String(cause.message ?? cause).split('\n', 1)
    return `${problem}: ${firstLine.replace(`${file}: `, '')}`
  }
}

exports.failure = failure
