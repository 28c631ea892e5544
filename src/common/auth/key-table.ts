import { hash, timingSafeEqual } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../../config/config-store.js'
import type { AccessKey, GatewayConfig } from '../../config/gateway-config.js'
import { GatewayError } from '../errors/gateway-error.js'
import { type Caller, callerOfKey, callerWithOwnBearer } from './caller.js'

interface TableEntry {
  readonly key: AccessKey
  readonly digest: Buffer
}

/** The gateway's keys by the SHA-256 of the whole key; rebuilt at once when the configuration changes. */
@Injectable()
export class KeyTable {
  private entries: ReadonlyMap<string, TableEntry>
  private anyCallerChannel: boolean

  constructor(store: ConfigStore) {
    this.entries = entriesOf(store.current)
    this.anyCallerChannel = hasCallerChannel(store.current)
    store.onChange((next) => {
      this.entries = entriesOf(next)
      this.anyCallerChannel = hasCallerChannel(next)
    })
  }

  /** The key that a token is, or undefined. The map finds a candidate by hash; the verdict is constant-time. */
  find(token: string): AccessKey | undefined {
    const digest = hash('sha256', token, 'hex')
    const entry = this.entries.get(digest)
    if (entry === undefined) return undefined
    return timingSafeEqual(entry.digest, Buffer.from(digest, 'latin1')) ? entry.key : undefined
  }

  /** Who calls with a token. Throws `unauthorized` when nobody can. */
  identify(token: string): Caller {
    const key = this.find(token)
    if (key !== undefined) return callerOfKey(key)
    if (this.acceptsUnknownKeys) return callerWithOwnBearer(token)
    throw new GatewayError('unauthorized', 'The API key is not valid.')
  }

  /** Whether some channel passes the caller's own key on, so that an unknown key may still be served. */
  get acceptsUnknownKeys(): boolean {
    return this.anyCallerChannel
  }
}

const entriesOf = (config: GatewayConfig): ReadonlyMap<string, TableEntry> =>
  new Map(config.auth.keys.map((key) => [key.sha256, { key, digest: Buffer.from(key.sha256, 'latin1') }]))

const hasCallerChannel = (config: GatewayConfig): boolean =>
  config.channels.some((channel) => channel.credentials.kind === 'caller')
