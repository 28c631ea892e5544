import type { ReadRequest } from '../contract.js'
import type { ReaderDialect, ReaderFault } from './reader-dialect.js'
import { countOf, firstText, isSuccessful, objectOf, readDocument, type ReaderAnswer } from './reader-wire.js'

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
  faultOf: ({ status }) => JINA_FAULTS[status] ?? 'failed',
}

function jinaDocument({ body }: ReaderAnswer, { source }: ReadRequest) {
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

const JINA_FAULTS: Readonly<Partial<Record<number, ReaderFault>>> = {
  400: 'caller',
  401: 'key',
  402: 'quota',
  403: 'access',
  409: 'quota',
  413: 'too_large',
  415: 'unreadable',
  422: 'unreadable',
  // A site that the reader was told not to read.
  451: 'caller',
  429: 'busy',
  504: 'timeout',
}
