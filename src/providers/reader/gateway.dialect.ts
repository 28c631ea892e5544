import type { ReadRequest } from '../contract.js'
import type { ReaderDialect, ReaderFault } from './reader-dialect.js'
import { countOf, firstText, isSuccessful, objectOf, readDocument, type ReaderAnswer } from './reader-wire.js'

/** With whatever status: the address, not the key, is refused. */
const ADDRESS_REFUSED = 40_301

/** Specification: `POST /v1/document/parse`; another gateway of this kind, or whoever speaks as it does. */
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
  faultOf: (answer) =>
    answer.body['code'] === ADDRESS_REFUSED ? 'caller' : (GATEWAY_FAULTS[statusOf(answer)] ?? 'failed'),
}

function gatewayDocument({ body }: ReaderAnswer, { source }: ReadRequest) {
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
    },
    { html: firstText(data['html']), markdown: data['markdown'] },
    { pages: 1, isCached: metadata['cached'] === 1 },
  )
}

/** Readers that say everything with status 200 put it before the last two digits of their code: 40301, 42201. */
function statusOf({ status, body: { code } }: ReaderAnswer): number {
  return status === 200 && typeof code === 'number' && code >= 40_000 && code < 60_000 ? Math.floor(code / 100) : status
}

const GATEWAY_FAULTS: Readonly<Partial<Record<number, ReaderFault>>> = {
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
