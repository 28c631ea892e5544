import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../errors/gateway-error.js'

/** A token of RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/**
 * The subprotocols a client offers, in its order; none when it sent no such header. Throws `invalid_request` when the
 * header is not a list of different tokens (RFC 6455, 11.3.4). Browsers hide keys in it: it is never shown or logged.
 */
export function offeredSubprotocols({ headers }: Pick<IncomingMessage, 'headers'>): readonly string[] {
  const header = headers['sec-websocket-protocol']
  if (header === undefined) return []
  const offered = header.split(',').map((name) => name.replace(/^[ \t]+|[ \t]+$/g, ''))
  if (offered.every((name) => TOKEN.test(name)) && new Set(offered).size === offered.length) return offered
  throw new GatewayError('invalid_request', 'The header Sec-WebSocket-Protocol must list different tokens.', {
    param: 'sec-websocket-protocol',
  })
}
