import type { Socket } from 'node:net'
import { expect } from '@jest/globals'
import { ConfigStore } from '../../src/config/config-store.js'
import { parseConfig } from '../../src/config/load-config.js'
import { collect } from '../../src/core/byte-source.js'
import { GuardedClient, type GuardedRequest } from '../../src/upstream/safe-fetch.js'
import { AddressRefused, type ResolveHost } from '../../src/upstream/ssrf-guard.js'
import type { UpstreamResponse } from '../../src/upstream/upstream-exchange.js'
import { GENEROUS_TIMEOUTS, newCall, type RawUpstream, startRawUpstream } from './raw-upstream.js'

/** Well below the deadlines that end a fetch when the one under test does not. */
export const SOON_MS = 8000

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

export const redirectTo = (location: string, status = 302): string =>
  `HTTP/1.1 ${status} Found\r\nlocation: ${location}\r\ncontent-length: 3\r\n\r\nbye`

const configOf = (allow: readonly string[]) => parseConfig(JSON.stringify({ ssrf: { allow } }), {})

/** A server on this machine, and a client that may fetch from it by its address and as `files.test`. */
export class GuardedLab {
  readonly heads: string[] = []
  /** What the server does with the next requests, by path. */
  readonly answers: Record<string, string | ((socket: Socket) => void)> = {}
  /** Names that were resolved, in order; each resolves to this machine. */
  readonly resolved: string[] = []
  /** Exemptions after the next reload. */
  allowed: string[]
  readonly store: ConfigStore
  readonly client: GuardedClient
  resolve: ResolveHost = (host) => {
    this.resolved.push(host)
    return Promise.resolve([{ address: '127.0.0.1', family: 4 }])
  }

  private constructor(readonly upstream: RawUpstream) {
    this.allowed = [`127.0.0.1:${upstream.port}`, `files.test:${upstream.port}`]
    const read = () => Promise.resolve({ config: configOf(this.allowed), file: '' })
    this.store = new ConfigStore(configOf(this.allowed), read)
    this.client = new GuardedClient(this.store, (host) => this.resolve(host))
  }

  static async start(): Promise<GuardedLab> {
    const upstream = await startRawUpstream((socket, head) => {
      lab.heads.push(head)
      const answer = lab.answers[head.split(' ')[1] ?? ''] ?? OK
      if (typeof answer === 'string') socket.write(answer)
      else answer(socket)
    })
    const lab = new GuardedLab(upstream)
    return lab
  }

  get(path: string, changes: Partial<GuardedRequest> = {}, host = '127.0.0.1'): Promise<UpstreamResponse> {
    return this.fetchUrl(`http://${host}:${this.upstream.port}${path}`, changes)
  }

  fetchUrl(url: string, changes: Partial<GuardedRequest> = {}): Promise<UpstreamResponse> {
    const deadlineAtMs = performance.now() + 20_000
    return this.client.get(url, { call: newCall(), deadlineAtMs, timeouts: GENEROUS_TIMEOUTS, ...changes })
  }

  async close(): Promise<void> {
    await this.client.onApplicationShutdown()
    await this.upstream.close()
  }
}

export const textOf = async ({ body }: UpstreamResponse): Promise<string> =>
  (
    await collect(body, Infinity, () => {
      throw new Error('unreachable')
    })
  ).toString()

/** A refused URL, as it looks when an upstream sent it. */
export const refused = expect.objectContaining({
  kind: 'upstream_failed',
  details: { cause: expect.any(AddressRefused), attempt: { phase: 'answered', channelFault: true } },
})
