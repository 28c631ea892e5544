import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { spooled, StandInParser, StandInReader } from '../../test/support/document-stand-ins.js'
import { eventually } from '../../test/support/eventually.js'
import { newCall } from '../../test/support/raw-upstream.js'
import { callerWithOwnBearer } from '../common/auth/caller.js'
import { GatewayError } from '../common/errors/gateway-error.js'
import type { ResolveHost } from '../common/http/address-guard.js'
import type { Call } from '../common/http/call.js'
import { GuardedClient } from '../common/http/guarded-client.js'
import { parseConfig } from '../config/config-loader.js'
import { ConfigStore } from '../config/config-store.js'
import type { DocumentRoute, ProviderRouter } from '../providers/provider-router.js'
import { DocumentCache } from './document-cache.js'
import { DocumentClient } from './document.client.js'
import { type DocumentRequest, DocumentUpload } from './document-request.js'
import { DocumentService } from './document.service.js'
import { FetchesInFlight } from './fetches-in-flight.js'
import { LocalReader } from './local-reader.js'
import { SharedReadings } from './shared-readings.js'

const PUBLIC_URL = 'http://93.184.216.34/a'
const FETCHES_IN_FLIGHT = 2

let parser: StandInParser
let reader: StandInReader
let route: DocumentRoute | undefined
let service: DocumentService
let resolve: ResolveHost

beforeEach(() => {
  const store = new ConfigStore(
    parseConfig(
      JSON.stringify({
        server: { publicUrl: 'https://gw.example.org' },
        documents: { fetchesInFlight: FETCHES_IN_FLIGHT },
      }),
      {},
    ),
  )
  const guarded = new GuardedClient(store, (host) => resolve(host))
  const router: Pick<ProviderRouter, 'document'> = { document: () => route }
  resolve = () => Promise.resolve([{ address: '93.184.216.34', family: 4 }])
  parser = new StandInParser()
  reader = new StandInReader()
  route = reader
  const fetches = new FetchesInFlight(store)
  const local = new LocalReader(new DocumentClient(guarded, store, fetches), parser)
  const cache = new DocumentCache(store)
  service = new DocumentService(router as ProviderRouter, local, cache, new SharedReadings(), fetches, guarded, store)
})

/** Files that are read, all with the content that was sent. */
let uploads: DocumentUpload[] = []
afterEach(async () => {
  // Everybody gave back what they held.
  for (const { spool } of uploads) await expect(spool.read(0, 1)).rejects.toThrow()
  uploads = []
})

async function fileRequest(text: string): Promise<{ request: DocumentRequest; leave: () => Promise<void> }> {
  const upload = new DocumentUpload(await spooled(text), 'a.txt', 'text/plain')
  uploads.push(upload)
  const leave = upload.hold()
  return { request: { source: { kind: 'file', upload }, timeoutMs: 20_000, isFresh: false }, leave }
}

const urlRequest = (url = PUBLIC_URL, changes: Partial<DocumentRequest> = {}): DocumentRequest => ({
  source: { kind: 'url', url },
  timeoutMs: 20_000,
  isFresh: false,
  ...changes,
})

async function bodyOf(request: DocumentRequest, call: Call = newCall()) {
  const { body } = await service.parse(request, call)
  return JSON.parse((body as Buffer).toString()) as {
    data: { metadata: { cached: number; title: string; statusCode: number; contentType: string }; markdown: string }
  }
}

describe('A document for which an upstream reader is configured', () => {
  it('is read by that alone, in the words of the contract', async () => {
    const call = newCall()
    const { data } = await bodyOf(urlRequest(PUBLIC_URL, { timeoutMs: 7000, isFresh: true }), call)
    expect(data).toMatchObject({ metadata: { title: 'There', statusCode: 200, cached: 0 }, markdown: 'read there' })
    const [asked] = reader.asked
    // Four times the largest document would be more than may be read as JSON here.
    expect(asked).toMatchObject({ source: { kind: 'url', url: PUBLIC_URL }, isFresh: true, answerBytes: 33_554_432 })
    // What is left of it.
    expect(asked?.timeoutMs).toBeLessThan(7000)
    expect(asked?.timeoutMs).toBeGreaterThan(2000)
    expect(reader.policies).toEqual([{ repeatableOnceSent: true }])
    expect(call.log).toMatchObject({
      channelId: 'reader-main',
      tried: [{ channelId: 'reader-main' }],
      usage: { units: { documents: 1, pages: 1 } },
    })
    expect(parser.parsed).toEqual([])
  })

  it('is refused while as many are being fetched as may be, and read once one of them is there', async () => {
    const gates: (() => void)[] = []
    reader.gate = () => new Promise((open) => gates.push(open))
    const urls = Array.from({ length: FETCHES_IN_FLIGHT }, (_, at) => `${PUBLIC_URL}?${at}`)
    const reading = urls.map((url) => bodyOf(urlRequest(url)))
    await eventually(() => gates.length === FETCHES_IN_FLIGHT)
    const { request, leave } = await fileRequest('words')
    await expect(service.parse(request, newCall())).rejects.toMatchObject({
      kind: 'overloaded',
      details: { retryAfterSeconds: expect.any(Number) },
    })
    await leave()
    for (const open of gates.splice(0)) open()
    await Promise.all(reading)
    reader.gate = undefined
    expect((await bodyOf(urlRequest())).data.markdown).toBe('read there')
  })

  it('is judged by its address first, as if the gateway went there itself', async () => {
    for (const url of ['http://127.0.0.1/', 'http://[::1]/', 'http://93.184.216.34:25/', 'https://gw.example.org/x']) {
      await expect(service.parse(urlRequest(url), newCall())).rejects.toMatchObject({
        kind: 'invalid_request',
        details: { param: 'url' },
      })
    }
    resolve = () => Promise.resolve([{ address: '10.0.0.1', family: 4 }])
    await expect(service.parse(urlRequest('http://inside.test/'), newCall())).rejects.toMatchObject({
      details: { code: 'url_not_allowed' },
    })
    expect(reader.asked).toEqual([])
  })

  it('is asked for by no name that could not be judged: nobody would judge it after that', async () => {
    resolve = () => Promise.reject(Object.assign(new Error('the name server is away'), { code: 'EAI_AGAIN' }))
    await expect(service.parse(urlRequest('http://inside.test/'), newCall())).rejects.toMatchObject({
      kind: 'upstream_failed',
      message: "The host of 'url' could not be looked up.",
    })
    expect(reader.asked).toEqual([])
  })

  it('is asked about by name only while it may be fetched, and not at all when it was read before', async () => {
    const lookups: string[] = []
    const gates: (() => void)[] = []
    resolve = async (host) => {
      lookups.push(host)
      await new Promise<void>((open) => gates.push(open))
      return [{ address: '93.184.216.34', family: 4 }]
    }
    const urls = Array.from({ length: FETCHES_IN_FLIGHT }, (_, at) => `http://slow${at}.test/`)
    const reading = urls.map((url) => bodyOf(urlRequest(url)))
    await eventually(() => gates.length === FETCHES_IN_FLIGHT)
    await expect(service.parse(urlRequest('http://more.test/'), newCall())).rejects.toMatchObject({
      kind: 'overloaded',
    })
    for (const open of gates.splice(0)) open()
    await Promise.all(reading)
    for (const url of urls) expect((await bodyOf(urlRequest(url))).data.metadata.cached).toBe(1)
    expect(lookups).toEqual(['slow0.test', 'slow1.test'])
  })

  it('is given again when it was a good one, and is cached when the reader says so', async () => {
    await bodyOf(urlRequest())
    expect((await bodyOf(urlRequest())).data.metadata.cached).toBe(1)
    expect(reader.asked).toHaveLength(1)
    reader.answer = { isCached: true }
    expect((await bodyOf(urlRequest('http://93.184.216.34/b'))).data.metadata.cached).toBe(1)
    reader.answer = { metadata: { ...EMPTY, statusCode: 404 } }
    for (let asked = 3; asked <= 4; asked++) {
      expect((await bodyOf(urlRequest('http://93.184.216.34/c'))).data.metadata).toMatchObject({ cached: 0 })
      expect(reader.asked).toHaveLength(asked)
    }
  })

  it('is given again to nobody else, when it was read with a key of the caller’s own', async () => {
    const calls = ['a', 'b', 'a'].map((bearer) => Object.assign(newCall(), { caller: callerWithOwnBearer(bearer) }))
    const seen: number[] = []
    for (const call of calls) seen.push((await bodyOf(urlRequest(), call)).data.metadata.cached)
    expect(seen).toEqual([0, 0, 1])
  })

  it('may be a file, which is not sent twice when it is large', async () => {
    for (const [text, repeatableOnceSent] of [
      ['small', true],
      ['x'.repeat(10 * 1024 * 1024 + 1), false],
    ] as const) {
      const { request, leave } = await fileRequest(text)
      await bodyOf(request)
      await leave()
      expect(reader.policies.at(-1)).toEqual({ repeatableOnceSent })
      expect(reader.asked.at(-1)?.source).toMatchObject({ kind: 'file', name: 'a.txt', contentType: 'text/plain' })
    }
  })
})

describe('A file that the gateway reads itself', () => {
  beforeEach(() => {
    route = undefined
  })

  it('goes to the parser as it was claimed, and comes back with what that found', async () => {
    const { request, leave } = await fileRequest('some "text"')
    const call = newCall()
    const { data } = await bodyOf(request, call)
    await leave()
    expect(data).toEqual({
      metadata: {
        ...EMPTY,
        title: 'Title',
        statusCode: 200,
        contentType: 'text/plain',
        cached: 0,
      },
      html: '',
      markdown: 'some "text"',
    })
    expect(parser.parsed).toMatchObject([{ name: 'a.txt', contentType: 'text/plain', baseUrl: '' }])
    expect(call.log.usage).toEqual({ units: { documents: 1, pages: 3 }, estimated: false })
  })

  it('stays as long as somebody waits for it, although whoever sent it first has left', async () => {
    let open: () => void = () => undefined
    parser.gate = new Promise((opened) => {
      open = opened
    })
    const [first, second] = [await fileRequest('same'), await fileRequest('same')]
    const [leaving, staying] = [newCall(), newCall()]
    const left = service.parse(first.request, leaving)
    await eventually(() => parser.parsed.length === 1)
    const stayed = bodyOf(second.request, staying)
    // The second one joins as soon as its bytes are known.
    await eventually(() => staying.departure['listeners'].length === 1)
    leaving.departure.announce()
    await first.leave()
    await expect(left).rejects.toMatchObject({ kind: 'caller_left' })
    expect(parser.parsed[0]?.departure.left).toBe(false)
    open()
    expect((await stayed).data.markdown).toBe('same')
    await second.leave()
    expect(parser.parsed).toHaveLength(1)
  })

  it('ends with the last one who waits for it', async () => {
    parser.gate = new Promise(() => undefined)
    const { request, leave } = await fileRequest('alone')
    const late = service.parse({ ...request, timeoutMs: 50 }, newCall())
    await expect(late).rejects.toMatchObject({ kind: 'upstream_timeout', message: expect.stringContaining('50 ms') })
    expect(parser.parsed[0]?.departure.left).toBe(true)
    await leave()
    // The parser never ends here, and so never lets go.
    await uploads.pop()?.spool.remove()
  })

  it('fails as the parser says, and is read anew afterwards', async () => {
    parser.failure = new GatewayError('unprocessable', 'The document is protected by a password.')
    const { request, leave } = await fileRequest('locked')
    await expect(service.parse(request, newCall())).rejects.toBe(parser.failure)
    parser.failure = undefined
    expect((await bodyOf(request)).data.metadata.cached).toBe(0)
    await leave()
  })

  it('is not begun for somebody who has left already', async () => {
    const { request, leave } = await fileRequest('gone')
    const call = newCall()
    call.departure.announce()
    await expect(service.parse(request, call)).rejects.toMatchObject({ kind: 'caller_left' })
    await leave()
    expect(parser.parsed).toEqual([])
  })
})

const EMPTY = {
  ...{ url: '', title: '', description: '', keywords: '', siteName: '', favicon: '' },
  ...{ statusCode: 200, contentType: '' },
}
