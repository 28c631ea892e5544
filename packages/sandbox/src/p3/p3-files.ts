import { randomBytes } from 'node:crypto'
import type { Exchange } from '../server/exchange.js'
import type { Frame } from '../server/response-stream.js'

const MOST_FILES = 1000

/** Something a link leads to: made again for each download, so that links cost no memory. */
export interface P3File {
  readonly contentType: string
  readonly frames: () => Iterable<Frame>
  /** Too large to be joined: sent without Content-Length. */
  readonly flat: boolean
}

/** The storage behind the links of P3's answers. A link lives `lifetimeMs`. */
export class P3Files {
  readonly #files = new Map<string, P3File & { readonly expiresAtMs: number }>()

  constructor(private readonly lifetimeMs: number) {}

  /** Path under which the file can be got from now on; without a file the link is dead. */
  publish(extension: string, file: P3File | undefined): string {
    const path = `/files/${randomBytes(16).toString('hex')}.${extension}`
    if (file !== undefined) this.#files.set(path, { ...file, expiresAtMs: performance.now() + this.lifetimeMs })
    const oldest = this.#files.size > MOST_FILES ? this.#files.keys().next().value : undefined
    if (oldest !== undefined) this.#files.delete(oldest)
    return path
  }

  /** Answers a GET of a link. The storage belongs to someone else, so a credential sent to it is a violation. */
  async serve(exchange: Exchange): Promise<void> {
    const { request } = exchange
    for (const name of ['authorization', 'x-api-key', 'cookie']) {
      if (request.headers[name] !== undefined) request.violations.push(`credential sent to a file link: ${name}`)
    }
    const file = this.#files.get(request.path)
    if (file === undefined || file.expiresAtMs <= performance.now()) {
      this.#files.delete(request.path)
      await exchange.send(404, { 'content-type': 'application/xml' }, '<Error><Code>NoSuchKey</Code></Error>')
      return
    }
    const headers = { 'content-type': file.contentType, 'x-oss-object-type': 'Normal' }
    if (file.flat) await exchange.stream(200, headers, file.frames())
    else await exchange.send(200, headers, Buffer.concat(Array.from(file.frames(), (frame) => Buffer.from(frame))))
  }
}
