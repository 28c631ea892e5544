import { Injectable } from '@nestjs/common'
import { keyCredentials } from '../../config/channel-schema.js'
import { oneOf, settings } from '../../config/value-types.js'
import { type ByteSource, collect } from '../../core/byte-stream.js'
import { GatewayError, scrubMessage } from '../../core/errors.js'
import type { MemoryLease } from '../../core/quota.js'
import { encodeMultipart, type MultipartPart } from '../../upstream/multipart-encoder.js'
import { UpstreamClient, type UpstreamRequest } from '../../upstream/upstream-client.js'
import { accountError } from '../../upstream/upstream-error.js'
import type { AttemptContext, DocumentProvider, ProviderManifest, ReadDocument, ReadRequest } from '../contract.js'
import {
  FIRECRAWL_DIALECT,
  firstText,
  GATEWAY_DIALECT,
  isSuccessful,
  JINA_DIALECT,
  type ReaderDialect,
  type ReaderErrorKind,
  type ReaderRequest,
  type ReaderResponse,
  readReaderResponse,
} from './reader-dialects.js'

const ANSWERED = { phase: 'answered' } as const

interface ReaderKey {
  readonly secret: string
  readonly callersKey: boolean
}

/** The failure that an answer without a document is. The reader's words are shown where the document is at fault. */
function readerFailure(
  fault: ReaderErrorKind,
  answer: ReaderResponse,
  { secret, callersKey }: ReaderKey,
): GatewayError {
  const words = scrubMessage(secret === '' ? answer.words : answer.words.replaceAll(secret, '[key]'))
  const cause = `status ${answer.status}${words === '' ? '' : `: ${words}`}`
  const details = { cause, attempt: ANSWERED }
  switch (fault) {
    case 'caller':
      return new GatewayError('invalid_request', words || 'The reader refused the request.', details)
    case 'too_large':
      return new GatewayError('payload_too_large', words || 'The document is too large.', details)
    case 'unreadable':
      return new GatewayError('unprocessable', words || 'The document cannot be read.', details)
    case 'unreachable':
      return new GatewayError('upstream_failed', "The document's server could not be reached.", details)
    case 'timeout':
      return new GatewayError('upstream_timeout', 'The document could not be read in time.', details)
    case 'key':
    case 'access':
    case 'quota':
    case 'busy':
      return accountError(fault, callersKey, { cause, retryAfterSeconds: answer.retryAfterSeconds })
    case 'failed':
    default:
      return isSuccessful(answer) ? unreadableResponse(cause) : brokenDown('The reader failed.', cause)
  }
}

const unreadableResponse = (cause: string): GatewayError =>
  brokenDown('The reader answered with something that cannot be read.', cause)

/** The document has more text than is taken: nothing that another reader would do better. */
const responseTooLong = (): GatewayError =>
  new GatewayError('payload_too_large', 'The text of the document is too long.', {
    cause: 'the answer of the reader is too large',
    attempt: ANSWERED,
  })

const brokenDown = (message: string, cause: string): GatewayError =>
  new GatewayError('upstream_failed', message, { cause, attempt: { ...ANSWERED, channelError: true } })

/** A reader keeps its own deadline; this much later its answer is given up. */
const PATIENCE_MS = 2000

const DIALECTS: Readonly<Partial<Record<string, ReaderDialect>>> = {
  gateway: GATEWAY_DIALECT,
  firecrawl: FIRECRAWL_DIALECT,
  jina: JINA_DIALECT,
}

/** Documents read by another service in one of three dialects (option `dialect`). */
@Injectable()
export class ReaderDocumentProvider implements DocumentProvider {
  constructor(private readonly client: UpstreamClient) {}

  async read(request: ReadRequest, context: AttemptContext): Promise<ReadDocument> {
    const dialect = DIALECTS[String(context.options['dialect'])] ?? GATEWAY_DIALECT
    const deadlineAtMs = Math.min(context.deadlineAtMs, performance.now() + request.timeoutMs + PATIENCE_MS)
    const outgoing = requestOf(dialect.ask(request), request, context.credentials)
    const response = await this.client.send(outgoing, context.target, context, deadlineAtMs)
    const bytes = await collect(counted(response.body, context.memory), request.responseBytes, responseTooLong)
    const answer = readReaderResponse(response, bytes)
    const document = dialect.documentIn(answer, request)
    if (document !== undefined) return asSent(document, request)
    throw readerFailure(dialect.errorKindOf(answer), answer, {
      secret: context.credentials,
      callersKey: context.callersKey,
    })
  }
}

/** What arrives counts among the bytes the process holds until the call is over: so long there is something made of it. */
const counted = (body: ByteSource, memory: MemoryLease | undefined): ByteSource => ({
  start: (sink) => {
    body.start({
      data: (chunk) => {
        memory?.add(chunk.length)
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

function requestOf({ path, headers, fields }: ReaderRequest, { source }: ReadRequest, key: string): UpstreamRequest {
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
  return { method: 'POST', path, headers: [...common, ...framing], body: form.body }
}

/** Readers of documents, used instead of the gateway's own engine. */
export const READER_MANIFEST: ProviderManifest = {
  name: 'reader',
  credentialsSchema: keyCredentials,
  optionsSchema: settings({
    dialect: oneOf(['gateway', 'firecrawl', 'jina'])
      .default('gateway')
      .describe('reader: the interface it speaks; see [documents.md](documents.md)'),
  }),
  capabilities: { document: ReaderDocumentProvider },
  // A document names no model.
  defaultModelClass: 'chat',
  models: {},
}
