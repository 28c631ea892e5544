import type { IncomingMessage, ServerResponse } from 'node:http'
import { parse as parseQuery } from 'node:querystring'
import { mediaTypeOf } from '@multi-model-gateway/document-engine/model/document.js'
import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { DtoCheck } from '../core/dto-check.js'
import { GatewayError } from '../core/gateway-error.js'
import { JsonBody } from '../core/json-body.js'
import { callOf } from '../core/request-context.js'
import { SPOOL_MEMORY_BYTES } from '../core/spooled-file.js'
import { assertJson, JSON_BODY_TIMEOUT_MS } from '../server/json-request.js'
import { receiveMultipart } from '../server/multipart.js'
import { assertReadable, continueIfAsked, readBody, roomFor } from '../server/read-body.js'
import { spoolBody } from '../server/spool-body.js'
import { boundaryOf } from '../server/upload-body.js'
import { namedFields, releaseWhenDone, timedReception, UPLOAD_TIMEOUT_MS } from '../server/upload-reception.js'
import { flagOf, timeoutMsOf } from './document-fields.rule.js'
import { BODY_TYPES } from './document-media-types.js'
import { DocumentFormDto, DocumentTermsDto, DocumentUrlDto } from './document-request.dto.js'
import { type DocumentRequest, type DocumentSource, DocumentUpload } from './document-request.js'
import { normalizedUrl } from './document.dto.js'

/** Of a form, beside its file. */
const FORM_OVERHEAD_BYTES = 2 * 1024 * 1024

const JSON_TYPE = /^application\/(?:json|[a-z0-9.+-]+\+json)$/

/** A caller who says so in the words of HTTP need not say it in the body. */
const NO_CACHE = /(?:^|[\s,])no-cache(?:[\s,;=]|$)/i

/**
 * Receives a request for a document in each of its three forms: a URL as JSON, a form with a file, a file as it is.
 * Files lie on disk beyond a mebibyte and are gone when the response is over. Rejects with a `GatewayError` of the
 * caller's fault.
 */
@Injectable()
export class DocumentReception {
  private readonly urlCheck = new DtoCheck(DocumentUrlDto)
  private readonly formCheck = new DtoCheck(DocumentFormDto)
  private readonly termsCheck = new DtoCheck(DocumentTermsDto)

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
    const { url, timeout, no_cache: noCache } = await this.urlCheck.assert(fields)
    return this.requestFor({ kind: 'url', url: normalizedUrl(url) }, timeout, noCache ?? false, request)
  }

  private async receiveForm(request: IncomingMessage, response: ServerResponse): Promise<DocumentRequest> {
    const { documentBytes } = this.store.current.limits
    const bodyBytes = documentBytes + FORM_OVERHEAD_BYTES
    // Whatever the headers alone tell is judged before a client that waits is told to send.
    boundaryOf(request, bodyBytes)
    const room = roomFor(request, SPOOL_MEMORY_BYTES)
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
    if (upload !== undefined) releaseWhenDone(upload.hold(), callOf(request), response)
    const { url, timeout, no_cache: noCache } = await this.formCheck.assert(namedFields(fields))
    if (upload !== undefined && url !== undefined) throw bothGiven()
    return this.requestFor(sourceOf(upload, url), timeout, flagOf(noCache), request)
  }

  private async receiveBody(request: IncomingMessage, response: ServerResponse): Promise<DocumentRequest> {
    const { documentBytes } = this.store.current.limits
    assertReadable(request, documentBytes)
    const query = parseQuery(request.url?.split('?', 2)[1] ?? '')
    const { timeout, no_cache: noCache } = await this.termsCheck.assert(query)
    const room = roomFor(request, SPOOL_MEMORY_BYTES)
    continueIfAsked(request, response)
    const spool = await timedReception(request, () =>
      spoolBody(request, { maximumBytes: documentBytes, timeoutMs: UPLOAD_TIMEOUT_MS, room }),
    )
    const upload = new DocumentUpload(spool, '', request.headers['content-type'] ?? '')
    releaseWhenDone(upload.hold(), callOf(request), response)
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
