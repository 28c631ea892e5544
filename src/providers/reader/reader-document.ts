import { Injectable } from '@nestjs/common'
import { type ByteSource, collect } from '../../core/byte-source.js'
import type { Call } from '../../core/request-context.js'
import { encodeMultipart, type MultipartPart } from '../../upstream/multipart-encoder.js'
import { UpstreamClient, type UpstreamRequest } from '../../upstream/upstream-client.js'
import type { CallContext } from '../call-context.js'
import type { DocumentProvider, ReadDocument, ReadRequest } from '../contract.js'
import { FIRECRAWL_DIALECT } from './firecrawl.dialect.js'
import { GATEWAY_DIALECT } from './gateway.dialect.js'
import type { ReaderDialect, ReaderQuestion } from './reader-dialect.js'
import { JINA_DIALECT } from './reader-dialects.js'
import { answerTooLong, readerFailure } from './reader-failure.js'
import { firstText, readReaderAnswer } from './reader-wire.js'

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
    const bytes = await collect(counted(response.body, context.call), request.answerBytes, answerTooLong)
    const answer = readReaderAnswer(response, bytes)
    const document = dialect.documentIn(answer, request)
    if (document !== undefined) return asSent(document, request)
    throw readerFailure(dialect.faultOf(answer), answer, {
      secret: context.credentials,
      callersKey: context.callersKey,
    })
  }
}

/** What arrives counts among the bytes the process holds until the call is over: so long there is something made of it. */
const counted = (body: ByteSource, call: Call): ByteSource => ({
  start: (sink) => {
    body.start({
      data: (chunk) => {
        call.memory?.add(call, chunk.length)
        sink.data(chunk)
      },
      end: () => {
        sink.end()
      },
      fail: (error) => {
        sink.fail(error)
      },
    })
  },
  pause: () => {
    body.pause()
  },
  resume: () => {
    body.resume()
  },
  cancel: () => {
    body.cancel()
  },
})

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
