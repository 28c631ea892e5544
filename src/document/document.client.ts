import { createRequire } from 'node:module'
import { Injectable } from '@nestjs/common'
import { GatewayError } from '../common/errors/gateway-error.js'
import type { Call } from '../common/http/call.js'
import { GuardedClient, type GuardedResponse } from '../common/http/guarded-client.js'
import { safeFileName } from '../common/http/upload-names.js'
import { ConfigStore } from '../config/config-store.js'
import type { DocumentFile } from './document-parser.js'
import { assertNotOwnAddress, nameIn } from './document-address.js'
import { fetchFailure } from './fetch-failures.js'
import { documentTooLarge, spoolDecoded } from './fetched-body.js'

const { version } = createRequire(import.meta.url)('../../package.json') as { readonly version: string }

const HEADERS: readonly string[] = [
  ...['user-agent', `MultiModelGateway/${version}`],
  ...['accept', 'text/html,application/xhtml+xml,application/pdf;q=0.9,text/markdown;q=0.9,*/*;q=0.5'],
  ...['accept-encoding', 'gzip, br'],
]

const MAXIMUM_REDIRECTS = 5

/** A fetch takes a second or two. */
const RETRY_AFTER_SECONDS = 2

/** A document as its server sent it, with whatever status. */
export interface FetchedDocument {
  /** Finished; whoever asked for it removes it. */
  readonly file: DocumentFile
  /** After all redirects. */
  readonly url: string
  readonly status: number
  /** The header as it was sent; '' when there was none. */
  readonly cacheControl: string
}

/** Fetches documents by URLs that callers name, through the guarded door. */
@Injectable()
export class DocumentClient {
  private inFlight = 0

  constructor(
    private readonly guarded: GuardedClient,
    private readonly store: ConfigStore,
  ) {}

  /**
   * Rejects with a `GatewayError`: `invalid_request` naming `url` for an address that may not be fetched, at first or after
   * a redirect; `payload_too_large`; `upstream_failed`; `upstream_timeout`; `overloaded` beyond
   * `documents.fetchesInFlight`; `caller_left`. `deadlineAtMs` (performance clock) bounds everything together.
   */
  async fetch(url: string, call: Call, deadlineAtMs: number): Promise<FetchedDocument> {
    // Looking a name up occupies a thread, of which the process has few: this bound is theirs as well.
    if (this.inFlight >= this.store.current.documents.fetchesInFlight) throw tooManyFetches()
    this.inFlight++
    try {
      return await this.receive(await this.ask(url, call, deadlineAtMs))
    } catch (error) {
      throw fetchFailure(error)
    } finally {
      this.inFlight--
    }
  }

  private async ask(url: string, call: Call, deadlineAtMs: number): Promise<GuardedResponse> {
    const { timeouts, server } = this.store.current
    const response = await this.guarded.get(url, {
      call,
      deadlineAtMs,
      timeouts,
      headers: HEADERS,
      maximumRedirects: MAXIMUM_REDIRECTS,
      callersField: 'url',
    })
    try {
      assertNotOwnAddress(response.url, server.publicUrl)
      return response
    } catch (error) {
      response.body.cancel()
      throw error
    }
  }

  private async receive({ url, status, headers, body }: GuardedResponse): Promise<FetchedDocument> {
    const { documentBytes } = this.store.current.limits
    const encoding = textOf(headers['content-encoding']).trim().toLowerCase().replace('identity', '')
    const announcedBytes = encoding === '' ? Number(headers['content-length'] ?? 0) : 0
    if (announcedBytes > documentBytes) {
      body.cancel()
      throw documentTooLarge(documentBytes)
    }
    const spool = await spoolDecoded(body, encoding, documentBytes)
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

const tooManyFetches = (): GatewayError =>
  new GatewayError('overloaded', 'Too many documents are being fetched at the moment.', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })
