import type { DocumentKind } from '@multi-model-gateway/document-engine/model/document.js'
import type { DocumentsSection } from '../config/settings.js'
import { Field } from '../core/dto.js'
import { type FieldError, GatewayError } from '../core/errors.js'
import type { SpooledFile } from '../core/spooled-file.js'
import { anything, decimalOf, fieldError, flag, optional, shown, text, whenGiven } from '../core/validation-rules.js'

/** From here on a timeout can only be meant in milliseconds: no server waits for a quarter of an hour. */
const MILLISECONDS_FROM = 1000

const FLAG_TEXTS: Readonly<Record<string, boolean>> = { true: true, false: false, 1: true, 0: false }

/** A millisecond: nobody waits for less, and no timer can. */
const SHORTEST_SECONDS = 0.001

const tooShort = (path: string): FieldError =>
  fieldError(path, 'invalid_value', `Invalid '${path}': expected a number of seconds, at least ${SHORTEST_SECONDS}.`)

export const timeout = shown({ type: 'number', minimum: SHORTEST_SECONDS }, (value, path) =>
  typeof value === 'number' && Number.isFinite(value) && value >= SHORTEST_SECONDS ? undefined : tooShort(path),
)

/** The same where all values are text. */
export const timeoutText = shown(timeout.schema ?? {}, (value, path) => timeout(decimalOf(value), path))

/** `true` or `false` where all values are text; 1 and 0 mean the same. */
export const flagText = shown({ type: 'boolean' }, (value, path) =>
  typeof value === 'string' && Object.hasOwn(FLAG_TEXTS, value)
    ? undefined
    : fieldError(path, 'invalid_type', `Invalid type for '${path}': expected 'true' or 'false'.`),
)

/** What a text says that has passed `flagText`. */
export const flagOf = (value: string | null | undefined): boolean => FLAG_TEXTS[value ?? 'false'] ?? false

/**
 * How long a caller wants to wait, in milliseconds: `value` are seconds, from 1,000 on milliseconds, never more than the
 * operator's maximum.
 */
export function timeoutMsOf(
  value: number | string | null | undefined,
  { defaultTimeoutMs, maximumTimeoutMs }: Pick<DocumentsSection, 'defaultTimeoutMs' | 'maximumTimeoutMs'>,
): number {
  if (value === undefined || value === null) return defaultTimeoutMs
  const number = Number(value)
  return Math.min(number >= MILLISECONDS_FROM ? number : number * 1000, maximumTimeoutMs)
}

const OPEN_XML = 'application/vnd.openxmlformats-officedocument'
const OPEN_DOCUMENT = 'application/vnd.oasis.opendocument'

/** Media type of each kind, for results of documents that declare none. */
export const KIND_TYPES = {
  html: 'text/html',
  pdf: 'application/pdf',
  docx: `${OPEN_XML}.wordprocessingml.document`,
  xlsx: `${OPEN_XML}.spreadsheetml.sheet`,
  pptx: `${OPEN_XML}.presentationml.presentation`,
  odt: `${OPEN_DOCUMENT}.text`,
  ods: `${OPEN_DOCUMENT}.spreadsheet`,
  odp: `${OPEN_DOCUMENT}.presentation`,
  epub: 'application/epub+zip',
  rtf: 'application/rtf',
  email: 'message/rfc822',
  notebook: 'application/x-ipynb+json',
  csv: 'text/csv',
  markdown: 'text/markdown',
  text: 'text/plain',
} as const satisfies Record<DocumentKind, string>

/** With these a request's body is the document itself. What it really is, its bytes say. */
export const BODY_TYPES: readonly string[] = [
  ...Object.values(KIND_TYPES),
  'application/xhtml+xml',
  'text/rtf',
  'application/octet-stream',
]

const MAXIMUM_CHARACTERS = 8192

/** A URL's parser drops or encodes them in silence. */
const CONTROL_CHARACTER = /\p{Cc}/u

/** Single-page applications keep their routes there; any other fragment names a place on the same page. */
const ROUTE_FRAGMENT = /^#[/!]/

const isText = text({ allowBlank: false })

/** An absolute http(s) URL without user. Where it leads is judged when it is fetched. */
export const documentUrl = shown(
  { ...isText.schema, format: 'uri', maxLength: MAXIMUM_CHARACTERS },
  (value, path) => isText(value, path) ?? faultOf(value as string, path),
)

function faultOf(url: string, path: string): FieldError | undefined {
  const refuse = (what: string): FieldError => fieldError(path, 'url_not_allowed', `Invalid '${path}': ${what}.`)
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

const urlDocumentation = {
  description: 'Absolute http or https URL that leads to a public address',
  example: 'https://example.org/report.pdf',
} as const
export const timeoutDocumentation = {
  description: 'Seconds for the whole of the work; from 1,000 on milliseconds',
  example: 20,
} as const
export const noCacheDocumentation = {
  default: false,
  description: 'Reads the document anew, also when the result is still known',
} as const

const requiredUrl = shown(documentUrl.schema ?? {}, (value, path) =>
  value === undefined || value === null
    ? fieldError(
        path,
        'missing_required_parameter',
        `Missing required parameter: '${path}'. Send it as JSON, or send a file.`,
      )
    : documentUrl(value, path),
)

/** URL mode of the specification; unknown fields mean nothing. */
export class DocumentUrlDto {
  @Field(requiredUrl, urlDocumentation)
  readonly url!: string

  @Field(optional(timeout), timeoutDocumentation)
  readonly timeout?: number | null

  @Field(optional(flag), noCacheDocumentation)
  readonly no_cache?: boolean | null
}

/** What may stand beside a file where all values are text: in the query of a raw body. */
export class DocumentOptionsDto {
  @Field(whenGiven(timeoutText), timeoutDocumentation)
  readonly timeout?: string

  @Field(whenGiven(flagText), noCacheDocumentation)
  readonly no_cache?: string
}

/** File-upload mode as a form. A form without a file may name a URL instead. */
export class DocumentFormDto extends DocumentOptionsDto {
  /** Arrives as a file part; what is wrong with it is found out where its bytes are. */
  @Field(anything, { type: 'string', format: 'binary', description: 'The document; its name and type are hints' })
  readonly file?: unknown

  @Field(whenGiven(documentUrl), { ...urlDocumentation, description: 'Instead of the file' })
  readonly url?: string
}

/** An uploaded file. Its bytes are released when it has no holder any more. */
export class DocumentUpload {
  private holders = 0

  constructor(
    readonly spool: SpooledFile,
    /** Safe to send and to log; '' when there is none. */
    readonly name: string,
    /** Declared content type, parameters included; '' without one. */
    readonly contentType: string,
  ) {}

  /** Keeps the bytes until the function that is handed back is called; calling that again does nothing. */
  hold(): () => Promise<void> {
    this.holders++
    let isHeld = true
    return async () => {
      if (!isHeld) return
      isHeld = false
      this.holders--
      if (this.holders === 0) await this.spool.remove()
    }
  }
}

export type DocumentSource =
  /** Normalised, so that equal pages have equal addresses. */
  { readonly kind: 'url'; readonly url: string } | { readonly kind: 'file'; readonly upload: DocumentUpload }

/** What a caller asks for, in whichever form it came. */
export interface DocumentRequest {
  readonly source: DocumentSource
  /** For the whole of the work, from the last byte of the request on. */
  readonly timeoutMs: number
  /** The caller does not want what was read before. */
  readonly isFresh: boolean
}
