import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { BlockList, isIP, isIPv4, isIPv6, type LookupFunction } from 'node:net'

/**
 * Why a URL was not fetched. The message names neither host nor address: it may reach a log, and what a name means
 * inside this network is nobody else's business.
 */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

/** Told apart because it says nothing against the address itself. */
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
