import type { FaultDialect, StatusFault } from '../server/faults.js'
import type { ReaderFamily, ReaderOrder } from './reader-request.js'

/** What the simulated readers say about every document: each interface has a place of its own for it. */
export function documentAnswer(family: ReaderFamily, order: ReaderOrder, isCached: boolean): string {
  const title = order.file === undefined ? 'Kettles' : (order.file.filename ?? '')
  const words = order.file === undefined ? `Text of ${order.url}` : `${order.file.size} bytes, ${order.file.sha1}`
  const markdown = `# ${title}\n\n${words} \u{1f375}\n`
  const html = order.file === undefined ? `<h1>${title}</h1><p>${words}</p>` : ''
  return JSON.stringify(ANSWERS[family]({ order, title, markdown, html, isCached }))
}

interface Told {
  readonly order: ReaderOrder
  readonly title: string
  readonly markdown: string
  readonly html: string
  readonly isCached: boolean
}

const ICON = 'https://example.org/icon.png'

const ANSWERS: Readonly<Record<ReaderFamily, (told: Told) => object>> = {
  gateway: ({ order: { url }, title, markdown, html, isCached }) => {
    const site = { description: 'About kettles', keywords: 'kettle,tea', siteName: 'Example', favicon: ICON }
    const head = { statusCode: 200, contentType: 'text/html; charset=utf-8', cached: isCached ? 1 : 0 }
    return { code: 0, message: 'success', data: { metadata: { url, title, ...site, ...head }, html, markdown } }
  },
  firecrawl: ({ order: { url }, title, markdown, html, isCached }) => {
    const site = { description: 'About kettles', keywords: ['kettle', 'tea'], ogSiteName: 'Example', favicon: ICON }
    const head = { sourceURL: url, url, statusCode: 200, contentType: 'text/html', numPages: 3 }
    const metadata = { title, ...site, ...head, cacheState: isCached ? 'hit' : 'miss' }
    return { success: true, data: { markdown, html, metadata } }
  },
  jina: ({ order: { url }, title, markdown, html }) => {
    const metadata = { lang: 'en', description: 'About kettles', keywords: 'kettle,tea', 'og:site_name': 'Example' }
    const external = { 'apple-touch-icon': { 'https://example.org/big.png': {} }, icon: { [ICON]: { sizes: '32x32' } } }
    const data = { title, description: '', url, content: markdown, html, metadata, external, usage: { tokens: 9 } }
    return { code: 200, status: 20_000, data }
  },
}

/** A refusal in the words of the interface. */
export function refusalAnswer(family: ReaderFamily, status: number, message: string): string {
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
export const readerFaults = (family: ReaderFamily): FaultDialect => ({
  statusAnswer: (fault) => {
    const status = fault === 'quota' ? 402 : Number(fault)
    const body = refusalAnswer(family, status, WORDS[fault] ?? 'The request failed')
    const retry: Record<string, string> = fault === '429' ? { 'retry-after': '2' } : {}
    return { status, headers: { 'content-type': 'application/json', ...retry }, body }
  },
  errorFrames: () => [],
})
