import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect } from '@jest/globals'
import { NO_METADATA } from '@multi-model-gateway/document-engine/model/document.js'
import { ConfigStore } from '../../src/config/config-store.js'
import type { RequestContext } from '../../src/core/request-context.js'
import { SpooledFile } from '../../src/core/spooled-file.js'
import { DocumentCache, SharedParses } from '../../src/document/document-cache.js'
import { DocumentClient, FetchesInFlight } from '../../src/document/document-fetch.js'
import { type DocumentRequest, DocumentUpload } from '../../src/document/document.dto.js'
import { DocumentService, LocalParser } from '../../src/document/document.service.js'
import { type DocumentFile, DocumentParser, type ParsedDocument, type ParseOptions } from '../../src/document/parser.js'
import type { AttemptContext, DocumentProvider, ReadDocument, ReadRequest } from '../../src/providers/contract.js'
import type { AttemptPolicy, DocumentRoute, ProviderRouter } from '../../src/routing/router.js'
import { SafeFetchClient } from '../../src/upstream/safe-fetch.js'
import type { ResolveHost } from '../../src/upstream/ssrf-guard.js'
import { parseConfig } from './config.js'
import { attemptOf, newCall, startRawUpstream } from './raw-upstream.js'

/** A parser whose Markdown is the text of the file, once `heldUntil` has resolved. */
class StandInParser extends DocumentParser {
  readonly parsed: (Omit<DocumentFile, 'spool'> & ParseOptions)[] = []
  heldUntil: Promise<void> | undefined
  failure: Error | undefined

  async parse({ spool, ...facts }: DocumentFile, options: ParseOptions): Promise<ParsedDocument> {
    this.parsed.push({ ...facts, ...options })
    await this.heldUntil
    if (this.failure !== undefined) throw this.failure
    const markdown = (await spool.read(0, spool.size)).toString()
    return { kind: 'text', metadata: { ...NO_METADATA, title: 'Title' }, pages: 3, content: contentOf(markdown) }
  }
}

export const contentOf = (markdown: string): Buffer => Buffer.from(`"html":"","markdown":${JSON.stringify(markdown)}`)

/** A channel with a reader that remembers what it was asked. */
class StandInReader implements DocumentProvider, DocumentRoute {
  readonly asked: ReadRequest[] = []
  readonly policies: AttemptPolicy[] = []
  /** Laid over what it answers. */
  answer: Partial<ReadDocument> = {}
  /** While it is set, answers wait for it. */
  heldUntil: (() => Promise<void>) | undefined

  attempt<Result>(
    call: RequestContext,
    policy: AttemptPolicy,
    run: (provider: DocumentProvider, context: AttemptContext) => Promise<Result>,
  ): Promise<Result> {
    this.policies.push(policy)
    call.log.channelId = 'reader-main'
    return run(this, { ...attemptOf(call, 'reader-main'), channelId: 'reader-main' } as AttemptContext)
  }

  async read(request: ReadRequest): Promise<ReadDocument> {
    this.asked.push(request)
    await this.heldUntil?.()
    const texts = { title: 'There', description: '', keywords: '', siteName: '', favicon: '', contentType: 'a/b' }
    const metadata = { ...texts, url: 'http://93.184.216.34/a', statusCode: 200, language: '', warnings: [] }
    return { metadata, content: contentOf('read there'), pages: 1, isCached: false, ...this.answer }
  }
}

/** A finished file with this text. */
async function spooled(text: string): Promise<SpooledFile> {
  const spool = new SpooledFile()
  await spool.append(Buffer.from(text))
  await spool.finish()
  return spool
}

export const PUBLIC_URL = 'http://93.184.216.34/a'
export const FETCHES_IN_FLIGHT = 2

export const EMPTY_METADATA = {
  ...{ url: '', title: '', description: '', keywords: '', siteName: '', favicon: '' },
  ...{ statusCode: 200, contentType: '', language: '', warnings: [] },
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
    const guarded = new SafeFetchClient(store, (host) => this.resolve(host))
    const router: Pick<ProviderRouter, 'document'> = { document: () => this.route }
    const fetches = new FetchesInFlight(store)
    const local = new LocalParser(new DocumentClient(guarded, store, fetches), this.parser)
    const cache = new DocumentCache(store)
    const readings = new SharedParses()
    this.service = new DocumentService(router as ProviderRouter, local, cache, readings, fetches, guarded, store)
  }

  async fileRequest(text: string): Promise<{ request: DocumentRequest; leave: () => Promise<void> }> {
    const upload = new DocumentUpload(await spooled(text), 'a.txt', 'text/plain')
    this.uploads.push(upload)
    const leave = upload.hold()
    return { request: { source: { kind: 'file', upload }, timeoutMs: 20_000, isFresh: false }, leave }
  }

  async bodyOf(request: DocumentRequest, call: RequestContext = newCall()): Promise<ShownDocument> {
    const { body } = await this.service.parse(request, call)
    return JSON.parse((body as Buffer).toString()) as ShownDocument
  }

  /** All leases were returned. */
  async expectAllGivenBack(): Promise<void> {
    for (const { spool } of this.uploads) await expect(spool.read(0, 1)).rejects.toThrow()
  }
}

export type TargetAnswer = string | Buffer | ((socket: Socket, head: string) => void)

/** A web server that answers each path with the bytes a test gives it; 404 without a body elsewhere. */
export interface DocumentTarget {
  readonly port: number
  /** By path and query. */
  readonly answers: Map<string, TargetAnswer>
  /** The heads of all requests, in order. */
  readonly heads: string[]
  readonly sockets: ReadonlySet<Socket>
  /** Connections accepted so far. */
  readonly accepted: number
  readonly url: (path: string) => string
  readonly reset: () => void
  readonly close: () => Promise<void>
}

export async function startDocumentTarget(): Promise<DocumentTarget> {
  const answers = new Map<string, TargetAnswer>()
  const heads: string[] = []
  const upstream = await startRawUpstream((socket, head) => {
    heads.push(head)
    const answer = answers.get(head.split(' ')[1] ?? '') ?? answerOf('', { status: '404 Not Found' })
    if (typeof answer === 'function') answer(socket, head)
    else socket.write(answer)
  })
  return {
    port: upstream.port,
    answers,
    heads,
    sockets: upstream.sockets,
    get accepted() {
      return upstream.accepted
    },
    url: (path) => `http://127.0.0.1:${upstream.port}${path}`,
    reset: () => {
      answers.clear()
      heads.length = 0
    },
    close: () => upstream.close(),
  }
}

export interface AnswerFacts {
  /** Code and reason. */
  readonly status?: string
  /** Laid over Content-Type `text/html; charset=utf-8` and the length; `undefined` leaves a header out. */
  readonly headers?: Readonly<Record<string, string | undefined>>
}

/** The bytes of a whole answer. */
export function answerOf(body: string | Buffer, { status = '200 OK', headers = {} }: AnswerFacts = {}): Buffer {
  const bytes = Buffer.from(body)
  const all: Record<string, string | undefined> = {
    'content-type': 'text/html; charset=utf-8',
    'content-length': String(bytes.length),
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => (value === undefined ? '' : `${name}: ${value}\r\n`))
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status}\r\n${lines.join('')}\r\n`), bytes])
}

export const redirectTo = (location: string, status = '302 Found'): Buffer =>
  answerOf('', { status, headers: { location } })

/** A page with a title and one paragraph, long enough to be its main content. */
export const pageOf = (title: string, text: string): string =>
  `<!doctype html><html><head><title>${title}</title></head><body><article><h1>${title}</h1><p>${text}</p></article></body></html>`

export const PAGE = pageOf('Kettles', 'A kettle is a vessel in which water is brought to the boil.')

/** The same, long enough that its parts are sent apart. */
export const GZIPPED_PAGE = gzipSync(Buffer.from(PAGE.padEnd(50_000, 'x')))

/** The head of an answer with a page, but for how its body ends. */
export const PAGE_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n'

/** An answer whose body is said to be encoded so. */
export const encodedAs = (encoding: string, body: Buffer): Buffer =>
  answerOf(body, { headers: { 'content-encoding': encoding } })
