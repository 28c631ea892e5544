import type { IncomingMessage } from 'node:http'
import { digestOfKey, type SentKey, UNKNOWN_KEY_ID } from '../core/caller.js'
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

/** No key is as long (`auth/key.guard.ts`). */
const LONGEST_TEXT = 520
const SCHEME = /^bearer;? */i

/** What is sent as a key; undefined where there is nothing, or nothing that can be one. */
export function sentKeyOf({ authorization, apiKey }: CallerHeaders): SentKey | undefined {
  // An empty header is none, as for the guard.
  const text = authorization || apiKey
  if (text === undefined || text.length > LONGEST_TEXT) return undefined
  const token = text.replace(SCHEME, '').trimEnd()
  return { token, sha256: digestOfKey(token) }
}

/**
 * Tells callers apart before their requests are judged, for fairness only: nothing is allowed by it. Callers without a key are told apart
 * by their address, as all else can be invented.
 */
export class CallerResolver {
  constructor(
    /** The id of a key that is valid now, by its digest. */
    private readonly keyIdOf: (sha256: string) => string | undefined,
    private readonly trustedProxies: () => readonly string[],
  ) {}

  of({ forwardedFor, peer }: CallerHeaders, key: SentKey | undefined): Sharer {
    const keyId = key && this.keyIdOf(key.sha256)
    if (keyId !== undefined) return { keyId }
    const proxies = this.trustedProxies()
    const address = proxies.length === 0 ? peer : addressBehind(peer, forwardedFor, proxies)
    return { keyId: UNKNOWN_KEY_ID, member: networkOf(address ?? '') }
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
