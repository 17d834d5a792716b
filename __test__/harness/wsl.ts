import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect, createServer, type NetConnectOpts } from 'node:net'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Box } from './box.ts'
import { Editor } from './editor.ts'
import { end, type Finished, run } from './processes.ts'
import { until } from './until.ts'

/** Address of Windows for pi in NAT mode: its default gateway. */
export const GATEWAY = '172.20.0.1'
/** A host on the other side of the gateway. */
export const FAR_HOST = '198.51.100.7'
/** Windows users with a profile on drive C. Everything of the first one has mode 0777, as Windows drives show it. */
export const USERS = ['me', 'Other User'] as const
/** What else lies beside those profiles. */
export const NO_USERS = ['Public', 'Default', 'All Users', '.cache'] as const
/** A number of a Windows process that no process of Linux can have. */
export const WINDOWS_PID = 4_194_304 + 4242

const SIDES = {
  GATEWAY,
  FAR_HOST,
  GATEWAY_MAC: '02:00:00:00:00:01',
  WINDOWS_IP: '172.20.0.3',
  LINUX_IP: '172.20.0.2',
}

const beside = (name: string) => join(dirname(fileURLToPath(import.meta.url)), name)

// Whoever is not root gets the same rights in a user namespace, where the system allows those.
const isRoot = process.getuid?.() === 0
const UNSHARE = ['unshare', ...(isRoot ? [] : ['--map-root-user'])]
const enter = (pid: number, ...flags: string[]) => [
  'nsenter',
  '--target',
  String(pid),
  ...(isRoot ? [] : ['--user', '--preserve-credentials']),
  '--net',
  ...flags,
]

/** Why no WSL can be played on this machine; undefined where it can, and where only a tool is missing, which is a fault. */
export function whyNoNamespaces(): string | undefined {
  if (process.platform !== 'linux') return `${process.platform} has no namespaces`
  const [command, ...flags] = UNSHARE
  const attempt = 'mount -t tmpfs tmpfs /mnt && ip link add a type veth peer name b'
  const result = spawnSync(command as string, [...flags, '--mount', '--net', 'sh', '-c', attempt], {
    encoding: 'utf8',
  })
  const isForbidden = result.status !== 0 && /not permitted|permission denied/i.test(result.stderr)
  return isForbidden ? `namespaces are not permitted: ${result.stderr.trim()}` : undefined
}

export interface WslOptions {
  /** `mirrored` has the interface `loopback0`; the default gateway is then a stranger. Default: `nat`. */
  networking?: 'nat' | 'mirrored'
  /** What `/etc/wsl.conf` says about drives. Default: `/mnt/`. */
  automountRoot?: string
  /** Whether the project is `C:\work\app` instead of a folder of the distribution. */
  onDriveC?: boolean
}

/** A lock file of an editor on Windows. */
export type WindowsLock = Record<string, unknown>

/**
 * WSL, played by namespaces: the pi of a box gets a network with a default gateway, behind which is "Windows", and a
 * file system with `/etc/wsl.conf` and a drive C. What is on Windows runs in a network namespace of its own.
 */
export class Wsl {
  /** The project as pi sees it. */
  readonly cwd: string
  /** The project as Windows names it. */
  readonly folder: string
  #box: Box
  #windowsPid: number
  #linuxPid: number
  #count = 0

  private constructor(
    box: Box,
    cwd: string,
    folder: string,
    [windowsPid, linuxPid]: readonly [number, number],
  ) {
    this.#box = box
    this.cwd = cwd
    this.folder = folder
    this.#windowsPid = windowsPid
    this.#linuxPid = linuxPid
  }

  /** Every pi that is started in the box from now on runs in WSL. */
  static async start(
    box: Box,
    { networking = 'nat', automountRoot = '/mnt/', onDriveC = false }: WslOptions = {},
  ): Promise<Wsl> {
    const root = automountRoot.replace(/\/+$/, '')
    const cwd = onDriveC ? `${root}/c/work/app` : box.cwd
    const folder = onDriveC ? 'C:\\work\\app' : `\\\\wsl.localhost\\Ubuntu${box.cwd.replaceAll('/', '\\')}`
    const files = join(box.root, 'wsl')
    mkdirSync(join(files, 'drives/c/work/app'), { recursive: true })
    writeFileSync(join(files, 'wsl.conf'), `[automount]\nroot = ${automountRoot}\n`)
    writeFileSync(join(files, 'version'), 'Linux version 5.15.153.1-microsoft-standard-WSL2 (root@build)\n')
    const pids = await hold(box, {
      ...SIDES,
      MIRRORED: networking === 'mirrored' ? '1' : '',
      AUTOMOUNT_ROOT: root,
      BOX: files,
      PROJECT: box.cwd,
      PI_CWD: cwd,
    })
    const wsl = new Wsl(box, cwd, folder, pids)
    wsl.#makeProfiles()
    await wsl.#bringModel()
    const programs = `${root}/c/Users/${USERS[0]}/AppData/Local/Microsoft/WindowsApps`
    const variables = ['WSL_DISTRO_NAME=Ubuntu', `PATH=${box.env.PATH}:${programs}`]
    const inside = enter(pids[1], '--mount', '--root', '--wd')
    box.host = { ...box.host, command: [...inside, 'env', ...variables, ...box.host.command] }
    return wsl
  }

  /** Where a file of Windows lies for the tests. */
  drive(path: string): string {
    return join(this.#box.root, 'wsl/drives', path)
  }

  /** A command that runs where pi runs, to its end. */
  run(...args: readonly string[]): Promise<Finished> {
    return this.#run(enter(this.#linuxPid, '--mount', '--root', '--wd'), args)
  }

  /**
   * An editor of Windows with its lock in a profile. It listens on the 127.0.0.1 of Windows, which is not pi's; with
   * `sharesLoopback` it is the same, as in mirrored mode.
   */
  async startEditor({
    name = 'Windows Code',
    user = USERS[0] as string,
    sharesLoopback = false,
    lock = {} as WindowsLock,
  } = {}): Promise<{ editor: Editor; lockFile: string; lock: WindowsLock; port: number }> {
    const options = {
      name,
      workspaceFolders: [this.folder],
      lockDir: join(this.#box.root, `windows-locks-${++this.#count}`),
    }
    const network = enter(sharesLoopback ? this.#linuxPid : this.#windowsPid)
    const editor = await Editor.start(this.#box, options, network)
    // Windows has no machine id of this kind, and the process of the editor has a number of Windows there.
    const { hostId, ...written } = JSON.parse(readFileSync(editor.lockFile, 'utf8'))
    const changed = { ...written, pid: WINDOWS_PID, runningInWindows: true, ...lock }
    return { editor, lock: changed, lockFile: this.writeLock(user, changed), port: editor.port }
  }

  /** An editor of the distribution itself. */
  startLinuxEditor(): Promise<Editor> {
    return Editor.start(this.#box, { workspaceFolders: [this.cwd] }, enter(this.#linuxPid))
  }

  /** Puts a lock file into a profile, and returns its path as the tests see it. */
  writeLock(profile: string, lock: WindowsLock): string {
    const file = join(this.#lockFolder(profile), `${lock.ide}-${lock.pid}-${lock.port}.lock`)
    writeFileSync(file, JSON.stringify(lock))
    chmodSync(file, profile === USERS[0] ? 0o777 : 0o600)
    return file
  }

  /** Listens on the gateway and passes everything on to the editor with this port. */
  forward(port: number): Promise<Relay> {
    return this.#relay(this.#windowsPid, { host: GATEWAY, port }, { host: '127.0.0.1', port })
  }

  /** Listens on a host behind the gateway or on itself, never answers, and tells who came. */
  listen(host: string, port: number): Promise<Relay> {
    return this.#relay(this.#windowsPid, { host, port }, null)
  }

  /** From now on the gateway neither answers nor refuses, like a firewall. What is behind it is reached all the same. */
  async silenceGateway(): Promise<void> {
    await this.#onWindows('ip', 'addr', 'del', `${GATEWAY}/20`, 'dev', 'wsl0')
  }

  /** The gateway answers again, and refuses where nobody listens. */
  async unsilenceGateway(): Promise<void> {
    await this.#onWindows('ip', 'addr', 'add', `${GATEWAY}/20`, 'dev', 'wsl0')
  }

  #makeProfiles() {
    for (const name of [...USERS, ...NO_USERS]) {
      // On Windows it is a link, too.
      if (name === 'All Users') {
        mkdirSync(this.drive('c/ProgramData'))
        symlinkSync('../ProgramData', this.drive('c/Users/All Users'))
      }
      mkdirSync(this.#lockFolder(name), { recursive: true, mode: 0o700 })
    }
    writeFileSync(this.drive('c/Users/desktop.ini'), '')
    mkdirSync(this.drive(`c/Users/${USERS[0]}/AppData/Local/Microsoft/WindowsApps`), { recursive: true })
    const profile = this.drive(`c/Users/${USERS[0]}`)
    for (const name of ['', ...(readdirSync(profile, { recursive: true }) as string[])])
      chmodSync(join(profile, name), 0o777)
  }

  #lockFolder(profile: string): string {
    return this.drive(`c/Users/${profile}/.pi/pi-x-ide/lock`)
  }

  /** The model listens outside; pi reaches it under the same address by way of a socket that is a file. */
  async #bringModel() {
    const port = Number(new URL(this.#box.model.url).port)
    const path = join(this.#box.root, 'model')
    const outside = createServer((socket) => {
      const model = connect(port, '127.0.0.1')
      // Either end may be cut off when pi or the model ends; the other one follows.
      for (const [from, to] of [
        [socket, model],
        [model, socket],
      ] as const)
        from.on('error', () => to.destroy()).pipe(to)
    })
    await new Promise<void>((resolve) => outside.listen(path, resolve))
    this.#box.defer(() => void outside.close())
    await this.#relay(this.#linuxPid, { host: '127.0.0.1', port }, { path })
  }

  #relay(pid: number, listen: NetConnectOpts, target: NetConnectOpts | null): Promise<Relay> {
    return Relay.start(this.#box, enter(pid), listen, target)
  }

  async #onWindows(...args: readonly string[]): Promise<void> {
    const { code, stderr } = await this.#run(enter(this.#windowsPid), args)
    if (code !== 0) throw new Error(`${args.join(' ')}: ${stderr}`)
  }

  #run(inside: readonly string[], args: readonly string[]): Promise<Finished> {
    return run(inside, args, { cwd: this.#box.cwd, env: withSystemTools(this.#box.env) })
  }
}

/** `ip` is often on the path of root only. */
const withSystemTools = (env: Record<string, string>) => ({ ...env, PATH: `${env.PATH}:/usr/sbin:/sbin` })

/** Makes the namespaces and keeps them as long as the box; the process numbers that stand for Windows and for pi's side. */
async function hold(box: Box, variables: Record<string, string>): Promise<readonly [number, number]> {
  const [command, ...flags] = UNSHARE
  const child = spawn(command as string, [...flags, '--net', 'sh', beside('wsl.sh'), 'windows'], {
    cwd: box.root,
    env: { ...withSystemTools(box.env), ...variables },
  })
  box.defer(() => {
    child.stdin.end()
    return end(child)
  })
  const ready = await saying(child, 'the namespaces', (line) => /^ready (\d+) (\d+)$/.exec(line))
  return [Number(ready[1]), Number(ready[2])]
}

/** Waits for a line of a child's output that `found` knows, and returns what it made of it. Further lines go there, too. */
function saying<T>(child: ChildProcess, what: string, found: (line: string) => T): Promise<NonNullable<T>> {
  let stderr = ''
  let answer: T | undefined
  child.stdin?.on('error', () => {}) // a child that has ended is seen below
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    stderr += text
  })
  if (child.stdout)
    createInterface({ input: child.stdout }).on('line', (line) => {
      answer = found(line) ?? answer
    })
  return until(
    what,
    () => {
      if (!answer && child.exitCode !== null)
        throw new Error(`${what}: ended with ${child.exitCode}: ${stderr}`)
      return answer
    },
    { explain: () => stderr },
  )
}

/** A listener in one of the namespaces, and what has arrived there. */
export class Relay {
  connections = 0
  received = ''

  static async start(
    box: Box,
    inside: readonly string[],
    listen: NetConnectOpts,
    target: NetConnectOpts | null,
  ): Promise<Relay> {
    const [command, ...args] = inside
    const texts = [listen, target].map((options) => JSON.stringify(options))
    const child = spawn(command as string, [...args, process.execPath, beside('wsl-relay.mjs'), ...texts], {
      cwd: box.root,
      env: box.env,
    })
    box.defer(() => end(child))
    const relay = new Relay()
    await saying(child, `a listener on ${texts[0]}`, (line) => {
      const { ready, connections, received } = JSON.parse(line)
      relay.connections = connections ?? relay.connections
      relay.received += received ?? ''
      return ready as true | undefined
    })
    return relay
  }
}
