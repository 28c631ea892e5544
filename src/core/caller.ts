import { hash } from 'node:crypto'
import type { AccessKey, KeyLimits } from '../config/settings.js'
import { GatewayError } from './errors.js'
import type { Sharer } from './fair-share.js'

/** SHA-256 of a key, in hex. */
export const digestOfKey = (key: string): string => hash('sha256', key, 'hex')

/** What a request sent as its key, valid or not. */
export interface SentKey {
  readonly token: string
  readonly sha256: string
}

/** Signal for long work that its caller's key was revoked or has expired. */
export class KeyRevocation {
  private readonly listeners = new Set<() => void>()
  private over = false

  get isOver(): boolean {
    return this.over
  }

  /** Calls back once, when the key is revoked or has expired; at once when it is. Returns the way to unsubscribe. */
  onOver(listener: () => void): () => void {
    if (this.over) {
      listener()
      return () => undefined
    }
    this.listeners.add(listener)
    return () => {
      this.listeners.delete(listener)
    }
  }

  end(): void {
    this.over = true
    const listeners = [...this.listeners]
    this.listeners.clear()
    for (const listener of listeners) listener()
  }
}

/** What ends a stream whose key works no more. */
export const keyRevoked = (): GatewayError => new GatewayError('unauthorized', 'The API key is not valid any more.')

/** Compiles globs (`*` is the only wildcard, case matters) into one predicate; absent globs allow every name. */
export function globMatcher(globs: readonly string[] | undefined): (name: string) => boolean {
  if (globs === undefined) return () => true
  const exact = new Set(globs.filter((glob) => !glob.includes('*')))
  const patterns = globs.filter((glob) => glob.includes('*')).map(globPattern)
  return (name) => exact.has(name) || patterns.some((matches) => matches(name))
}

/** Linear in the name, which is as long as a caller makes it; a regular expression with several `.*` is not. */
function globPattern(glob: string): (name: string) => boolean {
  const [first = '', ...middle] = glob.split(/\*+/)
  const last = middle.pop() ?? ''
  return (name) => {
    const end = name.length - last.length
    if (end < first.length || !name.startsWith(first) || !name.endsWith(last)) return false
    let position = first.length
    for (const part of middle) {
      const found = name.indexOf(part, position)
      if (found === -1 || found + part.length > end) return false
      position = found + part.length
    }
    return true
  }
}

/**
 * Who calls. `keyId` is the only thing about a key that reaches logs, metrics or usage. `bearer` is kept solely for
 * channels with `credentials: caller` and is set only when the gateway does not know the key, so that a key of the
 * gateway's own can never be handed to an upstream.
 */
export interface Caller {
  readonly keyId: string
  readonly models?: readonly string[]
  /** Absent = none. */
  readonly limits?: KeyLimits
  readonly bearer?: string
  /** Takes no translation that approximates or drops anything; absent = does. */
  readonly isStrict?: boolean
  /** Of a key that can be revoked, or expire, while something runs with it. */
  readonly revocation?: KeyRevocation
}

export const callerOfKey = ({ id, models, limits, translation }: AccessKey, revocation?: KeyRevocation): Caller => ({
  keyId: id,
  ...(models === undefined ? {} : { models }),
  ...(limits === undefined ? {} : { limits }),
  ...(translation === undefined ? {} : { isStrict: true }),
  ...(revocation === undefined ? {} : { revocation }),
})

/** The id of all callers without a key of the gateway, as labels must be bounded; no key may have it. */
export const UNKNOWN_KEY_ID = 'caller'

/** A caller with an upstream key of its own. */
export const callerWithOwnBearer = (bearer: string): Caller => ({ keyId: UNKNOWN_KEY_ID, bearer })

/** Enough of a SHA-256 that two bearers never share an owner. */
const BEARER_DIGITS = 32

/** No key id has a colon. */
export const BEARER_PREFIX = 'bearer:'

/**
 * Whom something belongs to that a caller made or paid for: the id of a known key, or a part of the digest of a bearer of
 * the caller's own, from which nothing of it can be read. Rows in the store carry it: it must stay as it is.
 */
export const ownerOf = ({ keyId, bearer }: Caller): string =>
  bearer === undefined ? keyId : `${BEARER_PREFIX}${digestOfKey(bearer).slice(0, BEARER_DIGITS)}`

/** Whether an owner is a caller with a bearer of its own, of which any number can be invented. */
export const isOwnBearer = (ownerId: string): boolean => ownerId.startsWith(BEARER_PREFIX)

/** An owner as one of those that share something. */
export const sharerOfOwner = (ownerId: string): Sharer =>
  isOwnBearer(ownerId) ? { keyId: UNKNOWN_KEY_ID, member: ownerId } : { keyId: ownerId }

/** Digests cost more than the counting that they are made for. */
const sharers = new WeakMap<Caller, Sharer>()

/** A caller as one of those that share something. */
export function sharerOf(caller: Caller): Sharer {
  if (caller.bearer === undefined) return caller
  let sharer = sharers.get(caller)
  if (sharer === undefined) {
    sharer = { keyId: caller.keyId, member: ownerOf(caller) }
    sharers.set(caller, sharer)
  }
  return sharer
}
