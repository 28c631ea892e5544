import type { Exchange } from '../server/exchange.js'
import { fieldOf, isObject, type JsonObject, listOf, parseJsonObject } from '../server/json-value.js'
import { multipartBoundary } from '../server/multipart-disposition.js'
import { MultipartError, type ReceivedPart } from '../server/multipart-part.js'
import { MultipartReader } from '../server/multipart-reader.js'

/** What one of the readers was asked, judged by its own rules. */
export interface ReaderOrder {
  /** Empty for a file. */
  readonly url: string
  readonly file: ReceivedPart | undefined
  readonly isFresh: boolean
}

/** Why a reader refuses a request, in its own words. */
export class ReaderRefusal {
  constructor(
    readonly status: number,
    readonly message: string,
  ) {}
}

const BODY_LIMIT_BYTES = 50 * 1024 * 1024

export type ReaderFamily = 'gateway' | 'firecrawl' | 'jina'

/** The interface that answers at a path; undefined where none does. */
export function familyOf(path: string): ReaderFamily | undefined {
  if (path === '/v1/document/parse') return 'gateway'
  if (path === '/v2/scrape' || path === '/v2/parse') return 'firecrawl'
  return path === '/' ? 'jina' : undefined
}

/** Reads the body to its end, whatever is wrong with it, and judges it. */
export async function readOrder(exchange: Exchange, family: ReaderFamily): Promise<ReaderOrder | ReaderRefusal> {
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

/** The text that may hold words for faults: the last segment of the URL's path, or the file's name. */
export function wordsOf(order: ReaderOrder | ReaderRefusal): string | undefined {
  if (order instanceof ReaderRefusal || !isObject(order)) return undefined
  const name = order.file?.filename ?? new URL(order.url).pathname.split('/').at(-1) ?? ''
  return `#${/^fault-([a-z0-9]+)/.exec(name)?.[1] ?? ''}`
}
