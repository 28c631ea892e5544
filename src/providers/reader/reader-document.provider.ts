import { Injectable } from '@nestjs/common'
import { collect } from '../../common/http/byte-source.js'
import { encodeMultipart, type MultipartPart } from '../../common/http/multipart-writer.js'
import { UpstreamClient, type UpstreamRequest } from '../../common/http/upstream-client.js'
import type { CallContext } from '../contracts/call-context.js'
import type { DocumentProvider, ReadDocument, ReadRequest } from '../contracts/document.contract.js'
import { FIRECRAWL_DIALECT } from './dialects/firecrawl.dialect.js'
import { GATEWAY_DIALECT } from './dialects/gateway.dialect.js'
import { JINA_DIALECT } from './dialects/jina.dialect.js'
import { firstText, readReaderAnswer } from './reader-answer.js'
import type { ReaderDialect, ReaderQuestion } from './reader-dialect.js'
import { readerFailure, unreadableAnswer } from './reader-failure.js'

/** Text of any document this product accepts stays below it, twice over as HTML and Markdown. */
const MAXIMUM_ANSWER_BYTES = 128 * 1024 * 1024
/** A reader keeps its own deadline; so much later nobody hopes for its answer any more. */
const PATIENCE_MS = 2000

const DIALECTS: Readonly<Partial<Record<string, ReaderDialect>>> = {
  gateway: GATEWAY_DIALECT,
  firecrawl: FIRECRAWL_DIALECT,
  jina: JINA_DIALECT,
}

/** Documents read by somebody else, who speaks one of three dialects (option `dialect`). */
@Injectable()
export class ReaderDocumentProvider implements DocumentProvider {
  constructor(private readonly client: UpstreamClient) {}

  async read(request: ReadRequest, context: CallContext): Promise<ReadDocument> {
    const dialect = DIALECTS[String(context.options['dialect'])] ?? GATEWAY_DIALECT
    const deadlineAtMs = Math.min(context.deadlineAtMs, performance.now() + request.timeoutMs + PATIENCE_MS)
    const outgoing = requestOf(dialect.ask(request), request, context.credentials)
    const response = await this.client.send(outgoing, context.target, context.call, deadlineAtMs)
    const bytes = await collect(response.body, MAXIMUM_ANSWER_BYTES, () => unreadableAnswer('the answer is too large'))
    const answer = readReaderAnswer(response, bytes)
    const document = dialect.documentIn(answer, request)
    if (document !== undefined) return asSent(document, request)
    throw readerFailure(dialect.faultOf(answer), answer, {
      secret: context.credentials,
      callersKey: context.callersKey,
    })
  }
}

/** A file comes from nowhere, and without a title of its own it is called by its name. */
function asSent(document: ReadDocument, { source }: ReadRequest): ReadDocument {
  if (source.kind === 'url') return document
  const { metadata } = document
  return { ...document, metadata: { ...metadata, url: '', title: firstText(metadata.title, source.name) } }
}

function requestOf({ path, headers, fields }: ReaderQuestion, { source }: ReadRequest, key: string): UpstreamRequest {
  const common = ['authorization', `Bearer ${key}`, 'accept', 'application/json', ...headers]
  if (source.kind === 'url') {
    const body = Buffer.from(JSON.stringify(fields))
    return { method: 'POST', path, headers: [...common, 'content-type', 'application/json'], body }
  }
  const parts: MultipartPart[] = Object.entries(fields).map(([name, value]) => ({
    name,
    value: typeof value === 'string' ? value : JSON.stringify(value),
  }))
  const contentType = source.contentType === '' ? 'application/octet-stream' : source.contentType
  parts.push({ name: 'file', filename: source.name === '' ? 'document' : source.name, contentType, file: source.spool })
  const form = encodeMultipart(parts)
  const framing = ['content-type', form.contentType, 'content-length', String(form.contentLength)]
  return { method: 'POST', path, headers: [...common, ...framing], body: form.body() }
}
