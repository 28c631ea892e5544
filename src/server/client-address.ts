import type { IncomingMessage, Server } from 'node:http'
import { BlockList, isIP, type Socket } from 'node:net'

/** IPv4 as a socket for both families shows it. */
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i
/** As some proxies write addresses: with a port, IPv6 in brackets then. */
const WITH_PORT = /^(?:\[([^\]]+)\]|([^:]+))(?::\d+)?$/

const LOOPBACK: readonly string[] = ['127.0.0.0/8', '::1']

const rangesOf = new WeakMap<readonly string[], BlockList>()

/** A socket knows its peer's address after its end only when it was asked before. */
export function rememberPeers(server: Server): void {
  server.on('connection', peerOf)
}

const peerOf = ({ remoteAddress }: Socket): string | undefined => remoteAddress

/**
 * The client's address; undefined where it was not remembered and the connection is gone. `trustedProxies` as in the
 * configuration.
 */
export const callerAddress = (request: IncomingMessage, trustedProxies: readonly string[]): string | undefined =>
  addressBehind(request.socket.remoteAddress, forwardedFor(request), trustedProxies)

/** Whether the caller is on this machine; what a proxy of this machine passes on is not. */
export function isFromThisMachine({ headers, socket }: IncomingMessage): boolean {
  if (headers['x-forwarded-for'] !== undefined || headers.forwarded !== undefined) return false
  const address = addressIn(socket.remoteAddress ?? '')
  return address !== undefined && isWithin(LOOPBACK, address)
}

/**
 * Each proxy adds to the right of `X-Forwarded-For` whom it heard, so the header is read from there for as long as the one who
 * speaks is a proxy of ours. Anything further left may be invented.
 */
export function addressBehind(
  peer: string | undefined,
  forwarded: string | undefined,
  trustedProxies: readonly string[],
): string | undefined {
  if (peer === undefined) return undefined
  let address = addressIn(peer) ?? peer
  if (forwarded === undefined || trustedProxies.length === 0) return address
  const entries = forwarded.split(',')
  while (isWithin(trustedProxies, address)) {
    const next = addressIn(entries.pop()?.trim() ?? '')
    if (next === undefined) break
    address = next
  }
  return address
}

function forwardedFor({ headers }: IncomingMessage): string | undefined {
  const value = headers['x-forwarded-for']
  return typeof value === 'string' ? value : value?.join(',')
}

function addressIn(entry: string): string | undefined {
  const [, bracketed, bare] = WITH_PORT.exec(entry) ?? []
  const address = bracketed ?? bare ?? entry
  if (isIP(address) === 0) return undefined
  return MAPPED.exec(address)?.[1] ?? address
}

function isWithin(ranges: readonly string[], address: string): boolean {
  let list = rangesOf.get(ranges)
  if (list === undefined) {
    list = blockList(ranges)
    rangesOf.set(ranges, list)
  }
  return list.check(address, familyOf(address))
}

/** Ranges as the configuration has checked them. */
function blockList(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/')
    if (prefix === undefined) list.addAddress(network, familyOf(network))
    else list.addSubnet(network, Number(prefix), familyOf(network))
  }
  return list
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 4 ? 'ipv4' : 'ipv6')
