import type { IncomingMessage } from 'node:http'
import { UNKNOWN_KEY_ID } from '../core/caller.js'
import { isOfMessagesClient } from '../core/endpoint.js'
import type { Sharer } from '../core/fair-share.js'
import { addressBehind } from '../server/client-address.js'

/** What a request says of its caller before anything is checked. */
export interface CallerHeaders {
  readonly authorization: string | undefined
  readonly apiKey: string | undefined
  /** Whether it reads the messages dialect where a path has clients of two. */
  readonly isOfMessages: boolean
  readonly forwardedFor: string | undefined
  /** Address of the other end of the connection. */
  readonly peer: string | undefined
}

export function callerHeadersOf({ headers, socket }: IncomingMessage): CallerHeaders {
  const { authorization, 'x-api-key': apiKey, 'x-forwarded-for': forwarded } = headers
  return {
    authorization,
    apiKey: typeof apiKey === 'string' ? apiKey : undefined,
    isOfMessages: isOfMessagesClient(headers),
    forwardedFor: typeof forwarded === 'string' ? forwarded : forwarded?.join(','),
    peer: socket.remoteAddress,
  }
}

/** Of each of two generations: some four megabytes. */
const MAXIMUM_DIGESTS = 8_192
/** A key that is not used is forgotten after twice the time. */
const GENERATION_MS = 60_000
/** No key is as long (`auth/key.guard.ts`). */
const LONGEST_TEXT = 520
const SCHEME = /^bearer;? */i
const USUAL_SCHEME = 'Bearer '

/** Where keys are found. */
interface Keys {
  /** SHA-256 in hex. */
  readonly digestOf: (token: string) => string
  /** The id of a key that is valid now, by its digest. */
  readonly idOf: (digest: string) => string | undefined
}

/** Digests of keys by the header they came in. A digest takes three microseconds. */
class KeyDigests {
  #recent = new Map<string, string>()
  #older = new Map<string, string>()
  #begunAtMs = Number.NEGATIVE_INFINITY

  constructor(private readonly nowMs: () => number) {}

  find(text: string): string | undefined {
    const recent = this.#recent.get(text)
    if (recent !== undefined) return recent
    const older = this.#older.get(text)
    if (older !== undefined) this.keep(text, older)
    return older
  }

  keep(text: string, digest: string): void {
    const nowMs = this.nowMs()
    if (this.#recent.size >= MAXIMUM_DIGESTS || nowMs - this.#begunAtMs >= GENERATION_MS) {
      this.#older = this.#recent
      this.#recent = new Map()
      this.#begunAtMs = nowMs
    }
    // A copy: a part of a text keeps all of it, such as the head of a request.
    this.#recent.set(Buffer.from(text, 'latin1').toString('latin1'), digest)
  }

  forget(text: string): void {
    this.#recent.delete(text)
    this.#older.delete(text)
  }
}

/**
 * Tells callers apart before their requests are judged, for fairness only: nothing is allowed by it. Digests of keys in use are kept;
 * callers without a key are told apart by their address, as all else can be invented.
 */
export class CallerResolver {
  private readonly digests: KeyDigests

  constructor(
    private readonly keys: Keys,
    private readonly trustedProxies: () => readonly string[],
    nowMs: () => number,
  ) {
    this.digests = new KeyDigests(nowMs)
  }

  of({ authorization, apiKey, forwardedFor, peer }: CallerHeaders): Sharer {
    // An empty header is none, as for the guard.
    const key = authorization || apiKey
    const keyId = key === undefined || key.length > LONGEST_TEXT ? undefined : this.keyIdOf(key)
    if (keyId !== undefined) return { keyId }
    const proxies = this.trustedProxies()
    const address = proxies.length === 0 ? peer : addressBehind(peer, forwardedFor, proxies)
    return { keyId: UNKNOWN_KEY_ID, member: networkOf(address ?? '') }
  }

  private keyIdOf(text: string): string | undefined {
    const known = this.digests.find(text)
    const token = known === undefined ? text.replace(SCHEME, '').trimEnd() : ''
    const digest = known ?? this.keys.digestOf(token)
    const keyId = this.keys.idOf(digest)
    if (keyId === undefined) this.digests.forget(text)
    // Of the many ways to spell a header only the usual ones are kept.
    else if (known === undefined && (text === token || text === USUAL_SCHEME + token)) this.digests.keep(text, digest)
    return keyId
  }
}

const GROUPS = 8
const NETWORK_GROUPS = 4

/** An IPv6 client has a network of its own (/64), and as many addresses as it likes. */
export function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address
  const [head = '', tail] = address.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const between = Array.from({ length: Math.max(0, GROUPS - before.length - after.length) }, () => '0')
  return [...before, ...between, ...after].slice(0, NETWORK_GROUPS).join(':')
}
