import { createHash } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { ProviderResponse } from '../core/byte-stream.js'
import { ownerOf } from '../core/caller.js'
import type { RequestContext } from '../core/request-context.js'
import { MAXIMUM_TIMER_MS } from '../core/time.js'
import type { ReadDocument, ReadRequest, ReadSource } from '../providers/contract.js'
import { type DocumentRoute, ProviderRouter } from '../routing/router.js'
import { SafeFetchClient } from '../upstream/safe-fetch.js'
import { DocumentCache, type DocumentParse, KEPT_STATUS, SharedParses } from './document-cache.js'
import { FetchesInFlight } from './document-fetch.js'
import { responseBytes, PiecewiseBody } from './document-upload.js'
import { assertNotOwnAddress, type DocumentRequest, type DocumentSource, type DocumentUpload } from './document.dto.js'
import { LocalParser } from './local-parser.js'

/** Smaller responses are written in one piece; larger ones are never copied, because slow readers would hold the copies. */
const COPIED_BYTES = 65_536

const TAIL = Buffer.from('}}')

/**
 * The specification's document parse result. The content is JSON text already and is put in as it is. Unlike those of
 * tasks, this envelope has no `request_id`: its section lists three members.
 */
export function documentResponse({ metadata, content }: ReadDocument, isCached: boolean): ProviderResponse {
  const { url, title, description, keywords, siteName, favicon, statusCode, contentType } = metadata
  const shown = JSON.stringify({
    ...{ url, title, description, keywords, siteName, favicon, statusCode, contentType },
    cached: isCached ? 1 : 0,
  })
  const pieces = [Buffer.from(`{"code":0,"message":"success","data":{"metadata":${shown},`), content, TAIL]
  const headers = { 'content-type': 'application/json' }
  if (content.length <= COPIED_BYTES) return new ProviderResponse(200, headers, Buffer.concat(pieces))
  const bytes = pieces.reduce((sum, { length }) => sum + length, 0)
  return new ProviderResponse(200, { ...headers, 'content-length': String(bytes) }, new PiecewiseBody(pieces))
}

/**
 * Cache key of a document, the same for all callers: its URL, or the content, name and declared type of a file.
 */
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
const REPEATABLE_UPLOAD_BYTES = 10 * 1024 * 1024

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
    if (source.kind === 'url') assertNotOwnAddress(source.url, this.store.current.server.publicUrl)
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

  private async read(
    request: DocumentRequest,
    route: DocumentRoute | undefined,
    call: RequestContext,
  ): Promise<DocumentParse> {
    const { source } = request
    const release = source.kind === 'file' ? source.upload.hold() : undefined
    try {
      if (route !== undefined) return await this.fetches.within(() => this.readElsewhere(route, request, call))
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
  { source, timeoutMs, isFresh, responseBytes: longest }: DocumentRequest & Pick<ReadRequest, 'responseBytes'>,
  call: RequestContext,
): Promise<DocumentParse> {
  const repeatableOnceSent = source.kind === 'url' || source.upload.spool.size <= REPEATABLE_UPLOAD_BYTES
  const document = await route.attempt(call, { repeatableOnceSent }, (provider, context) =>
    provider.read(
      { source: readSourceOf(source), timeoutMs: Math.max(1, timeoutMs), isFresh, responseBytes: longest },
      context,
    ),
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
