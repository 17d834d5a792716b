import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import type { Host } from './hosts.ts'
import { FakeModel } from './model.ts'

/** Variables of the machine that a program needs to run at all; nothing else of the caller's environment gets into a box. */
const KEPT = ['PATH', 'USER', 'LOGNAME', 'SHELL', 'TZ', 'SYSTEMROOT', 'COMSPEC', 'PATHEXT']

export interface BoxOptions {
  /** Added to the environment of everything that runs in the box. */
  env?: Record<string, string>
  /** Milliseconds before each piece of the model's answer. */
  chunkDelayMs?: number
  /** A box whose home and installed packages this one starts with. */
  from?: Box
}

/**
 * A throw-away home, agent folder and project for one pi and one editor, with a model of its own.
 * Whatever is started in a box is registered with `defer` and ended by `close`, latest first.
 */
export class Box {
  /** Which pi, and what starts it; replaced by a harness that has it started somewhere else. */
  host: Host
  readonly root: string
  readonly home: string
  readonly agentDir: string
  /** The project: pi's working directory and the editor's workspace folder. */
  readonly cwd: string
  readonly npmPrefix: string
  readonly model: FakeModel
  readonly env: Record<string, string>
  #deferred: (() => unknown)[] = []

  private constructor(host: Host, model: FakeModel, options: BoxOptions) {
    this.host = host
    this.model = model
    // Kept short, since a socket path must fit into some hundred bytes, and real, since pi reports its own folder resolved.
    this.root = realpathSync(mkdtempSync(join(tmpdir(), 'pix-')))
    this.home = join(this.root, 'home')
    this.agentDir = join(this.home, '.pi/agent')
    this.cwd = join(this.root, 'proj')
    this.npmPrefix = join(this.root, 'npm')
    if (options.from) {
      for (const folder of ['home', 'npm'])
        cpSync(join(options.from.root, folder), join(this.root, folder), {
          recursive: true,
          verbatimSymlinks: true,
        })
    }
    for (const folder of [this.agentDir, this.cwd, this.npmPrefix, join(this.root, 'tmp')])
      mkdirSync(folder, { recursive: true })
    this.#writeAgentFiles()
    const kept = Object.fromEntries(
      KEPT.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name] as string]])),
    )
    this.env = {
      ...kept,
      PATH: [...(host.bin ? [host.bin] : []), process.env.PATH ?? ''].join(delimiter),
      HOME: this.home,
      TMPDIR: join(this.root, 'tmp'),
      XDG_RUNTIME_DIR: join(this.root, 'tmp'),
      LC_ALL: 'C.UTF-8',
      PI_CODING_AGENT_DIR: this.agentDir,
      // No start-up network call: tool downloads, version check, model catalogues, installs of missing packages.
      PI_OFFLINE: '1',
      PI_SKIP_VERSION_CHECK: '1',
      PI_TELEMETRY: '0',
      npm_config_cache: join(this.root, 'npm-cache'),
      npm_config_prefix: this.npmPrefix,
      npm_config_update_notifier: 'false',
      ...options.env,
    }
  }

  static async create(host: Host, options: BoxOptions = {}): Promise<Box> {
    return new Box(host, await FakeModel.start(options), options)
  }

  #writeAgentFiles() {
    const model = {
      id: 'fake-model',
      name: 'Fake',
      reasoning: false,
      input: ['text'],
      contextWindow: 128_000,
      maxTokens: 4096,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    }
    const fake = { baseUrl: this.model.url, api: 'openai-completions', apiKey: 'none', models: [model] }
    writeFileSync(join(this.agentDir, 'models.json'), JSON.stringify({ providers: { fake } }))
    const settings = join(this.agentDir, 'settings.json')
    const present = this.#readJson(settings)
    const defaults = { defaultProvider: 'fake', defaultModel: 'fake-model', enableInstallTelemetry: false }
    writeFileSync(settings, JSON.stringify({ ...present, ...defaults }))
  }

  #readJson(file: string): Record<string, unknown> {
    try {
      return JSON.parse(readFileSync(file, 'utf8'))
    } catch {
      return {}
    }
  }

  /** What `pi install` wrote into the settings of this box. */
  get packages(): unknown {
    return this.#readJson(join(this.agentDir, 'settings.json')).packages ?? []
  }

  /** Puts a file into the project and returns its absolute path. */
  write(name: string, content: string): string {
    const file = join(this.cwd, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
    return file
  }

  /** Runs `end` when the box is closed, before everything that was registered earlier. */
  defer(end: () => unknown): void {
    this.#deferred.push(end)
  }

  /** Ends what runs in the box and removes it (KEEP_BOX=1 leaves the folder and prints its name). */
  async close(): Promise<void> {
    const problems: unknown[] = []
    for (const end of this.#deferred.splice(0).reverse()) {
      try {
        await end()
      } catch (error) {
        problems.push(error)
      }
    }
    await this.model.close()
    if (process.env.KEEP_BOX) console.log(`${this.host.label}: kept ${this.root}`)
    else rmSync(this.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
    if (problems.length > 0) throw new AggregateError(problems, 'could not end everything in the box')
  }
}
