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

/** Tells a key of the gateway's own. */
export type KeyTest = (text: string) => boolean

/** As vendors and this gateway issue secrets, wherever in a text one begins (`Bearer sk-…`, `key=sk-…`). */
const SECRET = /(?:^|[^A-Za-z0-9])(?:sk|rk_live|rk_test|whsec)[-_][A-Za-z0-9*_-]{8,}/i
const SHORTEST_KEY_CHARACTERS = 8
/** The guard takes no longer key. */
const LONGEST_KEY_CHARACTERS = 512
/** Ids that gateways, balancers and SDKs make: no key has their form, and no digest is made of them. */
const USUAL_ID = /^(?:req_[0-9a-f]{32}|(?:req_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i

/** Stands for a key. */
export const KEY_MASK = '[key]'

/** What stands between a key and what it was typed beside. */
const SEPARATORS = /[\s/;,&=]+/

/** Whether a text that a client chose has a key, typed where none belongs, as it is or percent-encoded. */
export function hasKey(text: string, isKey: KeyTest): boolean {
  if (text.length < SHORTEST_KEY_CHARACTERS || USUAL_ID.test(text)) return false
  const decoded = decodedText(text)
  if (SECRET.test(decoded)) return true
  for (const piece of new Set([decoded, ...decoded.split(SEPARATORS)])) {
    if (piece.length >= SHORTEST_KEY_CHARACTERS && piece.length <= LONGEST_KEY_CHARACTERS && isKey(piece)) return true
  }
  return false
}

function decodedText(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** As much of a path as a line shows, and of a key that stands at its end. */
const SHOWN_CHARACTERS = 128

/** As much of a model's name as the log, a trace or a usage record shows. */
const LONGEST_NAME_CHARACTERS = 256

/**
 * The path as a log may show it: cut, and without the segments that have a key. A key may have slashes: then nothing of it
 * is shown.
 */
export function maskedPath(path: string, isKey: KeyTest): string {
  const start = path.slice(0, SHOWN_CHARACTERS + LONGEST_KEY_CHARACTERS)
  const isMasked = new Map<string, boolean>()
  for (const segment of start.split('/')) if (!isMasked.has(segment)) isMasked.set(segment, hasKey(segment, isKey))
  const hasSegment = [...isMasked.values()].includes(true)
  if (!hasSegment && isKey(start.slice(1))) return `/${KEY_MASK}`
  const shown = start.split('/').map((segment) => (isMasked.get(segment) === true ? KEY_MASK : segment))
  return shown.join('/').slice(0, SHOWN_CHARACTERS)
}

/** A model, or the place of a member of a body (`messages[0].name`), as records may show it: nothing of it where it has a key. */
export function maskedName(name: string, isKey: KeyTest): string {
  const start = name.slice(0, LONGEST_NAME_CHARACTERS + LONGEST_KEY_CHARACTERS)
  return [start, ...start.split(/[.[\]]/)].some((part) => hasKey(part, isKey)) ? KEY_MASK : name
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
