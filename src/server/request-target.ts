import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../core/errors.js'

/** The start of the absolute form, as proxies send it. */
const ABSOLUTE = /^https?:\/\/[^/?#\\]+/i

/** Outside of what a target may hold (RFC 9112: printable ASCII), or read by some parsers as a slash or as the end of the path. */
const DOUBTFUL = /[^!-~]|[\\#]/

/** A target in origin form: `GET http://host/path` is the `GET /path` it means. Other forms stay as they are. */
export function originForm(target: string): string {
  if (target.startsWith('/')) return target
  const rest = target.replace(ABSOLUTE, '')
  if (rest === target) return target
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** The path of a target in origin form, without its query. */
export function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query === -1 ? target : target.slice(0, query)
}

/** Node keeps the first Host header alone; names and values in turn. */
function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length === HOST.length && name.toLowerCase() === HOST) hosts++
  }
  return hosts > 1
}

const HOST = 'host'

/**
 * Why a request, its target in origin form, is refused before it is routed: balancers, this process and Express must see
 * one path and one host in it (RFC 9112, section 3.2). `undefined` where nothing is wrong.
 */
export function requestFault({
  url = '',
  httpVersion,
  headers,
  rawHeaders,
}: IncomingMessage): GatewayError | undefined {
  if (!url.startsWith('/') || DOUBTFUL.test(url)) {
    return new GatewayError(
      'invalid_request',
      "The request target must be a path in printable ASCII, without '\\' and '#'.",
      {
        code: 'invalid_target',
      },
    )
  }
  if (hasTwoHosts(rawHeaders)) {
    return new GatewayError('invalid_request', 'The request has more than one Host header.', { code: 'repeated_host' })
  }
  if (httpVersion === '1.1' && (headers.host ?? '') === '') {
    return new GatewayError('invalid_request', 'The request has no Host header, or an empty one.', {
      code: 'missing_host',
    })
  }
  return undefined
}

/** A literal address, or a name that leads to this machine by definition (RFC 6761, section 6.3); then a port. */
const LOCAL_HOST = /^(?:\[[\da-f:.]+\]|[\d.]+|(?:[a-z\d-]+\.)*localhost\.?)(?::\d+)?$/i

/**
 * Why a sandbox that only this machine can call refuses a request: its key is known to the world, and a page can have its own name
 * lead to 127.0.0.1 (DNS rebinding), so that its browser takes the sandbox for the page's own server.
 */
export function foreignHostFault({ headers: { host } }: IncomingMessage): GatewayError | undefined {
  if (host === undefined || LOCAL_HOST.test(host)) return undefined
  return new GatewayError(
    'invalid_request',
    'The sandbox answers at localhost and at addresses of this machine only.',
    {
      code: 'invalid_host',
    },
  )
}
