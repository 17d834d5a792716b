// What a native library was really built for, read from its own bytes.
import { readFileSync } from 'node:fs'

/** The oldest glibc that a published library may ask for: Node.js 20 itself needs this one. */
export const GLIBC_FLOOR = '2.28'

const ELF_MACHINES = { 62: 'x64', 183: 'arm64' }
const MACHO_CPUS = { 16777223: 'x64', 16777228: 'arm64' }
const PE_MACHINES = { 34404: 'x64', 43620: 'arm64' }

/** `{ os, cpu }`, and for ELF files `glibc`: the newest glibc version that is asked for, if any. */
export function inspect(file) {
  const data = readFileSync(file)
  if (data.readUInt32BE(0) === 0x7f454c46) {
    return { os: 'linux', cpu: ELF_MACHINES[data.readUInt16LE(18)], glibc: newestGlibc(data) }
  }
  if (data.readUInt32LE(0) === 0xfeedfacf) return { os: 'darwin', cpu: MACHO_CPUS[data.readUInt32LE(4)] }
  if (data.toString('latin1', 0, 2) === 'MZ') {
    return { os: 'win32', cpu: PE_MACHINES[data.readUInt16LE(data.readUInt32LE(0x3c) + 4)] }
  }
  return {}
}

/** What is wrong with a library for a platform; empty when it fits. */
export function misfits(file, { os, cpu, libc }, { floor = false } = {}) {
  const found = inspect(file)
  const problems = []
  if (found.os !== os || found.cpu !== cpu)
    problems.push(`is built for ${found.os} ${found.cpu}, not ${os} ${cpu}`)
  if (libc === 'musl' && found.glibc) problems.push(`asks for glibc ${found.glibc} in a package for musl`)
  if (libc === 'glibc' && !found.glibc) problems.push('asks for no glibc in a package for glibc')
  if (floor && libc === 'glibc' && found.glibc && isNewer(found.glibc, GLIBC_FLOOR)) {
    problems.push(`asks for glibc ${found.glibc}, newer than ${GLIBC_FLOOR}`)
  }
  return problems
}

function newestGlibc(data) {
  const versions = [...data.toString('latin1').matchAll(/GLIBC_(\d+\.\d+)/g)].map((match) => match[1])
  return versions.reduce(
    (newest, version) => (!newest || isNewer(version, newest) ? version : newest),
    undefined,
  )
}

function isNewer(a, b) {
  const [[majorA, minorA], [majorB, minorB]] = [a, b].map((version) => version.split('.').map(Number))
  return majorA > majorB || (majorA === majorB && minorA > minorB)
}
