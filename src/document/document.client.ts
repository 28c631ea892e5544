import { createRequire } from 'node:module'
import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import type { Call } from '../core/request-context.js'
import { safeFileName } from '../server/upload-names.js'
import { GuardedClient, type GuardedResponse } from '../upstream/safe-fetch.js'
import { contentEncodings, documentTooLarge, spoolDecoded } from './document-fetch.js'
import { assertNotOwnAddress, nameIn } from './document.dto.js'
import { fetchFailure } from './fetch-failures.js'
import { FetchesInFlight } from './fetches-in-flight.js'
import type { DocumentFile } from './parser.js'

const { version } = createRequire(import.meta.url)('../../package.json') as { readonly version: string }

const HEADERS: readonly string[] = [
  ...['user-agent', `MultiModelGateway/${version}`],
  ...['accept', 'text/html,application/xhtml+xml,application/pdf;q=0.9,text/markdown;q=0.9,*/*;q=0.5'],
  ...['accept-encoding', 'gzip, br'],
]

const MAXIMUM_REDIRECTS = 5

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
  constructor(
    private readonly guarded: GuardedClient,
    private readonly store: ConfigStore,
    private readonly fetches: FetchesInFlight,
  ) {}

  /**
   * Rejects with a `GatewayError`: `invalid_request` naming `url` for an address that may not be fetched, at first or after
   * a redirect; `payload_too_large`; `upstream_failed`; `upstream_timeout`; `overloaded` beyond
   * `documents.fetchesInFlight`; `caller_left`. `deadlineAtMs` (performance clock) bounds everything together.
   */
  async fetch(url: string, call: Call, deadlineAtMs: number): Promise<FetchedDocument> {
    return await this.fetches.within(async () => {
      try {
        return await this.receive(await this.ask(url, call, deadlineAtMs))
      } catch (error) {
        throw fetchFailure(error)
      }
    })
  }

  private ask(url: string, call: Call, deadlineAtMs: number): Promise<GuardedResponse> {
    const { timeouts, server } = this.store.current
    return this.guarded.get(url, {
      call,
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

  private async receive({ url, status, headers, body }: GuardedResponse): Promise<FetchedDocument> {
    const { documentBytes } = this.store.current.limits
    const encodings = contentEncodings(textOf(headers['content-encoding']))
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
