import { expect } from '@jest/globals'
import { ConfigStore } from '../../src/config/config-store.js'
import { parseConfig } from '../../src/config/load-config.js'
import type { Call } from '../../src/core/request-context.js'
import { DocumentCache } from '../../src/document/document-cache.js'
import { type DocumentRequest, DocumentUpload } from '../../src/document/document-request.js'
import { DocumentClient } from '../../src/document/document.client.js'
import { DocumentService } from '../../src/document/document.service.js'
import { FetchesInFlight } from '../../src/document/fetches-in-flight.js'
import { LocalReader } from '../../src/document/local-parser.js'
import { SharedReadings } from '../../src/document/shared-readings.js'
import type { DocumentRoute, ProviderRouter } from '../../src/routing/router.js'
import { GuardedClient } from '../../src/upstream/safe-fetch.js'
import type { ResolveHost } from '../../src/upstream/ssrf-guard.js'
import { spooled, StandInParser, StandInReader } from './document-stand-ins.js'
import { newCall } from './raw-upstream.js'

export const PUBLIC_URL = 'http://93.184.216.34/a'
export const FETCHES_IN_FLIGHT = 2

export const EMPTY_METADATA = {
  ...{ url: '', title: '', description: '', keywords: '', siteName: '', favicon: '' },
  ...{ statusCode: 200, contentType: '' },
}

interface ShownDocument {
  readonly data: {
    readonly metadata: {
      readonly cached: number
      readonly title: string
      readonly statusCode: number
      readonly contentType: string
    }
    readonly markdown: string
  }
}

export const urlRequest = (url = PUBLIC_URL, changes: Partial<DocumentRequest> = {}): DocumentRequest => ({
  source: { kind: 'url', url },
  timeoutMs: 20_000,
  isFresh: false,
  ...changes,
})

/** The service of documents with a parser and, unless a test takes it away, a channel to a reader. */
export class DocumentServiceLab {
  readonly parser = new StandInParser()
  readonly reader = new StandInReader()
  /** Where documents are read; undefined = the gateway reads them itself. */
  route: DocumentRoute | undefined = this.reader
  resolve: ResolveHost = () => Promise.resolve([{ address: '93.184.216.34', family: 4 }])
  readonly service: DocumentService
  /** Files that are read, all with the content that was sent. */
  readonly uploads: DocumentUpload[] = []

  constructor() {
    const sections = {
      server: { publicUrl: 'https://gw.example.org' },
      documents: { fetchesInFlight: FETCHES_IN_FLIGHT },
    }
    const store = new ConfigStore(parseConfig(JSON.stringify(sections), {}))
    const guarded = new GuardedClient(store, (host) => this.resolve(host))
    const router: Pick<ProviderRouter, 'document'> = { document: () => this.route }
    const fetches = new FetchesInFlight(store)
    const local = new LocalReader(new DocumentClient(guarded, store, fetches), this.parser)
    const cache = new DocumentCache(store)
    const readings = new SharedReadings()
    this.service = new DocumentService(router as ProviderRouter, local, cache, readings, fetches, guarded, store)
  }

  async fileRequest(text: string): Promise<{ request: DocumentRequest; leave: () => Promise<void> }> {
    const upload = new DocumentUpload(await spooled(text), 'a.txt', 'text/plain')
    this.uploads.push(upload)
    const leave = upload.hold()
    return { request: { source: { kind: 'file', upload }, timeoutMs: 20_000, isFresh: false }, leave }
  }

  async bodyOf(request: DocumentRequest, call: Call = newCall()): Promise<ShownDocument> {
    const { body } = await this.service.parse(request, call)
    return JSON.parse((body as Buffer).toString()) as ShownDocument
  }

  /** Everybody gave back what they held. */
  async expectAllGivenBack(): Promise<void> {
    for (const { spool } of this.uploads) await expect(spool.read(0, 1)).rejects.toThrow()
  }
}
