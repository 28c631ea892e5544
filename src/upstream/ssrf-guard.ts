import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { BlockList, isIP, isIPv4, isIPv6, type LookupFunction } from 'node:net'
import type { UpstreamResponse } from './exchange.js'

/**
 * Ports of well-known services that do not speak HTTP: a request there is at best noise and at worst a command. The list
 * is the one browsers refuse (WHATWG Fetch, "port blocking"), and the stores that take commands in plain text.
 */
const OTHER_PROTOCOLS: ReadonlySet<number> = new Set([
  ...[0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95],
  ...[101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179],
  ...[389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587],
  ...[601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061],
  ...[6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080],
  ...[3306, 5432, 6379, 11_211, 27_017],
])

const isOtherProtocol = (port: number): boolean => OTHER_PROTOCOLS.has(port)

/**
 * Why a URL was not fetched. The message names neither host nor address: it may reach a log, and what a name means
 * inside this network must not become known.
 */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

/** A class of its own, as it says nothing against the address itself. */
export class TooManyRedirects extends AddressRefused {
  constructor() {
    super('there are too many redirects')
  }
}

/** Every address of a host; rejects when there is none. */
export type ResolveHost = (host: string) => Promise<readonly LookupAddress[]>

export const resolveHost: ResolveHost = (host) => lookup(host, { all: true })

/** IPv4 that is not globally reachable (IANA's registry of special-purpose addresses), multicast and reserved space. */
const REFUSED_IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
  // A public number, but inside one large cloud it is the host's own service of metadata and keys.
  ['168.63.129.16', 32],
] as const

/**
 * Only global unicast (2000::/3) can be public: that leaves out ::, loopback, IPv4-mapped, NAT64, unique-local,
 * link-local and multicast without naming them.
 */
const GLOBAL_UNICAST = blockList([['2000::', 3]], 'ipv6')

/** Inside global unicast: Teredo and other protocol assignments, documentation (two), 6to4. */
const REFUSED_IPV6 = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const

const refusedIpv4 = blockList(REFUSED_IPV4, 'ipv4')
const refusedIpv6 = blockList(REFUSED_IPV6, 'ipv6')

function blockList(ranges: readonly (readonly [string, number])[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const [network, prefix] of ranges) list.addSubnet(network, prefix, family)
  return list
}

/**
 * True for an address that anyone on the internet may reach. Whatever is not an address is not public, nor is one with
 * a zone. Node's own BlockList does it: the question is membership in a dozen ranges, and addresses come here in the
 * canonical spelling of `URL` or the resolver, so that a package's parser would only add a second opinion.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !refusedIpv4.check(address, 'ipv4')
  if (!isIPv6(address) || address.includes('%')) return false
  return GLOBAL_UNICAST.check(address, 'ipv6') && !refusedIpv6.check(address, 'ipv6')
}

/** The address a URL names by itself; undefined when it names a host that must be resolved. */
export function literalAddress(url: URL): string | undefined {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return isIP(host) === 0 ? undefined : host
}

/**
 * A `lookup` for sockets that resolves once and hands over what it has checked, so that no second answer of the name
 * server can come between check and connection. One address that is not accepted refuses them all. Sockets do not ask
 * it about literal addresses.
 */
export const checkedLookup =
  (resolve: ResolveHost, isAccepted: (address: string) => boolean): LookupFunction =>
  (host, options, callback) => {
    resolveChecked(host, resolve, isAccepted).then(
      (addresses) => {
        const [first] = addresses
        if (options.all === true) callback(null, addresses)
        else callback(null, first.address, first.family)
      },
      (error: unknown) => {
        callback(error as NodeJS.ErrnoException, [])
      },
    )
  }

/** Every address of a host, asked for once and checked. Rejects with `AddressRefused`, or as the resolver does. */
export async function resolveChecked(
  host: string,
  resolve: ResolveHost,
  isAccepted: (address: string) => boolean,
): Promise<[LookupAddress, ...LookupAddress[]]> {
  const [first, ...others] = await resolve(host)
  if (first === undefined) throw new AddressRefused('the host has no address')
  const addresses: [LookupAddress, ...LookupAddress[]] = [first, ...others]
  if (!addresses.every(({ address }) => isAccepted(address))) {
    throw new AddressRefused('the host has an address that is not public')
  }
  return addresses
}

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

/** Names of this machine, whatever a resolver makes of them (RFC 6761, section 6.3): not all know the dot at the end. */
const LOOPBACK_NAME = /(?:^|\.)localhost\.*$/

const loopback = blockList([['127.0.0.0', 8]], 'ipv4')

/** Whether only this machine can be reached by an address. */
export const isLoopbackAddress = (address: string): boolean =>
  isIPv4(address) ? loopback.check(address, 'ipv4') : address === '::1'

/** Whether only programs of this machine reach what listens on the host. */
export const isOwnMachine = (host: string): boolean => host === 'localhost' || isLoopbackAddress(host)

/**
 * Judges a URL by its port and by the address it names itself, and hands over the test that every address of its host
 * must pass. `allow` holds the operator's exemptions; `mayBeLoopback` exempts what names this machine itself, not what
 * a name server says is on it. Throws `AddressRefused`.
 */
export function admit(url: URL, allow: readonly string[], mayBeLoopback = false): (address: string) => boolean {
  if (allow.includes(hostAndPort(url))) return () => true
  if (isOtherProtocol(Number(portOf(url)))) throw new AddressRefused('the port belongs to another protocol')
  const literal = literalAddress(url)
  const isLoopback = literal === undefined ? LOOPBACK_NAME.test(url.hostname) : isLoopbackAddress(literal)
  if (isLoopback && mayBeLoopback) return isLoopbackAddress
  const isPrivate = literal === undefined ? isLoopback : !isPublicAddress(literal)
  if (isPrivate) throw new AddressRefused('the address is not public')
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

/** One of each form that has led a guard astray somewhere; none may ever be fetched without an exemption. */
const FORBIDDEN_URLS = [
  'http://127.0.0.1/',
  'http://127.1/',
  'http://2130706433/',
  'http://017700000001/',
  'http://0x7f.0.0.1/',
  'http://0/',
  'http://127.0.0.1./',
  'http://localhost./',
  'http://10.0.0.1/',
  'http://100.64.0.1/',
  'http://169.254.169.254/',
  'http://172.16.0.1/',
  'http://192.168.0.1/',
  'http://224.0.0.1/',
  'http://255.255.255.255/',
  'http://[::]/',
  'http://[::1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:7f00:1]/',
  'http://[64:ff9b::7f00:1]/',
  'http://[2002:7f00:1::]/',
  'http://[2001:0:7f00:1::]/',
  'http://[fe80::1]/',
  'http://[fe80::1%25lo]/',
  'http://[fd00:ec2::254]/',
  'http://[ff02::1]/',
  'http://8.8.8.8@127.0.0.1/',
  'http://user:password@8.8.8.8/',
  'http://8.8.8.8:25/',
  'ftp://8.8.8.8/',
  'file:///etc/passwd',
] as const

const FORBIDDEN_ANSWERS = ['127.0.0.1', '10.0.0.1', '169.254.169.254', '::1', '::ffff:127.0.0.1', 'fe80::1%lo'] as const
const PUBLIC_ADDRESS = '8.8.8.8'

/** The parts under test; tests of the test put weaker ones in their place. */
interface GuardParts {
  readonly admit: (url: string) => void
  readonly lookup: typeof checkedLookup
}

const GUARD: GuardParts = { admit: (url) => admit(readUrl(url), []), lookup: checkedLookup }

/**
 * Tries the guard on known bad forms, without a network. Rejects when one of them gets through, or when nothing does: a
 * platform on which addresses are read otherwise must not serve.
 */
export async function assertGuardHolds(guard: GuardParts = GUARD): Promise<void> {
  for (const url of FORBIDDEN_URLS) {
    if (
      !isRefused(() => {
        guard.admit(url)
      })
    )
      throw new Error(`The guard of outgoing requests lets ${url} through.`)
  }
  guard.admit(`https://${PUBLIC_ADDRESS}/`)
  for (const address of FORBIDDEN_ANSWERS) {
    // Beside a public one, as attackers' name servers put it.
    if (await isLookedUp(guard, [PUBLIC_ADDRESS, address])) {
      throw new Error(`The guard of outgoing requests lets a host at ${address} through.`)
    }
  }
  if (!(await isLookedUp(guard, [PUBLIC_ADDRESS])))
    throw new Error('The guard of outgoing requests refuses every host.')
}

function isRefused(judge: () => void): boolean {
  try {
    judge()
    return false
  } catch (error) {
    if (error instanceof AddressRefused) return true
    throw error
  }
}

function isLookedUp({ lookup }: GuardParts, addresses: readonly string[]): Promise<boolean> {
  const resolve: ResolveHost = () =>
    Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })))
  return new Promise((settle) => {
    lookup(resolve, isPublicAddress)('self-test.invalid', { all: true }, (error) => {
      settle(error === null)
    })
  })
}
