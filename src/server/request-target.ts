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

/** As vendors and this gateway issue secrets, wherever in a text one begins (`Bearer%20sk-…`, `key=sk-…`). */
const SECRET = /(?:^|[^A-Za-z0-9])(?:sk|rk_live|rk_test|whsec)[-_][A-Za-z0-9*_-]{8,}/i
const SHORTEST_KEY_CHARACTERS = 8
/** A digest is made of no longer text: a path may have 16 KiB, and the guard takes no longer key. */
const LONGEST_KEY_CHARACTERS = 512

/** What stands between a key and what it was typed beside. */
const SEPARATORS = /[\s/;,&=]+/

/** Whether a text that a client chose has a key, typed where none belongs, as it is or percent-encoded. */
export function hasKey(text: string, isKey: KeyTest): boolean {
  if (text.length < SHORTEST_KEY_CHARACTERS) return false
  const decoded = decodedText(text)
  if (SECRET.test(decoded)) return true
  return [decoded, ...decoded.split(SEPARATORS)].some(
    (piece) => piece.length >= SHORTEST_KEY_CHARACTERS && piece.length <= LONGEST_KEY_CHARACTERS && isKey(piece),
  )
}

function decodedText(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The path as a log may show it. A key may have slashes: then nothing of the path is shown. */
export function maskedPath(path: string, isKey: KeyTest): string {
  if (hasKey(path.slice(1), isKey) && path.split('/').every((segment) => !hasKey(segment, isKey))) return '/[key]'
  return path
    .split('/')
    .map((segment) => (hasKey(segment, isKey) ? '[key]' : segment))
    .join('/')
}

/**
 * Why a request, its target in origin form, is refused before it is routed: balancers, this process and Express must see one path in
 * it. `undefined` where nothing is wrong.
 */
export function requestFault({ url = '', httpVersion, headers }: IncomingMessage): GatewayError | undefined {
  if (!url.startsWith('/') || DOUBTFUL.test(url)) {
    return new GatewayError(
      'invalid_request',
      "The request target must be a path in printable ASCII, without '\\' and '#'.",
      {
        code: 'invalid_target',
      },
    )
  }
  if (httpVersion === '1.1' && headers.host === undefined) {
    return new GatewayError('invalid_request', 'The request has no Host header.', { code: 'missing_host' })
  }
  return undefined
}
