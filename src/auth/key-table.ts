import { randomInt } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import { ISSUED_PREFIX } from '../config/auth-schema.js'
import { ConfigStore } from '../config/config-store.js'
import type { AccessKey, GatewayConfig } from '../config/settings.js'
import {
  type Caller,
  callerOfKey,
  callerWithOwnBearer,
  digestOfKey,
  KeyRevocation,
  type SentKey,
} from '../core/caller.js'
import { GatewayError } from '../core/errors.js'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 256 bits. */
const CHARACTERS = 43
/** 24 bits: enough to distinguish one's own keys, no help for guessing the rest. */
const HINT_CHARACTERS = 4

/** A new key: the prefix and 256 random bits. Its only copy. */
export function newKey(prefix = ISSUED_PREFIX): string {
  let key = prefix
  for (let count = 0; count < CHARACTERS; count++) key += ALPHABET.charAt(randomInt(ALPHABET.length))
  return key
}

/** How a key that was issued begins. */
export const hintOf = (key: string): string => key.slice(0, ISSUED_PREFIX.length + HINT_CHARACTERS)

/** More keys than are removed while a process runs. */
const MAXIMUM_REMEMBERED = 10_000

/**
 * SHA-256 of keys, in hex, that were the gateway's own and are not any more. Their holders may still send them, and what
 * is not known may be passed on to an upstream.
 */
class PastDigests {
  /** The longest known come first. */
  private readonly digests = new Set<string>()

  add(sha256: string): void {
    this.digests.add(sha256)
    if (this.digests.size <= MAXIMUM_REMEMBERED) return
    for (const oldest of this.digests) {
      this.digests.delete(oldest)
      return
    }
  }

  has(sha256: string): boolean {
    return this.digests.has(sha256)
  }
}

/** A key out of the store. Times are Unix milliseconds. */
export interface StoredKey extends AccessKey {
  readonly isRevoked: boolean
  /** Absent = never. */
  readonly expiresAtMs?: number
  /** Tells which of two versions of a key is the newer one. */
  readonly updatedAtMs: number
}

/** What the store says about a key, found by its hash. */
type KeyLookup =
  | { readonly status: 'valid'; readonly key: AccessKey; readonly revocation: KeyRevocation }
  | { readonly status: 'revoked' | 'expired' | 'unknown' }

interface Entry {
  readonly key: StoredKey
  /** Outlives the versions of a key; begun anew when one that had expired is given more time. */
  readonly revocation: KeyRevocation
}

const UNKNOWN: KeyLookup = { status: 'unknown' }

/**
 * The keys of the store as this process last read them, so that no caller waits for the store. Revoked keys are
 * kept as such: an older reading that is late must not bring one back to life.
 */
@Injectable()
export class StoredKeys {
  private readonly entries = new Map<string, Entry>()
  private readonly deleted = new PastDigests()
  private awaited = false

  /** There are keys in a store, and they have not been read yet: no key is known not to exist. */
  get isAwaited(): boolean {
    return this.awaited
  }

  await(): void {
    this.awaited = true
  }

  /** What holds of a key now, by its SHA-256 in hex. */
  lookUp(sha256: string): KeyLookup {
    const entry = this.entries.get(sha256)
    if (entry === undefined) return UNKNOWN
    const { key } = entry
    if (key.isRevoked) return { status: 'revoked' }
    return hasExpired(key, Date.now()) ? { status: 'expired' } : { status: 'valid', key, revocation: entry.revocation }
  }

  /** Whether a SHA-256 in hex is that of a key that was deleted, while this process runs. */
  wasOurs(sha256: string): boolean {
    return this.deleted.has(sha256)
  }

  /** Takes over what is newer than what is known. */
  learn(keys: Iterable<StoredKey>): void {
    for (const key of keys) {
      const known = this.entries.get(key.sha256)
      if (known !== undefined && known.key.updatedAtMs >= key.updatedAtMs) continue
      const revocation = known?.revocation.isOver === false ? known.revocation : new KeyRevocation()
      this.entries.set(key.sha256, { key, revocation })
    }
    this.endRevokedAndExpired()
  }

  /** The same for all keys there are; one that is missing and was not changed since `sinceMs` has been deleted. */
  learnAll(keys: readonly StoredKey[], sinceMs: number): void {
    const present = new Set(keys.map(({ sha256 }) => sha256))
    for (const [sha256, { key, revocation }] of this.entries) {
      if (present.has(sha256) || key.updatedAtMs >= sinceMs) continue
      this.entries.delete(sha256)
      this.deleted.add(sha256)
      revocation.end()
    }
    this.awaited = false
    this.learn(keys)
  }

  private endRevokedAndExpired(): void {
    const nowMs = Date.now()
    for (const { key, revocation } of this.entries.values()) {
      if (!revocation.isOver && (key.isRevoked || hasExpired(key, nowMs))) revocation.end()
    }
  }
}

const hasExpired = ({ expiresAtMs }: StoredKey, nowMs: number): boolean =>
  expiresAtMs !== undefined && expiresAtMs <= nowMs

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
 * those of the store. How long a look-up takes depends on digests alone, which cannot be chosen, so it reveals nothing about
 * a key. Synchronous: no caller waits for the store.
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

  /**
   * Who calls with a token, whose digest may have been made already (`sent`). Throws `unauthorized` for an unknown token, `overloaded`
   * while that is not known yet.
   */
  identify(token: string, sent?: SentKey): Caller {
    const digest = sent?.token === token ? sent.sha256 : digestOfKey(token)
    const configured = this.configured.callers.get(digest)
    if (configured !== undefined) return configured
    const found = this.lookUpStored(digest)
    if (found.status === 'valid') return this.storedCaller(found)
    if (found.status === 'revoked' || found.status === 'expired')
      throw unauthorized(`The API key has ${WORDS[found.status]}.`)
    // Another replica may have issued it a moment ago.
    if (token.startsWith(ISSUED_PREFIX)) throw this.stored.isAwaited ? notReadYet() : unauthorized(INVALID)
    if (this.acceptsUnknownKeys && found.status === 'unknown' && !this.isOurs(digest)) return callerWithOwnBearer(token)
    throw unauthorized(INVALID)
  }

  /** Whether a text is a key of the gateway's own, past ones included: it belongs into no log. */
  knows(text: string): boolean {
    const digest = digestOfKey(text)
    return this.configured.callers.has(digest) || this.stored.lookUp(digest).status !== 'unknown' || this.isOurs(digest)
  }

  /** The id of a key that is valid now, by its digest. Never throws. */
  idOf(digest: string): string | undefined {
    const configured = this.configured.callers.get(digest)
    if (configured !== undefined) return configured.keyId
    const found = this.lookUpStored(digest)
    return found.status === 'valid' ? found.key.id : undefined
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
  private lookUpStored(digest: string): KeyLookup | { readonly status: 'void' } {
    const found = this.stored.lookUp(digest)
    return found.status === 'valid' && this.hasConfigured(found.key.id) ? { status: 'void' } : found
  }

  private storedCaller({ key, revocation }: Extract<KeyLookup, { status: 'valid' }>): Caller {
    const known = this.storedCallers.get(key)
    if (known !== undefined) return known
    const caller = callerOfKey(key, revocation)
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
