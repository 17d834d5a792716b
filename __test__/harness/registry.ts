import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { run } from './processes.ts'

interface Manifest {
  name: string
  version: string
  [member: string]: unknown
}

interface Tarball {
  file: string
  data: Buffer
  manifest: Manifest
}

/**
 * An npm registry on 127.0.0.1 that knows the tarballs of one folder and nothing else: whatever pi or npm asks for
 * beside them fails, and everything that was asked for can be looked up.
 */
export class Registry {
  /** Names of the packages whose metadata were asked for, in order, unknown ones included. */
  readonly asked: string[] = []
  /** Names of the packages whose tarballs were fetched, in order. */
  readonly fetched: string[] = []
  readonly manifests: Manifest[]
  #tarballs: Tarball[]
  #server = createServer((request, response) => {
    request.resume()
    const path = decodeURIComponent(new URL(request.url ?? '/', this.url).pathname).slice(1)
    const tarball = this.#tarballs.find(({ file }) => path === `-/tarballs/${file}`)
    if (tarball) {
      this.fetched.push(tarball.manifest.name)
      response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(tarball.data)
      return
    }
    const found = this.#tarballs.filter(({ manifest }) => manifest.name === path)
    if (!path.startsWith('-/')) this.asked.push(path)
    const answer = found.length > 0 ? this.#packument(path, found) : { error: 'not found' }
    response
      .writeHead(found.length > 0 || path.startsWith('-/') ? 200 : 404, {
        'content-type': 'application/json',
      })
      .end(JSON.stringify(answer))
  })

  private constructor(tarballs: Tarball[]) {
    this.#tarballs = tarballs
    this.manifests = tarballs.map(({ manifest }) => manifest)
  }

  static async start(folder: string): Promise<Registry> {
    const tarballs = readdirSync(folder)
      .filter((file) => file.endsWith('.tgz'))
      .map(async (file) => {
        const unpacked = await run(['tar'], ['-xzOf', file, 'package/package.json'], {
          cwd: folder,
          env: { PATH: process.env.PATH ?? '' },
        })
        if (unpacked.code !== 0) throw new Error(`${file}: ${unpacked.stderr}`)
        return {
          file,
          data: readFileSync(join(folder, file)),
          manifest: JSON.parse(unpacked.stdout) as Manifest,
        }
      })
    const registry = new Registry(await Promise.all(tarballs))
    await new Promise<void>((resolve) => registry.#server.listen(0, '127.0.0.1', resolve))
    return registry
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
  }

  close(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  #packument(name: string, tarballs: Tarball[]) {
    const versions = Object.fromEntries(
      tarballs.map(({ file, data, manifest }) => [
        manifest.version,
        {
          ...manifest,
          _id: `${name}@${manifest.version}`,
          dist: {
            tarball: `${this.url}-/tarballs/${encodeURIComponent(file)}`,
            integrity: `sha512-${createHash('sha512').update(data).digest('base64')}`,
            shasum: createHash('sha1').update(data).digest('hex'),
          },
        },
      ]),
    )
    return { _id: name, name, 'dist-tags': { latest: tarballs.at(-1)?.manifest.version }, versions }
  }
}
