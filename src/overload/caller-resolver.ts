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

/** Texts that are keys, as they were sent. */
const MAXIMUM_KNOWN = 4_096
/** How long a key is known after it was found: it may have been revoked, or its id have another key, since. */
const KNOWN_MS = 1_000
/** No key is as long (`auth/key.guard.ts`). */
const LONGEST_TEXT = 520
const SCHEME = /^bearer;? */i

/**
 * Tells callers apart before their requests are judged, for fairness only: nothing is allowed by it. A key is found by its digest,
 * which takes three microseconds, at most once a second; callers without one are told apart by their address, as all else can be invented.
 */
export class CallerResolver {
  private readonly known = new Map<string, Sharer>()
  private knownSinceMs = Number.NEGATIVE_INFINITY

  constructor(
    private readonly keyIdOf: (token: string) => string | undefined,
    private readonly trustedProxies: () => readonly string[],
    private readonly nowMs: () => number,
  ) {}

  of({ authorization, apiKey, forwardedFor, peer }: CallerHeaders): Sharer {
    // An empty header is none, as for the guard.
    const key = authorization || apiKey
    const byKey = key === undefined || key.length > LONGEST_TEXT ? undefined : this.byKey(key)
    if (byKey !== undefined) return byKey
    const proxies = this.trustedProxies()
    const address = proxies.length === 0 ? peer : addressBehind(peer, forwardedFor, proxies)
    return { keyId: UNKNOWN_KEY_ID, member: networkOf(address ?? '') }
  }

  private byKey(text: string): Sharer | undefined {
    const nowMs = this.nowMs()
    if (nowMs - this.knownSinceMs >= KNOWN_MS || this.known.size >= MAXIMUM_KNOWN) {
      this.known.clear()
      this.knownSinceMs = nowMs
    }
    const known = this.known.get(text)
    if (known !== undefined) return known
    const keyId = this.keyIdOf(text.replace(SCHEME, '').trimEnd())
    if (keyId === undefined) return undefined
    const found = { keyId }
    this.known.set(text, found)
    return found
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
