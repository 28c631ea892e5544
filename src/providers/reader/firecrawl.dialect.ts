import type { ReadRequest } from '../contract.js'
import type { ReaderDialect, ReaderFault } from './reader-dialect.js'
import { countOf, firstText, isSuccessful, objectOf, readDocument, type ReaderAnswer } from './reader-wire.js'

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
  faultOf: ({ status, body: { code } }) =>
    (typeof code === 'string' ? FAULT_OF_CODE.get(code) : undefined) ?? FIRECRAWL_FAULTS[status] ?? 'failed',
}

function firecrawlDocument({ body }: ReaderAnswer, { source }: ReadRequest) {
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
    },
    { html: firstText(data['html']), markdown: data['markdown'] },
    { pages: countOf(metadata['numPages'], 1), isCached: metadata['cacheState'] === 'hit' },
  )
}

const FAULT_OF_CODE: ReadonlyMap<string, ReaderFault> = new Map<string, ReaderFault>([
  ['SCRAPE_TIMEOUT', 'timeout'],
  ['SCRAPE_SSL_ERROR', 'unreachable'],
  ['SCRAPE_SITE_ERROR', 'unreachable'],
  ['SCRAPE_DNS_RESOLUTION_ERROR', 'unreachable'],
  ['SCRAPE_PDF_PREFETCH_FAILED', 'unreachable'],
])

const FIRECRAWL_FAULTS: Readonly<Partial<Record<number, ReaderFault>>> = {
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
