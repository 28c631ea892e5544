import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { parseConfig } from '../../test/support/config.js'
import {
  contentOf,
  DocumentServiceLab,
  EMPTY_METADATA,
  FETCHES_IN_FLIGHT,
  PUBLIC_URL,
  urlRequest,
} from '../../test/support/document-stand-ins.js'
import { eventually } from '../../test/support/eventually.js'
import { attemptRecord, newCall } from '../../test/support/raw-upstream.js'
import { ConfigStore } from '../config/config-store.js'
import { type ByteSource, collect } from '../core/byte-stream.js'
import { callerWithOwnBearer } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import { BudgetLease, MemoryBudget } from '../overload/memory-budget.js'
import type { RequestContext } from '../core/request-context.js'
import type { ReadDocument } from '../providers/contract.js'
import { DocumentCache, type DocumentParse, SharedParses } from './document-cache.js'
import { documentResponse } from './document.service.js'

const metadata = {
  ...{ url: '', title: 'Kettles “é”', description: '', keywords: '', siteName: '', favicon: '' },
  ...{
    statusCode: 200,
    contentType: 'text/plain',
    language: 'en',
    warnings: [{ code: 'content_cut', message: 'Cut.' }],
  },
}

const documentWith = (markdown: string): ReadDocument => ({
  metadata,
  content: Buffer.from(`"html":"","markdown":${JSON.stringify(markdown)}`),
  pages: 1,
  isCached: false,
})

async function bytesOf(body: Buffer | ByteSource): Promise<Buffer> {
  return Buffer.isBuffer(body) ? body : await collect(body, Infinity, () => new GatewayError('internal', 'never'))
}

describe('The answer with a document', () => {
  it.each([
    ['short', 'a'],
    ['long', 'é"\n'.repeat(100_000)],
  ])('that is %s is the whole of it, as long as it says', async (_name, markdown) => {
    const { body, headers } = documentResponse(documentWith(markdown), true)
    const bytes = await bytesOf(body)
    expect(JSON.parse(bytes.toString())).toEqual({
      code: 0,
      message: 'success',
      data: { metadata: { ...metadata, cached: 1 }, html: '', markdown },
    })
    expect(Number(headers['content-length'] ?? bytes.length)).toBe(bytes.length)
  })

  it('that is long holds no copy of the document, however many read it, and waits for a reader who pauses', async () => {
    const document = documentWith('x'.repeat(1_000_000))
    const body = documentResponse(document, true).body as ByteSource
    const pieces: Buffer[] = []
    await new Promise<void>((resolve, reject) => {
      body.start({
        data: (chunk) => {
          pieces.push(chunk)
          body.pause()
          // Two turns later nothing else has come.
          setImmediate(() => setImmediate(check, pieces.length))
        },
        end: resolve,
        fail: reject,
      })
      const check = (count: number): void => {
        expect(pieces).toHaveLength(count)
        body.resume()
      }
    })
    expect(pieces[1]).toBe(document.content)
  })

  it('that no request waits for any more ends without another chunk', async () => {
    const body = documentResponse(documentWith('x'.repeat(1_000_000)), false).body as ByteSource
    const seen: string[] = []
    body.start({ data: () => seen.push('data'), end: () => seen.push('end'), fail: () => seen.push('fail') })
    body.cancel()
    body.resume()
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    expect(seen).toEqual(['data'])
  })
})

describe('The document service', () => {
  let lab: DocumentServiceLab

  beforeEach(() => {
    lab = new DocumentServiceLab()
  })
  afterEach(() => lab.expectAllGivenBack())

  describe('A file that the gateway reads itself', () => {
    beforeEach(() => {
      lab.route = undefined
    })

    it('goes to the parser as it was claimed, and comes back with what that found', async () => {
      const { request, leave } = await lab.fileRequest('some "text"')
      const call = newCall()
      const { data } = await lab.bodyOf(request, call)
      await leave()
      expect(data).toEqual({
        metadata: {
          ...EMPTY_METADATA,
          title: 'Title',
          statusCode: 200,
          contentType: 'text/plain',
          cached: 0,
        },
        html: '',
        markdown: 'some "text"',
      })
      expect(lab.parser.parsed).toMatchObject([{ name: 'a.txt', contentType: 'text/plain', baseUrl: '' }])
      expect(call.log.usage).toEqual({ units: { documents: 1, pages: 3 }, estimated: false })
    })

    it('stays as long as a request waits for it, although the first one was aborted', async () => {
      let open: () => void = () => undefined
      lab.parser.heldUntil = new Promise((opened) => {
        open = opened
      })
      const [first, second] = [await lab.fileRequest('same'), await lab.fileRequest('same')]
      const [leaving, staying] = [newCall(), newCall()]
      const left = lab.service.parse(first.request, leaving)
      await eventually(() => lab.parser.parsed.length === 1)
      const stayed = lab.bodyOf(second.request, staying)
      // The second one joins as soon as its bytes are known.
      await eventually(() => staying.disconnect['listeners'].length === 1)
      leaving.disconnect.abort()
      await first.leave()
      await expect(left).rejects.toMatchObject({ kind: 'caller_left' })
      expect(lab.parser.parsed[0]?.disconnect.aborted).toBe(false)
      open()
      expect((await stayed).data.markdown).toBe('same')
      await second.leave()
      expect(lab.parser.parsed).toHaveLength(1)
    })

    it('ends with the last one who waits for it', async () => {
      lab.parser.heldUntil = new Promise(() => undefined)
      const { request, leave } = await lab.fileRequest('alone')
      const late = lab.service.parse({ ...request, timeoutMs: 50 }, newCall())
      await expect(late).rejects.toMatchObject({ kind: 'upstream_timeout', message: expect.stringContaining('50 ms') })
      expect(lab.parser.parsed[0]?.disconnect.aborted).toBe(true)
      await leave()
      // The parser never ends here, and so never lets go.
      await lab.uploads.pop()?.spool.remove()
    })

    it('fails as the parser says, and is read anew afterwards', async () => {
      lab.parser.failure = new GatewayError('unprocessable', 'The document is protected by a password.')
      const { request, leave } = await lab.fileRequest('locked')
      await expect(lab.service.parse(request, newCall())).rejects.toBe(lab.parser.failure)
      lab.parser.failure = undefined
      expect((await lab.bodyOf(request)).data.metadata.cached).toBe(0)
      await leave()
    })

    it('is not begun for a client that has disconnected already', async () => {
      const { request, leave } = await lab.fileRequest('gone')
      const call = newCall()
      call.disconnect.abort()
      await expect(lab.service.parse(request, call)).rejects.toMatchObject({ kind: 'caller_left' })
      await leave()
      expect(lab.parser.parsed).toEqual([])
    })
  })

  describe('A document for which an upstream reader is configured', () => {
    it('is read by that alone, in the words of the contract', async () => {
      const call = newCall()
      const { data } = await lab.bodyOf(urlRequest(PUBLIC_URL, { timeoutMs: 7000, isFresh: true }), call)
      expect(data).toMatchObject({ metadata: { title: 'There', statusCode: 200, cached: 0 }, markdown: 'read there' })
      const [asked] = lab.reader.asked
      // Four times the largest document would be more than may be read as JSON here.
      expect(asked).toMatchObject({
        source: { kind: 'url', url: PUBLIC_URL },
        isFresh: true,
        responseBytes: 33_554_432,
      })
      // What is left of it.
      expect(asked?.timeoutMs).toBeLessThan(7000)
      expect(asked?.timeoutMs).toBeGreaterThan(2000)
      expect(lab.reader.policies).toEqual([{ canRetryAfterSend: true }])
      expect(call.log).toMatchObject({
        channelId: 'reader-main',
        attempts: [{ channelId: 'reader-main' }],
        usage: { units: { documents: 1, pages: 1 } },
      })
      expect(lab.parser.parsed).toEqual([])
    })

    it('is refused while as many are being fetched as may be, and read once one of them is there', async () => {
      const gates: (() => void)[] = []
      lab.reader.heldUntil = () => new Promise((open) => gates.push(open))
      const urls = Array.from({ length: FETCHES_IN_FLIGHT }, (_, at) => `${PUBLIC_URL}?${at}`)
      const reading = urls.map((url) => lab.bodyOf(urlRequest(url)))
      await eventually(() => gates.length === FETCHES_IN_FLIGHT)
      const { request, leave } = await lab.fileRequest('words')
      await expect(lab.service.parse(request, newCall())).rejects.toMatchObject({
        kind: 'overloaded',
        details: { retryAfterSeconds: expect.any(Number) },
      })
      await leave()
      for (const open of gates.splice(0)) open()
      await Promise.all(reading)
      lab.reader.heldUntil = undefined
      expect((await lab.bodyOf(urlRequest())).data.markdown).toBe('read there')
    })

    it('is judged by its address first, as if the gateway went there itself', async () => {
      for (const url of [
        'http://127.0.0.1/',
        'http://[::1]/',
        'http://93.184.216.34:25/',
        'https://gw.example.org/x',
      ]) {
        await expect(lab.service.parse(urlRequest(url), newCall())).rejects.toMatchObject({
          kind: 'invalid_request',
          details: { param: 'url' },
        })
      }
      lab.resolve = () => Promise.resolve([{ address: '10.0.0.1', family: 4 }])
      await expect(lab.service.parse(urlRequest('http://inside.test/'), newCall())).rejects.toMatchObject({
        details: { code: 'url_not_allowed' },
      })
      expect(lab.reader.asked).toEqual([])
    })

    it('is not sent to a reader when its name could not be checked', async () => {
      lab.resolve = () => Promise.reject(Object.assign(new Error('the name server is away'), { code: 'EAI_AGAIN' }))
      await expect(lab.service.parse(urlRequest('http://inside.test/'), newCall())).rejects.toMatchObject({
        kind: 'upstream_failed',
        message: "The host of 'url' could not be looked up.",
      })
      expect(lab.reader.asked).toEqual([])
    })

    it('is asked about by name only while it may be fetched, and not at all when it was read before', async () => {
      const lookups: string[] = []
      const gates: (() => void)[] = []
      lab.resolve = async (host) => {
        lookups.push(host)
        await new Promise<void>((open) => gates.push(open))
        return [{ address: '93.184.216.34', family: 4 }]
      }
      const urls = Array.from({ length: FETCHES_IN_FLIGHT }, (_, at) => `http://slow${at}.test/`)
      const reading = urls.map((url) => lab.bodyOf(urlRequest(url)))
      await eventually(() => gates.length === FETCHES_IN_FLIGHT)
      await expect(lab.service.parse(urlRequest('http://more.test/'), newCall())).rejects.toMatchObject({
        kind: 'overloaded',
      })
      for (const open of gates.splice(0)) open()
      await Promise.all(reading)
      for (const url of urls) expect((await lab.bodyOf(urlRequest(url))).data.metadata.cached).toBe(1)
      expect(lookups).toEqual(['slow0.test', 'slow1.test'])
    })

    it('is given again when it was a good one, and is cached when the reader says so', async () => {
      await lab.bodyOf(urlRequest())
      expect((await lab.bodyOf(urlRequest())).data.metadata.cached).toBe(1)
      expect(lab.reader.asked).toHaveLength(1)
      lab.reader.answer = { isCached: true }
      expect((await lab.bodyOf(urlRequest('http://93.184.216.34/b'))).data.metadata.cached).toBe(1)
      lab.reader.answer = { metadata: { ...EMPTY_METADATA, statusCode: 404 } }
      for (let asked = 3; asked <= 4; asked++) {
        expect((await lab.bodyOf(urlRequest('http://93.184.216.34/c'))).data.metadata).toMatchObject({ cached: 0 })
        expect(lab.reader.asked).toHaveLength(asked)
      }
    })

    it('is given again to no other caller when it was read with a key of the caller’s own', async () => {
      const calls = ['a', 'b', 'a'].map((bearer) => Object.assign(newCall(), { caller: callerWithOwnBearer(bearer) }))
      const seen: number[] = []
      for (const call of calls) seen.push((await lab.bodyOf(urlRequest(), call)).data.metadata.cached)
      expect(seen).toEqual([0, 0, 1])
    })

    it('may be a file, which is not sent twice when it is large', async () => {
      for (const [text, canRetryAfterSend] of [
        ['small', true],
        ['x'.repeat(10 * 1024 * 1024 + 1), false],
      ] as const) {
        const { request, leave } = await lab.fileRequest(text)
        await lab.bodyOf(request)
        await leave()
        expect(lab.reader.policies.at(-1)).toEqual({ canRetryAfterSend })
        expect(lab.reader.asked.at(-1)?.source).toMatchObject({
          kind: 'file',
          name: 'a.txt',
          contentType: 'text/plain',
        })
      }
    })
  })
})

describe('A result', () => {
  const CACHE_MS = 60_000
  const CACHE_BYTES = 100_000

  let store: ConfigStore
  let documents: object
  let cache: DocumentCache

  const configNow = () => parseConfig(JSON.stringify({ documents }), {})

  beforeEach(() => {
    documents = { cacheMs: CACHE_MS, cacheBytes: CACHE_BYTES }
    store = new ConfigStore(configNow(), () => Promise.resolve({ config: configNow(), file: '' }))
    cache = new DocumentCache(store)
  })

  function documentOf(markdown: string): ReadDocument {
    const texts = { url: '', title: '', description: '', keywords: '', siteName: '', favicon: '', contentType: '' }
    return {
      metadata: { ...texts, statusCode: 200, language: '', warnings: [] },
      content: Buffer.from(`"html":"","markdown":${JSON.stringify(markdown)}`),
      pages: 1,
      isCached: false,
    }
  }
  const page = documentOf('page')

  it('is found by all callers, by the same caller, or by none', () => {
    cache.begin('a', ':key x')({ document: page, reuse: 'anyone' })
    cache.begin('b', ':key x')({ document: page, reuse: 'same caller' })
    cache.begin('c', ':key x')({ document: page, reuse: 'none' })
    expect(['a', 'b', 'c'].map((identity) => cache.find(identity, ':key x'))).toEqual([page, page, undefined])
    expect(['a', 'b', 'c'].map((identity) => cache.find(identity, ':key y'))).toEqual([page, undefined, undefined])
  })

  it('takes the place of what was known before, also for those for whom it is not', () => {
    cache.begin('a', ':key x')({ document: page, reuse: 'anyone' })
    cache.begin('a', ':key y')({ document: documentOf('newer'), reuse: 'none' })
    expect(cache.find('a', ':key x')).toBeUndefined()
  })

  it('is forgotten after its time, however often it was asked for', async () => {
    documents = { cacheMs: 100 }
    await store.reload()
    const keptAtMs = performance.now()
    cache.begin('a', ':key x')({ document: page, reuse: 'anyone' })
    expect(cache.find('a', ':key x')).toBe(page)
    await eventually(() => cache.find('a', ':key x') === undefined)
    expect(performance.now() - keptAtMs).toBeGreaterThan(95)
  })

  it('gives way to newer ones when there is no room, the one that was asked for last going last', () => {
    const large = documentOf('x'.repeat(30_000))
    for (const identity of ['a', 'b', 'c']) cache.begin(identity, ':key x')({ document: large, reuse: 'anyone' })
    cache.find('a', ':key x')
    cache.begin('d', ':key x')({ document: large, reuse: 'anyone' })
    expect(['a', 'b', 'c', 'd'].map((identity) => cache.find(identity, ':key x') !== undefined)).toEqual([
      true,
      false,
      true,
      true,
    ])
  })

  it('that is larger than the whole cache evicts no entry', () => {
    cache.begin('a', ':key x')({ document: page, reuse: 'anyone' })
    cache.begin('b', ':key x')({ document: documentOf('x'.repeat(CACHE_BYTES)), reuse: 'anyone' })
    expect([cache.find('a', ':key x'), cache.find('b', ':key x')]).toEqual([page, undefined])
  })

  it('of an earlier configuration is forgotten, and so is one that was being read under it', async () => {
    cache.begin('a', ':key x')({ document: page, reuse: 'anyone' })
    const keep = cache.begin('b', ':key x')
    await store.reload()
    keep({ document: page, reuse: 'anyone' })
    expect([cache.find('a', ':key x'), cache.find('b', ':key x')]).toEqual([undefined, undefined])
    cache.begin('b', ':key x')({ document: page, reuse: 'anyone' })
    expect(cache.find('b', ':key x')).toBe(page)
  })

  it('is never known while the cache is switched off', async () => {
    documents = { cacheMs: 0 }
    await store.reload()
    cache.begin('a', ':key x')({ document: page, reuse: 'anyone' })
    expect(cache.find('a', ':key x')).toBeUndefined()
  })
})

describe('A reading', () => {
  const TEXTS = { url: '', title: '', description: '', keywords: '', siteName: '', favicon: '', contentType: '' }
  const READING: DocumentParse = {
    document: {
      metadata: { ...TEXTS, statusCode: 200, language: '', warnings: [] },
      content: contentOf(''),
      pages: 1,
      isCached: false,
    },
    reuse: 'none',
  }

  let readings: SharedParses
  /** The calls for which readings were begun. */
  let begun: RequestContext[]
  let end: (reading: DocumentParse) => void

  beforeEach(() => {
    readings = new SharedParses()
    begun = []
  })

  const wait = (key: string, call = newCall(), timeoutMs = 20_000): Promise<DocumentParse> =>
    readings.wait(key, call, { timeoutMs, deadlineAtMs: performance.now() + timeoutMs }, (shared) => {
      begun.push(shared)
      return new Promise((resolve) => {
        end = resolve
      })
    })

  it('is shared by requests for the same document before it ends, and by no others', async () => {
    const [first, second] = [wait('a'), wait('a')]
    expect(begun).toHaveLength(1)
    end(READING)
    expect(await Promise.all([first, second])).toEqual([READING, READING])
    const later = newCall()
    const waiting = [wait('a', later), wait('b', later)]
    expect(begun).toHaveLength(3)
    later.disconnect.abort()
    for (const left of waiting) await expect(left).rejects.toMatchObject({ kind: 'caller_left' })
  })

  it('that has no waiting request is aborted, and no request joins it, however long its end takes', async () => {
    const leaving = newCall()
    const left = wait('a', leaving)
    leaving.disconnect.abort()
    await expect(left).rejects.toMatchObject({ kind: 'caller_left' })
    expect(begun[0]?.disconnect.aborted).toBe(true)
    const staying = wait('a')
    expect(begun).toHaveLength(2)
    end(READING)
    expect(await staying).toBe(READING)
  })

  it('counts its memory towards the first request, until it ends', async () => {
    const memory = new MemoryBudget(() => ({ bytesInFlight: 1000, callerShare: 1 }))
    const asking = Object.assign(newCall(), { caller: { keyId: 'k' } })
    asking.memory = new BudgetLease(memory, asking)
    const waiting = wait('a', asking)
    const [shared] = begun
    shared?.memory?.add(600)
    expect(memory.bytes).toBe(600)
    end(READING)
    await waiting
    expect(memory.bytes).toBe(0)
    shared?.memory?.add(600)
    expect(memory.bytes).toBe(0)
  })

  it('tells each of those who wait what it took, and who asked it knows nothing of the others', async () => {
    const calls = [newCall(), newCall()]
    const waiting = calls.map((call) => wait('a', call))
    const [shared] = begun
    if (shared === undefined) throw new Error('nothing was begun')
    shared.log.attempts.push(attemptRecord('reader-main', 1, { endedAtMs: 2, upstreamMs: 5, upstreamStatus: 203 }))
    shared.log.channelId = 'reader-main'
    end(READING)
    await Promise.all(waiting)
    for (const { log } of calls) {
      expect(log).toMatchObject({
        attempts: [{ startedAtMs: 1 }],
        upstreamMs: 5,
        channelId: 'reader-main',
        upstreamStatus: 203,
      })
    }
    expect(calls).not.toContain(shared)
  })
})
