import { isOtherProtocol } from './guarded-url-ports.js'
import { AddressRefused, isPublicAddress, literalAddress } from './ssrf-guard.js'
import type { UpstreamResponse } from './upstream-exchange.js'

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** What another origin may see of a request's headers; anything else could be a credential. */
const HARMLESS_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'range',
  'user-agent',
])

/**
 * An http or https URL without user, in the spelling of WHATWG: whatever form an IPv4 address was written in, its host
 * is dotted decimal. Throws `AddressRefused`.
 */
export function readUrl(text: string, base?: URL): URL {
  if (!URL.canParse(text, base?.href)) throw new AddressRefused('it is not a URL')
  const url = new URL(text, base)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new AddressRefused('it is neither http nor https')
  if (url.username !== '' || url.password !== '') throw new AddressRefused('it holds a user')
  return url
}

/** Host and port as `ssrf.allow` has them, the port never left out. */
export const hostAndPort = (url: URL): string => `${url.hostname}:${portOf(url)}`

const portOf = ({ port, protocol }: URL): string => (port !== '' ? port : protocol === 'https:' ? '443' : '80')

/**
 * Judges a URL by its port and by the address it names itself, and hands over the test that every address of its host
 * must pass. `allow` holds the operator's exemptions. Throws `AddressRefused`.
 */
export function admit(url: URL, allow: readonly string[]): (address: string) => boolean {
  if (allow.includes(hostAndPort(url))) return () => true
  if (isOtherProtocol(Number(portOf(url)))) throw new AddressRefused('the port belongs to another protocol')
  const literal = literalAddress(url)
  if (literal !== undefined && !isPublicAddress(literal)) throw new AddressRefused('the address is not public')
  return isPublicAddress
}

/** What an answer says about where to go on; undefined when it is no redirect or does not say. */
export function redirectLocation({
  status,
  headers,
}: Pick<UpstreamResponse, 'status' | 'headers'>): string | undefined {
  const { location } = headers
  return REDIRECTS.has(status) && typeof location === 'string' ? location : undefined
}

/** Throws `AddressRefused` for a target that is no URL to fetch, and for one that gives up the encryption of `from`. */
export function redirectTarget(location: string, from: URL): URL {
  const url = readUrl(location, from)
  if (from.protocol === 'https:' && url.protocol === 'http:') throw new AddressRefused('a redirect leaves https')
  return url
}

/** The headers (names and values in turn) that may follow a redirect. */
export function carriedHeaders(headers: readonly string[], from: URL, to: URL): readonly string[] {
  if (from.origin === to.origin) return headers
  return headers.flatMap((name, index) =>
    index % 2 === 0 && HARMLESS_HEADERS.has(name.toLowerCase()) ? [name, headers[index + 1] ?? ''] : [],
  )
}
