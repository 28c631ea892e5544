import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { ServerSection } from '../config/settings.js'
import { GatewayError } from '../core/errors.js'

/*
 * Cross-origin resource sharing as the Fetch standard has it (section 3.2, CORS protocol). What a page of another origin may
 * read is decided by its browser; the gateway only says which origins its operator allows.
 */

type CorsSettings = ServerSection['cors']
type Headers = Readonly<Record<string, string>>

const NO_HEADERS: Headers = {}
const ANY = '*'
const ALLOW_ORIGIN = 'access-control-allow-origin'

/** Exact origins, and patterns with `*.` before a domain (one label or more) or `:*` behind a host (any port, or none). */
class OriginList {
  private readonly exact: ReadonlySet<string>
  private readonly patterns: readonly RegExp[]

  constructor(entries: readonly string[]) {
    this.exact = new Set(entries)
    this.patterns = entries.filter((entry) => entry !== ANY && entry.includes('*')).map(patternOf)
  }

  has(origin: string): boolean {
    return this.exact.has(ANY) || this.exact.has(origin) || this.patterns.some((pattern) => pattern.test(origin))
  }
}

function patternOf(entry: string): RegExp {
  const escaped = entry.replace(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)
  const source = escaped
    .replace(String.raw`://\*\.`, String.raw`://(?:[a-z0-9_-]+\.)+`)
    .replace(/:\\\*$/, String.raw`(?::\d{1,5})?`)
  return new RegExp(`^${source}$`)
}

/** Longer lists of header names are no browser's. */
const LONGEST_LIST_CHARACTERS = 4_096

/** Names of headers or methods, separated by commas (RFC 9110, section 5.6.2). */
const NAMES = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:[\t ]*,[\t ]*[!#$%&'*+.^_`|~0-9A-Za-z-]+)*$/

const listedNames = (value: string | undefined): string | undefined =>
  value !== undefined && value.length <= LONGEST_LIST_CHARACTERS && NAMES.test(value) ? value : undefined

/** The question of a browser, before it sends a page's request, whether it may. */
export const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined

/** By the list of the settings, which are replaced as a whole when the configuration is loaded again. */
const lists = new WeakMap<readonly string[], OriginList>()

/** Whether pages of the origin may read responses and open WebSockets. */
export function allowsOrigin({ allowedOrigins }: CorsSettings, origin: string): boolean {
  let list = lists.get(allowedOrigins)
  if (list === undefined) lists.set(allowedOrigins, (list = new OriginList(allowedOrigins)))
  return list.has(origin)
}

/** Headers of every response; `Vary` tells caches that they depend on the origin. */
export function corsHeaders(settings: CorsSettings, origin: string | undefined): Headers {
  if (settings.allowedOrigins.length === 0) return NO_HEADERS
  if (origin === undefined || !allowsOrigin(settings, origin)) return { vary: 'Origin' }
  const credentials = settings.allowCredentials ? { 'access-control-allow-credentials': 'true' } : undefined
  return { [ALLOW_ORIGIN]: origin, vary: 'Origin', ...credentials }
}

/** Adds headers to those of a response; `Vary` is a list that grows. Names in lower case. */
export function addHeaders(headers: OutgoingHttpHeaders, added: Headers): void {
  const { vary } = headers
  Object.assign(headers, added)
  if (vary !== undefined) headers.vary = joinedNames(vary, added['vary'])
}

/** Each name of two lists once; names of headers know no case. */
function joinedNames(first: string, second = ''): string {
  const byName = new Map<string, string>()
  for (const name of `${first},${second}`.split(',').map((part) => part.trim())) {
    if (name !== '' && !byName.has(name.toLowerCase())) byName.set(name.toLowerCase(), name)
  }
  return byName.has(ANY) ? ANY : [...byName.values()].join(', ')
}

/** Why a preflight is refused. */
export const preflightFault = (settings: CorsSettings, { headers }: IncomingMessage): GatewayError | undefined =>
  allowsOrigin(settings, headers.origin ?? '') ? undefined : forbiddenOrigin()

/**
 * Beside `corsHeaders`: the methods of the path where these are known, otherwise the one that is asked for, so that the page can
 * read the 404; and every header that is asked for, as all of them may travel on.
 */
export function preflightHeaders(
  { allowedOrigins, maxAgeSeconds }: CorsSettings,
  { headers }: IncomingMessage,
  methods: readonly string[],
): Headers {
  const wanted = listedNames(headers['access-control-request-method']) ?? 'GET'
  const names = listedNames(headers['access-control-request-headers'])
  // Asked by browsers before a public page reaches a private address (Private Network Access): not for all pages there are.
  const isToPrivate = headers['access-control-request-private-network'] === 'true' && !allowedOrigins.includes(ANY)
  return {
    vary: 'Access-Control-Request-Method, Access-Control-Request-Headers',
    'access-control-allow-methods': methods.length > 0 ? methods.join(', ') : wanted,
    'access-control-max-age': String(maxAgeSeconds),
    ...(names === undefined ? {} : { 'access-control-allow-headers': names }),
    ...(isToPrivate ? { 'access-control-allow-private-network': 'true' } : {}),
  }
}

export const forbiddenOrigin = (): GatewayError =>
  new GatewayError(
    'forbidden_origin',
    'Pages of this origin may not connect here; the setting server.cors.allowedOrigins lists those that may.',
  )

/** A page that this gateway has served: its origin is the address under which the request came. */
export const isOwnOrigin = (origin: string, host: string | undefined): boolean =>
  host !== undefined && origin.replace(/^https?:\/\//, '') === host.toLowerCase()

/** Every page may read these, or no page has a use for them. */
const NEVER_EXPOSED: ReadonlySet<string> = new Set([
  'cache-control',
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
  'vary',
])

/** Whether a page of another origin may read the response. */
export const isForPage = (headers: OutgoingHttpHeaders): boolean => headers[ALLOW_ORIGIN] !== undefined

/** Lets a page that may read a response read all its headers. Names in lower case. */
export function exposeHeaders(headers: OutgoingHttpHeaders, further: readonly string[] = []): void {
  const names = [...Object.keys(headers), ...further].filter(
    (name) => !NEVER_EXPOSED.has(name) && !name.startsWith('access-control-'),
  )
  if (names.length > 0) headers['access-control-expose-headers'] = [...new Set(names)].join(', ')
}
