import { createHash } from 'node:crypto'
import { NO_METADATA } from '@multi-model-gateway/document-engine/model/document.js'
import { contentText } from '@multi-model-gateway/document-engine/protocol.js'
import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { ProviderResponse } from '../core/byte-stream.js'
import { ownerOf, sharerOf } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import { MAXIMUM_TIMER_MS } from '../core/time.js'
import type { ReadDocument, ReadRequest, ReadSource } from '../providers/contract.js'
import { type DocumentRoute, ProviderRouter } from '../routing/router.js'
import { SafeFetchClient } from '../upstream/safe-fetch.js'
import { DocumentCache, type DocumentParse, KEPT_STATUS, reuseOfPage, SharedParses } from './document-cache.js'
import { DocumentClient, type FetchedDocument, FetchesInFlight } from './document-fetch.js'
import { PiecewiseBody, responseBytes } from './document-upload.js'
import {
  assertNotOwnAddress,
  type DocumentRequest,
  type DocumentSource,
  type DocumentUpload,
  KIND_TYPES,
} from './document.dto.js'
import { DocumentParser, type ParsedDocument, type ParseOptions } from './parser.js'

const UPLOAD_STATUS = 200

const NOTHING: ParsedDocument = {
  kind: 'text',
  metadata: NO_METADATA,
  pages: 1,
  content: contentText({ html: '', markdown: '' }),
}

const optionsOf = ({ caller, disconnect }: RequestContext, deadlineAtMs: number): ParseOptions => ({
  disconnect,
  deadlineAtMs,
  sharer: sharerOf(caller),
})

/** Reads documents by the gateway's own means: its client for the web, its engine for what comes of it. */
@Injectable()
export class LocalParser {
  constructor(
    private readonly client: DocumentClient,
    private readonly parser: DocumentParser,
  ) {}

  /** Whatever status the page's server gives it, it is a document. Rejects as `DocumentClient` and `DocumentParser` do. */
  async readUrl(url: string, call: RequestContext, deadlineAtMs: number): Promise<DocumentParse> {
    const fetched = await this.client.fetch(url, call, deadlineAtMs)
    try {
      const parsed = await this.parseFetched(fetched, optionsOf(call, deadlineAtMs))
      const { status: statusCode, file } = fetched
      const contentType = file.contentType === '' && file.spool.size > 0 ? KIND_TYPES[parsed.kind] : file.contentType
      return {
        document: documentOf(parsed, { url: fetched.url, statusCode, contentType }),
        reuse: reuseOfPage(statusCode, fetched.cacheControl),
      }
    } finally {
      await fetched.file.spool.remove()
    }
  }

  /** Rejects as `DocumentParser` does. */
  async readUpload(
    { spool, name, contentType }: DocumentUpload,
    call: RequestContext,
    deadlineAtMs: number,
  ): Promise<DocumentParse> {
    const options = optionsOf(call, deadlineAtMs)
    const parsed = await this.parser.parse({ spool, name, contentType, baseUrl: '' }, options)
    const shownType = contentType === '' ? KIND_TYPES[parsed.kind] : contentType
    return {
      document: documentOf(parsed, { url: '', statusCode: UPLOAD_STATUS, contentType: shownType }),
      reuse: 'same caller',
    }
  }

  /** A server that has nothing to say, or says no in a format that is none of ours, still told its status. */
  private async parseFetched({ file, status }: FetchedDocument, terms: ParseOptions): Promise<ParsedDocument> {
    if (file.spool.size === 0) return NOTHING
    try {
      return await this.parser.parse(file, terms)
    } catch (error) {
      if (status < 400 || !isDocumentError(error)) throw error
      return NOTHING
    }
  }
}

const isDocumentError = (error: unknown): boolean =>
  error instanceof GatewayError && (error.kind === 'unsupported_media_type' || error.kind === 'unprocessable')

const documentOf = (
  { metadata, content, pages }: ParsedDocument,
  facts: { readonly url: string; readonly statusCode: number; readonly contentType: string },
): DocumentParse['document'] => ({ metadata: { ...metadata, ...facts }, content, pages, isCached: false })

/** Smaller responses are written in one piece; larger ones are never copied, because slow readers would hold the copies. */
const COPIED_BYTES = 65_536

const TAIL = Buffer.from('}}')

/**
 * The specification's document parse result. The content is JSON text already and is put in as it is. Unlike those of
 * tasks, this envelope has no `request_id`: its section lists three members.
 */
export function documentResponse({ metadata, content }: ReadDocument, isCached: boolean): ProviderResponse {
  const { url, title, description, keywords, siteName, favicon, statusCode, contentType, language, warnings } = metadata
  const shown = JSON.stringify({
    ...{ url, title, description, keywords, siteName, favicon, statusCode, contentType },
    ...{ cached: isCached ? 1 : 0, language, warnings },
  })
  const pieces = [Buffer.from(`{"code":0,"message":"success","data":{"metadata":${shown},`), content, TAIL]
  const headers = { 'content-type': 'application/json' }
  if (content.length <= COPIED_BYTES) return new ProviderResponse(200, headers, Buffer.concat(pieces))
  const bytes = pieces.reduce((sum, { length }) => sum + length, 0)
  return new ProviderResponse(200, { ...headers, 'content-length': String(bytes) }, new PiecewiseBody(pieces))
}

/** Cache key of a document, the same for all callers: its URL, or the content, name and declared type of a file. */
async function identityOf(source: DocumentSource): Promise<string> {
  return source.kind === 'url' ? `url ${source.url}` : `file ${await digestOf(source.upload)}`
}

async function digestOf({ spool, name, contentType }: DocumentUpload): Promise<string> {
  const digest = createHash('sha256').update(`${JSON.stringify([name, contentType])}\n`)
  for await (const chunk of spool.createReadStream() as AsyncIterable<Buffer>) digest.update(chunk)
  return digest.digest('hex')
}

/** Longest DNS lookup for the check of a URL that is sent to an upstream reader. */
const RESOLVE_MS = 2000

/** A larger upload that was sent and not answered is not sent again (design: Reliability rules). */
const RETRYABLE_UPLOAD_BYTES = 10 * 1024 * 1024

/** Documents as Markdown (specification: Document parse result): read here, or by an upstream where one is configured. */
@Injectable()
export class DocumentService {
  constructor(
    private readonly router: ProviderRouter,
    private readonly reader: LocalParser,
    private readonly cache: DocumentCache,
    private readonly parses: SharedParses,
    private readonly fetches: FetchesInFlight,
    private readonly guarded: SafeFetchClient,
    private readonly store: ConfigStore,
  ) {}

  /** The document's result. Rejects with a `GatewayError` of the caller's, the document's or its server's fault. */
  async parse(request: DocumentRequest, call: RequestContext): Promise<ProviderResponse> {
    const { source, isFresh } = request
    const patience = { timeoutMs: request.timeoutMs, deadlineAtMs: performance.now() + request.timeoutMs }
    const route = this.router.document(call.caller)
    if (source.kind === 'url') this.assertFetched(source.url)
    const owner = ownerOf(call.caller)
    const identity = `${route === undefined ? 'here' : 'elsewhere'} ${await identityOf(source)}`
    const known = isFresh ? undefined : this.cache.find(identity, owner)
    if (known !== undefined) return answered(known, true, call)
    const { document } = await this.parses.wait(
      sharingKey(request, route, identity, owner),
      call,
      patience,
      async (shared) => {
        const keep = this.cache.begin(identity, owner)
        const reading = await this.read(
          { ...request, timeoutMs: patience.deadlineAtMs - performance.now() },
          route,
          shared,
        )
        keep(reading)
        return reading
      },
    )
    return answered(document, document.isCached, call)
  }

  private assertFetched(url: string): void {
    const { documents, server } = this.store.current
    if (documents.fetch) assertNotOwnAddress(url, server.publicUrl)
    else
      throw new GatewayError('invalid_request', "Invalid 'url': this gateway fetches no documents. Upload the file.", {
        param: 'url',
        code: 'url_not_allowed',
      })
  }

  private async read(
    request: DocumentRequest,
    route: DocumentRoute | undefined,
    call: RequestContext,
  ): Promise<DocumentParse> {
    const { source } = request
    const release = source.kind === 'file' ? source.upload.hold() : undefined
    try {
      if (route !== undefined)
        return await this.fetches.within(call.caller, () => this.readElsewhere(route, request, call))
      // Longer than the deadline of any waiting request, also of one that joins late.
      const deadlineAtMs =
        performance.now() + Math.min(2 * this.store.current.documents.maximumTimeoutMs, MAXIMUM_TIMER_MS)
      return source.kind === 'url'
        ? await this.reader.readUrl(source.url, call, deadlineAtMs)
        : await this.reader.readUpload(source.upload, call, deadlineAtMs)
    } finally {
      await release?.()
    }
  }

  /** Checks a URL for an upstream reader; for the gateway's own fetch the guarded client checks each step. */
  private async readElsewhere(
    route: DocumentRoute,
    request: DocumentRequest,
    call: RequestContext,
  ): Promise<DocumentParse> {
    const { source, timeoutMs } = request
    const startedAtMs = performance.now()
    if (source.kind === 'url') {
      await this.guarded.assertAllowedElsewhere(source.url, 'url', Math.min(RESOLVE_MS, Math.max(1, timeoutMs)))
    }
    const remainingMs = timeoutMs - (performance.now() - startedAtMs)
    const longest = responseBytes(this.store.current.limits)
    return await readBy(route, { ...request, timeoutMs: remainingMs, responseBytes: longest }, call)
  }
}

/** Key of a shared read. It has the timeout for an upstream reader, which receives it. */
function sharingKey(
  { isFresh, timeoutMs }: DocumentRequest,
  route: DocumentRoute | undefined,
  identity: string,
  owner: string,
): string {
  const limit = route === undefined ? '' : ` within ${timeoutMs}`
  return `${owner} ${isFresh ? 'anew' : 'any'}${limit} ${identity}`
}

/** Reads a document on a channel of the operator's. */
async function readBy(
  route: DocumentRoute,
  { source, timeoutMs, isFresh, responseBytes }: DocumentRequest & Pick<ReadRequest, 'responseBytes'>,
  call: RequestContext,
): Promise<DocumentParse> {
  const canRetryAfterSend = source.kind === 'url' || source.upload.spool.size <= RETRYABLE_UPLOAD_BYTES
  const document = await route.attempt(call, { canRetryAfterSend }, (provider, context) =>
    provider.read({ source: readSourceOf(source), timeoutMs: Math.max(1, timeoutMs), isFresh, responseBytes }, context),
  )
  if (document.metadata.statusCode !== KEPT_STATUS) return { document, reuse: 'none' }
  // A document read with a caller's own upstream key is cached for that caller only.
  return { document, reuse: source.kind === 'url' && call.caller.bearer === undefined ? 'anyone' : 'same caller' }
}

function readSourceOf(source: DocumentSource): ReadSource {
  if (source.kind === 'url') return source
  const { spool, name, contentType } = source.upload
  return { kind: 'file', spool, name, contentType }
}

function answered(document: ReadDocument, isCached: boolean, call: RequestContext): ProviderResponse {
  call.log.usage = { units: { documents: 1, pages: document.pages }, estimated: false }
  return documentResponse(document, isCached)
}
