import type { Exchange } from '../server/exchange.js'
import type { FaultDialect, StatusFault } from '../server/faults.js'
import { fieldOf, isObject, type JsonObject, listOf, parseJsonObject } from '../server/json-value.js'
import { multipartBoundary, MultipartError, MultipartReader, type ReceivedPart } from '../server/multipart-reader.js'
import { recordHeaderViolations } from '../server/recorded-request.js'
import { type Simulator, type SimulatorOptions, startSimulator } from '../server/simulator-server.js'

/** A request to one of the readers, validated by its rules. */
interface ReaderOrder {
  /** Empty for a file. */
  readonly url: string
  readonly file: ReceivedPart | undefined
  readonly isFresh: boolean
}

/** Why a reader refuses a request, in its own words. */
class ReaderRefusal {
  constructor(
    readonly status: number,
    readonly message: string,
  ) {}
}

const BODY_LIMIT_BYTES = 50 * 1024 * 1024

type ReaderFamily = 'gateway' | 'firecrawl' | 'jina'

/** The interface that answers at a path; undefined where none does. */
function familyOf(path: string): ReaderFamily | undefined {
  if (path === '/v1/document/parse') return 'gateway'
  if (path === '/v2/scrape' || path === '/v2/parse') return 'firecrawl'
  return path === '/' ? 'jina' : undefined
}

/** Reads the body to its end, also an invalid one, and validates it. */
async function readOrder(exchange: Exchange, family: ReaderFamily): Promise<ReaderOrder | ReaderRefusal> {
  const { headers } = exchange.request
  const boundary = multipartBoundary(headers['content-type'])
  if (boundary !== undefined) return await readForm(exchange, boundary, family)
  const bytes = await exchange.readBody(BODY_LIMIT_BYTES)
  if (bytes === undefined) return new ReaderRefusal(413, 'The body is too large')
  if (headers['content-type'] !== 'application/json') return new ReaderRefusal(415, 'Unknown content type')
  const fields = parseJsonObject(bytes)
  const url = fieldOf(fields, 'url')
  if (fields === undefined || typeof url !== 'string' || !URL.canParse(url)) {
    return new ReaderRefusal(400, 'Invalid URL')
  }
  const refusal = exchange.request.path === '/v2/parse' ? 'Expected a file' : faultOf(family, fields, headers)
  if (refusal !== undefined) return new ReaderRefusal(400, refusal)
  return { url, file: undefined, isFresh: isFresh(family, fields, headers) }
}

async function readForm(
  exchange: Exchange,
  boundary: string,
  family: ReaderFamily,
): Promise<ReaderOrder | ReaderRefusal> {
  const reader = new MultipartReader(boundary)
  try {
    for await (const chunk of exchange.chunks()) reader.push(chunk)
    exchange.request.parts = reader.finish()
  } catch (error) {
    if (!(error instanceof MultipartError)) throw error
    await exchange.drain()
    return new ReaderRefusal(400, `Broken form: ${error.message}`)
  }
  const { headers, path } = exchange.request
  const [file, ...more] = reader.parts.filter(({ name }) => name === 'file')
  if (file?.filename === undefined || more.length > 0) return new ReaderRefusal(400, 'Expected one file')
  if (file.size > BODY_LIMIT_BYTES) return new ReaderRefusal(413, 'The file is too large')
  if (path === '/v2/scrape') return new ReaderRefusal(400, 'Expected a URL')
  const fields = fieldsOf(family, reader.parts)
  const refusal = fields === undefined ? 'Broken options' : faultOf(family, fields, headers)
  if (fields === undefined || refusal !== undefined) return new ReaderRefusal(400, refusal ?? '')
  return { url: '', file, isFresh: isFresh(family, fields, headers) }
}

/** Firecrawl takes its options as JSON text in one part, the others each in a part of its own. */
function fieldsOf(family: ReaderFamily, parts: readonly ReceivedPart[]): JsonObject | undefined {
  const texts = parts.filter(({ name }) => name !== 'file')
  if (family !== 'firecrawl') return Object.fromEntries(texts.map(({ name, value }) => [name, Number(value)]))
  const options = texts.find(({ name }) => name === 'options')?.value
  if (texts.length > 1 || options === undefined) return undefined
  return parseJsonObject(Buffer.from(options))
}

const KNOWN_FIELDS: Readonly<Record<ReaderFamily, readonly string[]>> = {
  gateway: ['url', 'timeout', 'no_cache'],
  firecrawl: ['url', 'formats', 'timeout', 'onlyMainContent', 'maxAge'],
  jina: ['url'],
}

/** The first thing that a strict reader would not take. */
function faultOf(
  family: ReaderFamily,
  fields: JsonObject,
  headers: Readonly<Record<string, string>>,
): string | undefined {
  const unknown = Object.keys(fields).find((name) => !KNOWN_FIELDS[family].includes(name))
  if (unknown !== undefined) return `Unrecognized key: ${unknown}`
  const { timeout } = fields
  if (family === 'gateway') return typeof timeout === 'number' && timeout > 0 ? undefined : 'Invalid timeout'
  if (family === 'jina') return isWithin(Number(headers['x-timeout']), 1, 180) ? undefined : 'Invalid X-Timeout'
  if (!isWithin(timeout, 1000, 300_000)) return 'Invalid timeout'
  const formats = listOf(fields['formats'])
  return formats.length > 0 && formats.every((format) => format === 'markdown' || format === 'html')
    ? undefined
    : 'Invalid formats'
}

const isWithin = (value: unknown, least: number, most: number): boolean =>
  typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most

function isFresh(family: ReaderFamily, fields: JsonObject, headers: Readonly<Record<string, string>>): boolean {
  if (family === 'firecrawl') return fields['maxAge'] === 0
  return family === 'jina' ? headers['x-no-cache'] === 'true' : headers['cache-control'] === 'no-cache'
}

/** The text that may contain fault words: the last segment of the URL's path, or the file's name. */
function wordsOf(order: ReaderOrder | ReaderRefusal): string | undefined {
  if (order instanceof ReaderRefusal || !isObject(order)) return undefined
  const name = order.file?.filename ?? new URL(order.url).pathname.split('/').at(-1) ?? ''
  return `#${/^fault-([a-z0-9]+)/.exec(name)?.[1] ?? ''}`
}

/** The simulated content of every document, in the format of each interface. */
function documentAnswer(family: ReaderFamily, order: ReaderOrder, isCached: boolean): string {
  const title = order.file === undefined ? 'Kettles' : (order.file.filename ?? '')
  const words = order.file === undefined ? `Text of ${order.url}` : `${order.file.size} bytes, ${order.file.sha1}`
  const markdown = `# ${title}\n\n${words} \u{1f375}\n`
  const html = order.file === undefined ? `<h1>${title}</h1><p>${words}</p>` : ''
  return JSON.stringify(ANSWERS[family]({ order, title, markdown, html, isCached }))
}

interface ReaderContent {
  readonly order: ReaderOrder
  readonly title: string
  readonly markdown: string
  readonly html: string
  readonly isCached: boolean
}

const WARNING = 'Page 2 is a picture.'
const ICON = 'https://example.org/icon.png'

const ANSWERS: Readonly<Record<ReaderFamily, (content: ReaderContent) => object>> = {
  gateway: ({ order: { url }, title, markdown, html, isCached }) => {
    const site = { description: 'About kettles', keywords: 'kettle,tea', siteName: 'Example', favicon: ICON }
    const warnings = [{ code: 'pages_without_text', message: WARNING, pages: [2] }]
    const head = { statusCode: 200, contentType: 'text/html; charset=utf-8', cached: isCached ? 1 : 0 }
    const metadata = { url, title, ...site, ...head, language: 'en', warnings }
    return { code: 0, message: 'success', data: { metadata, html, markdown } }
  },
  firecrawl: ({ order: { url }, title, markdown, html, isCached }) => {
    const site = { description: 'About kettles', keywords: ['kettle', 'tea'], ogSiteName: 'Example', favicon: ICON }
    const head = { sourceURL: url, url, statusCode: 200, contentType: 'text/html', numPages: 3 }
    const metadata = { title, language: 'en', ...site, ...head, cacheState: isCached ? 'hit' : 'miss' }
    return { success: true, data: { markdown, html, metadata, warning: WARNING } }
  },
  jina: ({ order: { url }, title, markdown, html }) => {
    const metadata = { lang: 'en', description: 'About kettles', keywords: 'kettle,tea', 'og:site_name': 'Example' }
    const external = { 'apple-touch-icon': { 'https://example.org/big.png': {} }, icon: { [ICON]: { sizes: '32x32' } } }
    const page = { title, description: '', url, content: markdown, html, metadata, external, warning: WARNING }
    return { code: 200, status: 20_000, data: { ...page, usage: { tokens: 9 } } }
  },
}

/** A refusal in the words of the interface. */
function refusalAnswer(family: ReaderFamily, status: number, message: string): string {
  if (family === 'gateway') return JSON.stringify({ code: status * 100 + 9, message, request_id: 'reader-1' })
  if (family === 'firecrawl') return JSON.stringify({ success: false, error: message, code: 'BAD_REQUEST' })
  const name = 'ParamValidationError'
  return JSON.stringify({ data: null, code: status, name, status: status * 100 + 1, message, readableMessage: message })
}

const WORDS: Readonly<Partial<Record<StatusFault, string>>> = {
  '401': 'The key reader-key is wrong',
  '422': 'No content available at https://inner.example.com/x',
}

/** What the readers answer for the common faults. They have no event streams. */
const readerFaults = (family: ReaderFamily): FaultDialect => ({
  statusAnswer: (fault) => {
    const status = fault === 'quota' ? 402 : Number(fault)
    const body = refusalAnswer(family, status, WORDS[fault] ?? 'The request failed')
    const retry: Record<string, string> = fault === '429' ? { 'retry-after': '2' } : {}
    return { status, headers: { 'content-type': 'application/json', ...retry }, body }
  },
  errorFrames: () => [],
})

export interface ReaderSimulatorOptions extends SimulatorOptions {
  /** The only accepted bearer. Default: the check is off. */
  readonly apiKey?: string
}

/**
 * Starts the document reader: `POST /v1/document/parse` as the specification has it, Firecrawl's `/v2/scrape` and
 * `/v2/parse`, and Jina Reader's `/`. It fetches nothing: each URL has the same page. A URL whose last segment, or a file
 * whose name, begins with `fault-<word>` suffers that fault of `faults.ts`. What was read once is cached, and said to be.
 */
export function startReaderSimulator({ apiKey, ...options }: ReaderSimulatorOptions = {}): Promise<Simulator> {
  const known = new Set<string>()
  return startSimulator(async (exchange) => {
    const { method, path, headers } = exchange.request
    recordHeaderViolations(exchange.request, 'authorization')
    const family = method === 'POST' ? familyOf(path) : undefined
    if (family === undefined) return exchange.send(404, {}, '')
    const order = await readOrder(exchange, family)
    if (apiKey !== undefined && headers['authorization'] !== `Bearer ${apiKey}`) {
      return refuse(exchange, family, 401, 'Unauthorized')
    }
    if (await exchange.answeredByFault(readerFaults(family), wordsOf(order))) return undefined
    if (order instanceof ReaderRefusal) return refuse(exchange, family, order.status, order.message)
    const key = `${family} ${order.url} ${order.file?.sha1 ?? ''}`
    const isCached = known.has(key) && !order.isFresh
    known.add(key)
    return exchange.send(200, { 'content-type': 'application/json' }, documentAnswer(family, order, isCached))
  }, options)
}

const refuse = (exchange: Exchange, family: ReaderFamily, status: number, message: string): Promise<void> =>
  exchange.send(status, { 'content-type': 'application/json' }, refusalAnswer(family, status, message))
