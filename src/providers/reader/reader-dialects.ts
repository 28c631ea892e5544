import type { UpstreamResponse } from '../../upstream/exchange.js'
import type { ReadDocument, ReadMetadata, ReadRequest, ReadWarning } from '../contract.js'

type JsonObject = Readonly<Record<string, unknown>>

/** An answer as far as it could be read. */
export interface ReaderResponse {
  readonly status: number
  /** Empty when the body is no JSON object: a page of some proxy, or broken. */
  readonly body: JsonObject
  /** What the reader says about it; may be empty. */
  readonly words: string
  /** 1 to 60. */
  readonly retryAfterSeconds: number
}

/** Reads what there is; never throws. */
export function readReaderResponse({ status, headers }: Pick<UpstreamResponse, 'status' | 'headers'>, bytes: Buffer) {
  const body = objectOf(parsed(bytes))
  const seconds = Number(headers['retry-after'])
  return {
    status,
    body,
    words: firstText(body['message'], body['error'], body['readableMessage'], objectOf(body['error'])['message']),
    retryAfterSeconds: Number.isFinite(seconds) ? Math.min(60, Math.max(1, Math.ceil(seconds))) : 1,
  } satisfies ReaderResponse
}

export const isSuccessful = ({ status }: ReaderResponse): boolean => status >= 200 && status < 300

const objectOf = (value: unknown): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}

/** The first that is a string with something in it; lists of strings count as one, joined. */
export function firstText(...values: readonly unknown[]): string {
  for (const value of values) {
    const text = Array.isArray(value) ? value.filter((item) => typeof item === 'string').join(', ') : value
    if (typeof text === 'string' && text !== '') return text
  }
  return ''
}

/** A reader's warning in one text. */
const warningOf = (text: unknown): readonly ReadWarning[] =>
  typeof text === 'string' && text !== '' ? [{ code: 'reader_warning', message: text }] : []

const countOf = (value: unknown, fallback: number): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : fallback

/** A document in the shape of the contract. */
const readDocument = (
  metadata: ReadMetadata,
  texts: { readonly html: string; readonly markdown: string },
  more: Pick<ReadDocument, 'pages' | 'isCached'>,
): ReadDocument => ({
  metadata,
  content: Buffer.from(`"html":${JSON.stringify(texts.html)},"markdown":${JSON.stringify(texts.markdown)}`),
  ...more,
})

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

/** A request in the words of one reader, without what is the same for all. */
export interface ReaderRequest {
  /** Begins with a slash; the channel's own prefix comes before it. */
  readonly path: string
  /** Names and values in turn; beside the key and the framing. */
  readonly headers: readonly string[]
  /** JSON fields, or the parts of a form beside the file. */
  readonly fields: Readonly<Record<string, unknown>>
}

/** Why a reader has not read: whose fault that is decides what the caller hears, and whether the channel is at fault. */
export type ReaderErrorKind =
  | 'caller'
  | 'too_large'
  | 'unreadable'
  | 'unreachable'
  | 'timeout'
  | 'key'
  | 'quota'
  | 'access'
  | 'busy'
  | 'failed'

/** What readers have in common, each in its own words. Sources: their public interfaces. */
export interface ReaderDialect {
  ask(request: ReadRequest): ReaderRequest
  /** The document in a successful answer; undefined when there is none in it. */
  documentIn(answer: ReaderResponse, request: ReadRequest): ReadDocument | undefined
  /** Of an answer without a document. */
  errorKindOf(answer: ReaderResponse): ReaderErrorKind
}

/** What that interface takes for a time at least, and at most, in milliseconds. */
const TIMEOUT_MS = { minimum: 1000, maximum: 300_000 }

/** Firecrawl v2: `scrape` for URLs, `parse` for files, whose options are JSON text in a part of their own. */
export const FIRECRAWL_DIALECT: ReaderDialect = {
  ask: ({ source, timeoutMs, isFresh }) => {
    const options = {
      formats: ['markdown', 'html'],
      timeout: Math.min(TIMEOUT_MS.maximum, Math.max(TIMEOUT_MS.minimum, Math.floor(timeoutMs))),
    }
    if (source.kind === 'file') return { path: '/v2/parse', headers: [], fields: { options } }
    const fields = { url: source.url, ...options, onlyMainContent: true, ...(isFresh ? { maxAge: 0 } : {}) }
    return { path: '/v2/scrape', headers: [], fields }
  },
  documentIn: (answer, request) =>
    isSuccessful(answer) && answer.body['success'] === true ? firecrawlDocument(answer, request) : undefined,
  errorKindOf: ({ status, body: { code } }) =>
    (typeof code === 'string' ? ERROR_KIND_OF_CODE.get(code) : undefined) ?? FIRECRAWL_ERROR_KINDS[status] ?? 'failed',
}

function firecrawlDocument({ body }: ReaderResponse, { source }: ReadRequest) {
  const data = objectOf(body['data'])
  const metadata = objectOf(data['metadata'])
  if (typeof data['markdown'] !== 'string') return undefined
  return readDocument(
    {
      url: source.kind === 'url' ? firstText(metadata['url'], metadata['sourceURL'], source.url) : '',
      title: firstText(metadata['title'], metadata['ogTitle']),
      description: firstText(metadata['description'], metadata['ogDescription']),
      keywords: firstText(metadata['keywords']),
      siteName: firstText(metadata['ogSiteName']),
      favicon: firstText(metadata['favicon']),
      statusCode: countOf(metadata['statusCode'], 200),
      contentType: firstText(metadata['contentType']),
      language: firstText(metadata['language']),
      warnings: warningOf(firstText(data['warning'], body['warning'])),
    },
    { html: firstText(data['html']), markdown: data['markdown'] },
    { pages: countOf(metadata['numPages'], 1), isCached: metadata['cacheState'] === 'hit' },
  )
}

const ERROR_KIND_OF_CODE: ReadonlyMap<string, ReaderErrorKind> = new Map<string, ReaderErrorKind>([
  ['SCRAPE_TIMEOUT', 'timeout'],
  ['SCRAPE_SSL_ERROR', 'unreachable'],
  ['SCRAPE_SITE_ERROR', 'unreachable'],
  ['SCRAPE_DNS_RESOLUTION_ERROR', 'unreachable'],
  ['SCRAPE_PDF_PREFETCH_FAILED', 'unreachable'],
])

const FIRECRAWL_ERROR_KINDS: Readonly<Partial<Record<number, ReaderErrorKind>>> = {
  400: 'caller',
  401: 'key',
  402: 'quota',
  403: 'access',
  408: 'timeout',
  413: 'too_large',
  415: 'unreadable',
  422: 'unreadable',
  429: 'busy',
}

/** With whatever status: the address, not the key, is refused. */
const ADDRESS_REFUSED = 40_301

/** Specification: `POST /v1/document/parse`; another gateway of this kind, or a service with its dialect. */
export const GATEWAY_DIALECT: ReaderDialect = {
  ask: ({ source, timeoutMs, isFresh }) => ({
    path: '/v1/document/parse',
    headers: isFresh ? ['cache-control', 'no-cache'] : [],
    fields: {
      ...(source.kind === 'url' ? { url: source.url } : {}),
      // From 1,000 on the number would be read as milliseconds.
      timeout: timeoutMs < 1_000_000 ? timeoutMs / 1000 : timeoutMs,
    },
  }),
  documentIn: (answer, request) =>
    isSuccessful(answer) && answer.body['code'] === 0 ? gatewayDocument(answer, request) : undefined,
  errorKindOf: (answer) =>
    answer.body['code'] === ADDRESS_REFUSED ? 'caller' : (GATEWAY_ERROR_KINDS[statusOf(answer)] ?? 'failed'),
}

function gatewayDocument({ body }: ReaderResponse, { source }: ReadRequest) {
  const data = objectOf(body['data'])
  const metadata = objectOf(data['metadata'])
  if (typeof data['markdown'] !== 'string') return undefined
  return readDocument(
    {
      url: firstText(metadata['url'], source.kind === 'url' ? source.url : ''),
      title: firstText(metadata['title']),
      description: firstText(metadata['description']),
      keywords: firstText(metadata['keywords']),
      siteName: firstText(metadata['siteName']),
      favicon: firstText(metadata['favicon']),
      statusCode: countOf(metadata['statusCode'], 200),
      contentType: firstText(metadata['contentType']),
      language: firstText(metadata['language']),
      warnings: Array.isArray(metadata['warnings']) ? metadata['warnings'].flatMap(gatewayWarning) : [],
    },
    { html: firstText(data['html']), markdown: data['markdown'] },
    { pages: 1, isCached: metadata['cached'] === 1 },
  )
}

function gatewayWarning(value: unknown): readonly ReadWarning[] {
  const { code, message, pages } = objectOf(value)
  if (typeof code !== 'string' || typeof message !== 'string') return []
  const numbers = Array.isArray(pages) ? pages.filter((page) => Number.isSafeInteger(page)) : []
  return [{ code, message, ...(numbers.length > 0 ? { pages: numbers } : {}) }]
}

/** Readers that say everything with status 200 put it before the last two digits of their code: 40301, 42201. */
function statusOf({ status, body: { code } }: ReaderResponse): number {
  return status === 200 && typeof code === 'number' && code >= 40_000 && code < 60_000 ? Math.floor(code / 100) : status
}

const GATEWAY_ERROR_KINDS: Readonly<Partial<Record<number, ReaderErrorKind>>> = {
  400: 'caller',
  401: 'key',
  402: 'quota',
  403: 'access',
  413: 'too_large',
  415: 'unreadable',
  422: 'unreadable',
  429: 'busy',
  502: 'unreachable',
  503: 'busy',
  504: 'timeout',
}

/** Seconds, whole ones; more are refused. */
const MAXIMUM_TIMEOUT_SECONDS = 180

/** Jina Reader: one address for URLs and files; what is wanted is said in headers. */
export const JINA_DIALECT: ReaderDialect = {
  ask: ({ source, timeoutMs, isFresh }) => ({
    path: '/',
    headers: [
      'x-timeout',
      String(Math.min(MAXIMUM_TIMEOUT_SECONDS, Math.max(1, Math.floor(timeoutMs / 1000)))),
      ...(isFresh ? ['x-no-cache', 'true'] : []),
    ],
    fields: source.kind === 'url' ? { url: source.url } : {},
  }),
  documentIn: (answer, request) =>
    isSuccessful(answer) && answer.body['code'] === 200 ? jinaDocument(answer, request) : undefined,
  errorKindOf: ({ status }) => JINA_ERROR_KINDS[status] ?? 'failed',
}

function jinaDocument({ body }: ReaderResponse, { source }: ReadRequest) {
  const data = objectOf(body['data'])
  const tags = objectOf(data['metadata'])
  if (typeof data['content'] !== 'string') return undefined
  return readDocument(
    {
      url: source.kind === 'url' ? firstText(data['url'], source.url) : '',
      title: firstText(data['title']),
      description: firstText(data['description'], tags['description'], tags['og:description']),
      keywords: firstText(tags['keywords']),
      siteName: firstText(tags['og:site_name'], tags['application-name']),
      favicon: iconIn(objectOf(data['external'])),
      // It answers with a document only where the page's own server did, and does not say what that called it.
      statusCode: 200,
      contentType: '',
      language: firstText(tags['lang']),
      warnings: warningOf(data['warning']),
    },
    { html: firstText(data['html']), markdown: data['content'] },
    { pages: countOf(data['numPages'], 1), isCached: false },
  )
}

/** Links of the page by their relation, each an object whose keys are the addresses. */
function iconIn(external: Readonly<Record<string, unknown>>): string {
  const relations = Object.keys(external).filter((relation) => relation.toLowerCase().includes('icon'))
  const [first] = relations.sort((a, b) => a.length - b.length)
  return first === undefined ? '' : (Object.keys(objectOf(external[first]))[0] ?? '')
}

const JINA_ERROR_KINDS: Readonly<Partial<Record<number, ReaderErrorKind>>> = {
  400: 'caller',
  401: 'key',
  402: 'quota',
  403: 'access',
  409: 'quota',
  413: 'too_large',
  415: 'unreadable',
  422: 'unreadable',
  // A site that the reader may not read.
  451: 'caller',
  429: 'busy',
  504: 'timeout',
}
