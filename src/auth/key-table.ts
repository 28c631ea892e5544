import { hash } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import type { AccessKey } from '../config/access-config.js'
import { ConfigStore } from '../config/config-store.js'
import { ISSUED_PREFIX } from '../config/issued-prefix.js'
import type { GatewayConfig } from '../config/settings.js'
import { type Caller, callerOfKey, callerWithOwnBearer } from '../core/caller.js'
import { GatewayError } from '../core/gateway-error.js'
import { PastDigests } from './past-digests.js'
import { StoredKeys, type StoredVerdict } from './stored-keys.js'

/** By then a store that starts together with the gateway has answered. */
const RETRY_AFTER_SECONDS = 2

interface Configured {
  /** By the SHA-256 of their keys. */
  readonly callers: ReadonlyMap<string, Caller>
  readonly ids: ReadonlySet<string>
  readonly adminSha256: string | undefined
  readonly hasCallerChannel: boolean
}

/**
 * The gateway's keys by the SHA-256 of the whole key: those of the configuration, rebuilt at once when it changes, and
 * those of the store. How long a look-up takes depends on digests alone, which nobody can choose, so it tells nothing about
 * a key. Synchronous: whoever calls never waits for the store.
 */
@Injectable()
export class KeyTable {
  private configured: Configured
  private readonly removed = new PastDigests()
  /** Of keys of the store: the same key is the same caller. */
  private readonly storedCallers = new WeakMap<AccessKey, Caller>()

  constructor(
    store: ConfigStore,
    private readonly stored: StoredKeys,
  ) {
    this.configured = configuredBy(store.current)
    store.onChange((next) => {
      const previous = this.configured
      this.configured = configuredBy(next)
      this.rememberRemoved(previous)
    })
  }

  /** Who calls with a token. Throws `unauthorized` when nobody can, `overloaded` while nobody can say yet. */
  identify(token: string): Caller {
    const digest = hash('sha256', token, 'hex')
    const configured = this.configured.callers.get(digest)
    if (configured !== undefined) return configured
    const found = this.judgeStored(digest)
    if (found.verdict === 'valid') return this.storedCaller(found)
    if (found.verdict === 'revoked' || found.verdict === 'expired')
      throw unauthorized(`The API key has ${WORDS[found.verdict]}.`)
    // Another replica may have issued it a moment ago.
    if (token.startsWith(ISSUED_PREFIX)) throw this.stored.isAwaited ? notReadYet() : unauthorized(INVALID)
    if (this.acceptsUnknownKeys && found.verdict === 'unknown' && !this.isOurs(digest))
      return callerWithOwnBearer(token)
    throw unauthorized(INVALID)
  }

  /** Whether some channel passes the caller's own key on, so that an unknown key may still be served. */
  get acceptsUnknownKeys(): boolean {
    return this.configured.hasCallerChannel
  }

  /** Whether the configuration has a key of this id. */
  hasConfigured(id: string): boolean {
    return this.configured.ids.has(id)
  }

  /** An id means one caller: where the configuration has taken over one of the store, the store's key is void. */
  private judgeStored(digest: string): StoredVerdict | { readonly verdict: 'void' } {
    const found = this.stored.judge(digest)
    return found.verdict === 'valid' && this.hasConfigured(found.key.id) ? { verdict: 'void' } : found
  }

  private storedCaller({ key, standing }: Extract<StoredVerdict, { verdict: 'valid' }>): Caller {
    const known = this.storedCallers.get(key)
    if (known !== undefined) return known
    const caller = callerOfKey(key, standing)
    this.storedCallers.set(key, caller)
    return caller
  }

  /** No key of the gateway's own may ever be handed to an upstream, past ones as little as the operator's. */
  private isOurs(digest: string): boolean {
    return digest === this.configured.adminSha256 || this.removed.has(digest) || this.stored.wasOurs(digest)
  }

  private rememberRemoved({ callers, adminSha256 }: Configured): void {
    for (const digest of callers.keys()) if (!this.configured.callers.has(digest)) this.removed.add(digest)
    if (adminSha256 !== undefined) this.removed.add(adminSha256)
  }
}

const INVALID = 'The API key is not valid.'
const WORDS = { revoked: 'been revoked', expired: 'expired' } as const

const unauthorized = (message: string): GatewayError => new GatewayError('unauthorized', message)

const notReadYet = (): GatewayError =>
  new GatewayError('overloaded', 'The API keys have not been read yet.', { retryAfterSeconds: RETRY_AFTER_SECONDS })

const configuredBy = ({ auth, channels }: GatewayConfig): Configured => ({
  callers: new Map(auth.keys.map((key) => [key.sha256, callerOfKey(key)])),
  ids: new Set(auth.keys.map(({ id }) => id)),
  adminSha256: auth.adminKey?.sha256,
  hasCallerChannel: channels.some(({ credentials }) => credentials.kind === 'caller'),
})
