import { GatewayError } from '../core/gateway-error.js'
import { fault, type FieldFault, type FieldRule, text } from '../core/validation-rules.js'

const MAXIMUM_CHARACTERS = 8192

/** A URL's parser drops or encodes them in silence. */
const CONTROL_CHARACTER = /\p{Cc}/u

/** Single-page applications keep their routes there; any other fragment names a place on the same page. */
const ROUTE_FRAGMENT = /^#[/!]/

const isText = text({ allowBlank: false })

/** An absolute http(s) URL without user. Where it leads is judged when it is fetched. */
export const documentUrl: FieldRule = (value, path) => isText(value, path) ?? faultOf(value as string, path)

function faultOf(url: string, path: string): FieldFault | undefined {
  const refuse = (what: string): FieldFault => fault(path, 'url_not_allowed', `Invalid '${path}': ${what}.`)
  if (url.length > MAXIMUM_CHARACTERS) return refuse(`it must not be longer than ${MAXIMUM_CHARACTERS} characters`)
  if (CONTROL_CHARACTER.test(url)) return refuse('it must not hold control characters')
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol))
    return refuse('it must be an absolute http or https URL')
  if (parsed.username !== '' || parsed.password !== '') return refuse('it must not hold a user or a password')
  return undefined
}

/**
 * One spelling for all URLs of one page: scheme and host in lower case, no default port, no fragment but those that are
 * routes of an application. `url` has passed `documentUrl`.
 */
export function normalizedUrl(url: string): string {
  const parsed = new URL(url)
  if (!ROUTE_FRAGMENT.test(parsed.hash)) parsed.hash = ''
  return parsed.href
}

/**
 * Refuses URLs that lead to the gateway itself, as `server.publicUrl` names it to the world: it would read its own pages.
 * @throws GatewayError `invalid_request`, param `url`
 */
export function assertNotOwnAddress(url: string, publicUrl: string | undefined): void {
  if (publicUrl === undefined) return
  const own = new URL(publicUrl)
  const { hostname, port, pathname } = new URL(url)
  const ownPath = own.pathname.replace(/\/$/, '')
  // A host may be written with the stop that ends it.
  if (hostname.replace(/\.$/, '') !== own.hostname || port !== own.port) return
  if (pathname !== ownPath && !pathname.startsWith(`${ownPath}/`)) return
  throw new GatewayError('invalid_request', "Invalid 'url': it leads to this gateway.", {
    param: 'url',
    code: 'url_not_allowed',
  })
}

/** The last segment of a URL's path, as a file name; '' when there is none. */
export function nameIn(url: string): string {
  const segment = new URL(url).pathname.split('/').at(-1) ?? ''
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
