import { createRequire } from 'node:module'
import { type Readable, Transform, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { types } from 'node:util'
import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { ByteSource } from '../core/byte-stream.js'
import { type Caller, sharerOf } from '../core/caller.js'
import { codeOf, GatewayError } from '../core/errors.js'
import { FairShare } from '../core/fair-share.js'
import type { RequestContext } from '../core/request-context.js'
import { SpooledFile } from '../core/spooled-file.js'
import { safeFileName } from '../server/multipart.js'
import { contentEncodings, decodedStream, readableOf, UnknownEncoding } from '../upstream/content-encoding.js'
import { SafeFetchClient, type SafeFetchResponse, refusalIn } from '../upstream/safe-fetch.js'
import { TooManyRedirects } from '../upstream/ssrf-guard.js'
import { assertNotOwnAddress, nameIn } from './document.dto.js'
import type { DocumentFile } from './parser.js'

/**
 * Stores the body of an answer with its content encodings taken off, as it arrives: no form of it is ever in memory as a
 * whole. Rejects with `payload_too_large` when any form is larger than `maximumBytes`, with `upstream_failed` when an
 * encoding is unknown, broken or cut off, and as the body itself fails. After a failure nothing is left behind.
 */
export async function spoolDecoded(
  body: ByteSource,
  encodings: readonly string[],
  maximumBytes: number,
): Promise<SpooledFile> {
  const source = readableOf(body)
  const encoded = watched(source)
  const spool = new SpooledFile()
  try {
    const decoded = await decodedStream(encoded, encodings, () => boundedBytes(maximumBytes))
    await pipeline(decoded, storeIn(spool, maximumBytes))
    await spool.finish().catch(storageFailed)
    return spool
  } catch (error) {
    encoded.destroy()
    source.destroy()
    await spool.remove()
    throw decodingFailure(error)
  }
}

/** A document that comes more slowly holds its place for others' cost. */
const LEAST_BYTES_PER_SECOND = 1_024
const PROGRESS_MS = 10_000

/** Passes a body on, and ends it when too little has come of it since it was looked at last. */
function watched(body: Readable): Readable {
  let arrivedBytes = 0
  const counter = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      arrivedBytes += chunk.length
      done(null, chunk)
    },
  })
  const timer = setInterval(() => {
    if (arrivedBytes < (LEAST_BYTES_PER_SECOND * PROGRESS_MS) / 1_000) counter.destroy(tooSlow())
    arrivedBytes = 0
  }, PROGRESS_MS)
  // Errors of either end are forwarded to the other one.
  pipeline(body, counter)
    .catch(() => undefined)
    .finally(() => {
      clearInterval(timer)
    })
  return counter
}

const tooSlow = (): GatewayError =>
  new GatewayError('upstream_timeout', 'The server of the document sends it too slowly.')

const documentTooLarge = (maximumBytes: number): GatewayError =>
  new GatewayError('payload_too_large', `The document is larger than ${maximumBytes} bytes.`)

/** Lets so many bytes through: blocks that hold nothing would keep a decoder busy for ever. */
function boundedBytes(maximumBytes: number): Transform {
  let passedBytes = 0
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      passedBytes += chunk.length
      if (passedBytes > maximumBytes) done(documentTooLarge(maximumBytes))
      else done(null, chunk)
    },
  })
}

function storeIn(spool: SpooledFile, maximumBytes: number): Writable {
  let storedBytes = 0
  return new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      storedBytes += chunk.length
      if (storedBytes > maximumBytes) {
        done(documentTooLarge(maximumBytes))
        return
      }
      spool
        .append(chunk)
        .catch(storageFailed)
        .then(() => {
          done()
        }, done)
    },
  })
}

const unknownEncoding = (): GatewayError =>
  new GatewayError('upstream_failed', 'The document is sent in an encoding that the gateway does not know.')

function decodingFailure(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  return error instanceof UnknownEncoding ? unknownEncoding() : broken(error)
}

const broken = (cause: unknown): GatewayError =>
  new GatewayError('upstream_failed', 'The document arrived broken: its encoding does not hold.', { cause })

function storageFailed(cause: unknown): never {
  throw new GatewayError('internal', 'The document could not be stored.', { cause })
}

const BROKE_OFF = 'The connection to the server of the document broke off.'

const WORDS: readonly (readonly [codes: RegExp, words: string])[] = [
  [/^(?:ENOTFOUND|EAI_AGAIN|EAI_NODATA)$/, 'The host of the document is not known.'],
  [/^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN)$/, 'The server of the document cannot be reached.'],
  [/CERT|TLS|SSL|SIGNATURE|ISSUER|^EPROTO$/, 'The server of the document cannot prove who it is, or speaks no TLS.'],
  [/^HTTP_MALFORMED$/, 'The server of the document does not speak HTTP.'],
]

/**
 * Error for the caller of a failed fetch, without details of the gateway's network. Errors that are not of the transport are
 * returned unchanged.
 */
function fetchFailure(error: unknown): unknown {
  if (!(error instanceof GatewayError)) return error
  if (refusalIn(error) instanceof TooManyRedirects) return failed('The URL of the document redirects too often.', error)
  if (error.kind === 'upstream_timeout') {
    return new GatewayError('upstream_timeout', 'The server of the document did not send it in time.', { cause: error })
  }
  // Only failures of the transport know how far an attempt went.
  if (error.kind !== 'upstream_failed' || error.details.attempt === undefined) return error
  const { cause } = error.details
  // The parser's own failures have no code.
  const code = types.isNativeError(cause) ? codeOf(cause) || cause.name : ''
  return failed(WORDS.find(([codes]) => codes.test(code))?.[1] ?? BROKE_OFF, error)
}

const failed = (words: string, { details }: GatewayError): GatewayError =>
  new GatewayError('upstream_failed', words, { cause: details.cause })

/**
 * Documents that are on their way here, from the web or from an upstream that reads them: so many at once, of no caller more
 * than its share.
 */
@Injectable()
export class FetchesInFlight {
  readonly places: FairShare

  constructor(store: ConfigStore) {
    this.places = new FairShare(() => {
      const { documents, admission } = store.current
      return { total: documents.fetchesInFlight, callerShare: admission.callerShare }
    })
  }

  /** Rejects with `overloaded` beyond `documents.fetchesInFlight`, or the caller's share of it, otherwise as the work does. */
  async within<Result>(caller: Caller, work: () => Promise<Result>): Promise<Result> {
    const sharer = sharerOf(caller)
    if (!this.places.take(sharer)) throw tooManyFetches()
    try {
      return await work()
    } finally {
      this.places.count(sharer, -1)
    }
  }
}

const tooManyFetches = (): GatewayError => {
  // A fetch takes a second or two.
  const retryAfterSeconds = 2
  return new GatewayError('overloaded', 'Too many documents are being fetched at the moment.', { retryAfterSeconds })
}

const { version } = createRequire(import.meta.url)('../../package.json') as { readonly version: string }

const HEADERS: readonly string[] = [
  ...['user-agent', `MultiModelGateway/${version}`],
  ...['accept', 'text/html,application/xhtml+xml,application/pdf;q=0.9,text/markdown;q=0.9,*/*;q=0.5'],
  ...['accept-encoding', 'gzip, br'],
]

const MAXIMUM_REDIRECTS = 5

/** A document as its server sent it, with whatever status. */
export interface FetchedDocument {
  /** A complete file, which the caller of `fetch` removes. */
  readonly file: DocumentFile
  /** After all redirects. */
  readonly url: string
  readonly status: number
  /** The header as it was sent; '' when there was none. */
  readonly cacheControl: string
}

/** Fetches documents by URLs from callers, with the SSRF guard. */
@Injectable()
export class DocumentClient {
  constructor(
    private readonly guarded: SafeFetchClient,
    private readonly store: ConfigStore,
    private readonly fetches: FetchesInFlight,
  ) {}

  /**
   * Rejects with a `GatewayError`: `invalid_request` naming `url` for an address that may not be fetched, at first or after
   * a redirect; `payload_too_large`; `upstream_failed`; `upstream_timeout`; `overloaded` beyond
   * `documents.fetchesInFlight`; `caller_left`. `deadlineAtMs` (performance clock) bounds everything together.
   */
  async fetch(url: string, call: RequestContext, deadlineAtMs: number): Promise<FetchedDocument> {
    return await this.fetches.within(call.caller, async () => {
      try {
        return await this.receive(await this.ask(url, call, deadlineAtMs))
      } catch (error) {
        throw fetchFailure(error)
      }
    })
  }

  private ask(url: string, call: RequestContext, deadlineAtMs: number): Promise<SafeFetchResponse> {
    const { timeouts, server } = this.store.current
    return this.guarded.get(url, {
      context: { disconnect: call.disconnect, record: call.log.beginFetch() },
      deadlineAtMs,
      timeouts,
      headers: HEADERS,
      maximumRedirects: MAXIMUM_REDIRECTS,
      callersField: 'url',
      assertWanted: (step) => {
        assertNotOwnAddress(step, server.publicUrl)
      },
    })
  }

  private async receive({ url, status, headers, body }: SafeFetchResponse): Promise<FetchedDocument> {
    const { documentBytes } = this.store.current.limits
    const encodings = contentEncodings(headers['content-encoding'])
    const announcedBytes = encodings.length === 0 ? Number(headers['content-length'] ?? 0) : 0
    if (announcedBytes > documentBytes) {
      body.cancel()
      throw documentTooLarge(documentBytes)
    }
    const spool = await spoolDecoded(body, encodings, documentBytes)
    return {
      file: { spool, contentType: textOf(headers['content-type']), name: safeFileName(nameIn(url)), baseUrl: url },
      url,
      status,
      cacheControl: textOf(headers['cache-control']),
    }
  }
}

/** A header that was sent several times means the list of what was sent (RFC 9110, section 5.3). */
const textOf = (header: string | string[] | undefined): string =>
  Array.isArray(header) ? header.join(', ') : (header ?? '')
