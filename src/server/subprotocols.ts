import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../core/gateway-error.js'

/** A token of RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/**
 * The subprotocols a client offers, in its order; none when it sent no such header. Throws `invalid_request` when the
 * header is not a list of different tokens (RFC 6455, 11.3.4). Browsers hide keys in it: it is never shown or logged.
 */
export function offeredSubprotocols({ headers }: Pick<IncomingMessage, 'headers'>): readonly string[] {
  const header = headers['sec-websocket-protocol']
  if (header === undefined) return []
  const offered = header.split(',').map(withoutBlanks)
  if (offered.every((name) => TOKEN.test(name)) && new Set(offered).size === offered.length) return offered
  throw new GatewayError('invalid_request', 'The header Sec-WebSocket-Protocol must list different tokens.', {
    param: 'sec-websocket-protocol',
  })
}

/** A pattern for the blanks at the end would try each blank of a header that is full of them. */
function withoutBlanks(name: string): string {
  let [start, end] = [0, name.length]
  while (isBlank(name[start])) start++
  while (end > start && isBlank(name[end - 1])) end--
  return name.slice(start, end)
}

const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t'
