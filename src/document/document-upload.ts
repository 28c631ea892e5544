import type { IncomingMessage, ServerResponse } from 'node:http'
import { parse as parseQuery } from 'node:querystring'
import { mediaTypeOf } from '@multi-model-gateway/document-engine/model/document.js'
import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { LimitsSection } from '../config/settings.js'
import type { ByteSink, ByteSource } from '../core/byte-stream.js'
import { DtoCheck } from '../core/dto.js'
import { GatewayError } from '../core/errors.js'
import { JsonBody } from '../core/json-body.js'
import { contextOf } from '../core/request-context.js'
import { SPOOL_MEMORY_BYTES } from '../core/spooled-file.js'
import { assertJson, JSON_BODY_TIMEOUT_MS } from '../server/json-request.js'
import { boundaryOf } from '../server/multipart-parser.js'
import {
  namedFields,
  receiveMultipart,
  releaseWhenDone,
  timedReception,
  UPLOAD_TIMEOUT_MS,
} from '../server/multipart.js'
import { assertReadable, continueIfAsked, readBody, reserveMemory } from '../server/read-body.js'
import { spoolBody } from '../server/spool-body.js'
import {
  BODY_TYPES,
  DocumentFormDto,
  type DocumentRequest,
  type DocumentSource,
  DocumentOptionsDto,
  DocumentUpload,
  DocumentUrlDto,
  flagOf,
  normalizedUrl,
  timeoutMsOf,
} from './document.dto.js'
import { DOCUMENT_PARSE } from './document.endpoint.js'

/** JSON text of a document, and HTML beside Markdown, are longer than what they were made of. */
const CONTENT_FACTOR = 4
/** Reading JSON of this length stops all other work of the process for a quarter of a second. */
const MOST_PARSED_BYTES = 32 * 1024 * 1024

/** The longest content of a document that its engine may hand over, as JSON text. */
export const contentBytes = ({ documentBytes }: Pick<LimitsSection, 'documentBytes'>): number =>
  documentBytes * CONTENT_FACTOR

/** The longest answer of an upstream reader, which is read as JSON here. */
export const responseBytes = (limits: Pick<LimitsSection, 'documentBytes'>): number =>
  Math.min(contentBytes(limits), MOST_PARSED_BYTES)

/**
 * A body of several buffers, each handed on as it is and in a turn of its own: what is written in one turn is joined, and
 * the copy would live as long as the slowest reader.
 */
export class PiecewiseBody implements ByteSource {
  private readonly pieces: Buffer[]
  private sink: ByteSink | undefined
  private isPaused = false
  private isPlanned = false

  constructor(pieces: readonly Buffer[]) {
    this.pieces = [...pieces]
  }

  start(sink: ByteSink): void {
    this.sink = sink
    this.step()
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
    this.plan()
  }

  cancel(): void {
    this.sink = undefined
    this.pieces.length = 0
  }

  private plan(): void {
    if (this.isPlanned || this.sink === undefined) return
    this.isPlanned = true
    setImmediate(() => {
      this.isPlanned = false
      if (!this.isPaused) this.step()
    })
  }

  private step(): void {
    const { sink } = this
    const piece = this.pieces.shift()
    if (piece !== undefined) {
      sink?.data(piece)
      this.plan()
      return
    }
    this.sink = undefined
    sink?.end()
  }
}

/** Of a form, beside its file. */
const FORM_OVERHEAD_BYTES = 2 * 1024 * 1024

const JSON_TYPE = /^application\/(?:json|[a-z0-9.+-]+\+json)$/

/** A caller who says so in the words of HTTP need not say it in the body. */
const NO_CACHE = /(?:^|[\s,])no-cache(?:[\s,;=]|$)/i

/**
 * Receives a request for a document in each of its three forms: a URL as JSON, a form with a file, a file as it is. Files lie
 * on disk beyond a mebibyte and are gone when the response is over. Rejects with a `GatewayError` of the caller's fault.
 */
@Injectable()
export class DocumentRequestReader {
  private readonly urlCheck = new DtoCheck(DocumentUrlDto)
  private readonly formCheck = new DtoCheck(DocumentFormDto)
  private readonly optionsCheck = new DtoCheck(DocumentOptionsDto)

  constructor(private readonly store: ConfigStore) {}

  receive(request: IncomingMessage, response: ServerResponse): Promise<DocumentRequest> {
    const type = mediaTypeOf(request.headers['content-type'])
    if (JSON_TYPE.test(type)) return this.receiveJson(request, response)
    if (type === 'multipart/form-data') return this.receiveForm(request, response)
    if (BODY_TYPES.includes(type)) return this.receiveBody(request, response)
    throw new GatewayError(
      'unsupported_media_type',
      'The Content-Type must be application/json, multipart/form-data or that of a document.',
    )
  }

  private async receiveJson(request: IncomingMessage, response: ServerResponse): Promise<DocumentRequest> {
    const maximumBytes = this.store.current.limits.jsonBodyBytes
    assertJson(request)
    assertReadable(request, maximumBytes)
    const bytes = await timedReception(request, () =>
      readBody(request, response, { maximumBytes, timeoutMs: JSON_BODY_TIMEOUT_MS }),
    )
    const { fields } = JsonBody.parse(bytes)
    if (isGiven(fields['url']) && isGiven(fields['file'])) throw bothGiven()
    const { url, timeout, no_cache: noCache } = this.urlCheck.assert(fields)
    return this.requestFor({ kind: 'url', url: normalizedUrl(url) }, timeout, noCache ?? false, request)
  }

  private async receiveForm(request: IncomingMessage, response: ServerResponse): Promise<DocumentRequest> {
    const { [DOCUMENT_PARSE.bodyLimit]: documentBytes } = this.store.current.limits
    const bodyBytes = documentBytes + FORM_OVERHEAD_BYTES
    // Headers are checked before `100 Continue`.
    boundaryOf(request, bodyBytes)
    const room = reserveMemory(request, SPOOL_MEMORY_BYTES)
    continueIfAsked(request, response)
    const { file, fields } = await timedReception(request, () =>
      receiveMultipart(request, {
        bodyBytes,
        fileBytes: documentBytes,
        fileTooLargeKind: 'payload_too_large',
        bodyTimeoutMs: UPLOAD_TIMEOUT_MS,
        room,
      }),
    )
    const upload = file && new DocumentUpload(file.spool, file.filename, file.claimedType)
    if (upload !== undefined) releaseWhenDone(upload.hold(), contextOf(request), response)
    const { url, timeout, no_cache: noCache } = this.formCheck.assert(namedFields(fields))
    if (upload !== undefined && url !== undefined) throw bothGiven()
    return this.requestFor(sourceOf(upload, url), timeout, flagOf(noCache), request)
  }

  private async receiveBody(request: IncomingMessage, response: ServerResponse): Promise<DocumentRequest> {
    const { [DOCUMENT_PARSE.bodyLimit]: documentBytes } = this.store.current.limits
    assertReadable(request, documentBytes)
    const query = parseQuery(request.url?.split('?', 2)[1] ?? '')
    const { timeout, no_cache: noCache } = this.optionsCheck.assert(query)
    const room = reserveMemory(request, SPOOL_MEMORY_BYTES)
    continueIfAsked(request, response)
    const spool = await timedReception(request, () =>
      spoolBody(request, { maximumBytes: documentBytes, timeoutMs: UPLOAD_TIMEOUT_MS, room }),
    )
    const upload = new DocumentUpload(spool, '', request.headers['content-type'] ?? '')
    releaseWhenDone(upload.hold(), contextOf(request), response)
    return this.requestFor(sourceOf(upload, undefined), timeout, flagOf(noCache), request)
  }

  private requestFor(
    source: DocumentSource,
    timeout: number | string | null | undefined,
    noCache: boolean,
    request: IncomingMessage,
  ): DocumentRequest {
    return {
      source,
      timeoutMs: timeoutMsOf(timeout, this.store.current.documents),
      isFresh: noCache || NO_CACHE.test(request.headers['cache-control'] ?? ''),
    }
  }
}

function sourceOf(upload: DocumentUpload | undefined, url: string | undefined): DocumentSource {
  if (upload === undefined && url !== undefined) return { kind: 'url', url: normalizedUrl(url) }
  if (upload === undefined)
    throw fileFault("Missing required parameter: 'file' or 'url'.", 'missing_required_parameter')
  if (upload.spool.size === 0) throw fileFault('The document is empty.', 'empty_file')
  return { kind: 'file', upload }
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

const bothGiven = (): GatewayError => fileFault("Send either 'url' or 'file', not both.", 'unsupported_value')

const fileFault = (message: string, code: string): GatewayError =>
  new GatewayError('invalid_request', message, { param: 'file', code })
