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

/** Texts whose digests are kept, some four megabytes. */
const MAXIMUM_DIGESTS = 16_384
/** No key is as long (`auth/key.guard.ts`). */
const LONGEST_TEXT = 520
const SCHEME = /^bearer;? */i

/** Where keys are found. */
interface Keys {
  /** SHA-256 in hex. */
  readonly digestOf: (token: string) => string
  /** The id of a key that is valid now, by its digest. */
  readonly idOf: (digest: string) => string | undefined
}

/**
 * Tells callers apart before their requests are judged, for fairness only: nothing is allowed by it. A digest takes three microseconds,
 * so those of keys are kept by the text they came in; callers without a key are told apart by their address, as all else can be invented.
 */
export class CallerResolver {
  private readonly digests = new Map<string, string>()

  constructor(
    private readonly keys: Keys,
    private readonly trustedProxies: () => readonly string[],
  ) {}

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
    const known = this.digests.get(text)
    const digest = known ?? this.keys.digestOf(text.replace(SCHEME, '').trimEnd())
    const keyId = this.keys.idOf(digest)
    if (known === undefined && keyId !== undefined) this.keep(text, digest)
    return keyId
  }

  private keep(text: string, digest: string): void {
    if (this.digests.size >= MAXIMUM_DIGESTS) this.digests.clear()
    this.digests.set(text, digest)
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
