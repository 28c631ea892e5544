import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import {
  DocumentServiceLab,
  EMPTY_METADATA,
  FETCHES_IN_FLIGHT,
  PUBLIC_URL,
  urlRequest,
} from '../../test/support/document-service-lab.js'
import { eventually } from '../../test/support/eventually.js'
import { newCall } from '../../test/support/raw-upstream.js'
import { callerWithOwnBearer } from '../core/caller.js'

let lab: DocumentServiceLab

beforeEach(() => {
  lab = new DocumentServiceLab()
})
afterEach(() => lab.expectAllGivenBack())

describe('A document for which an upstream reader is configured', () => {
  it('is read by that alone, in the words of the contract', async () => {
    const call = newCall()
    const { data } = await lab.bodyOf(urlRequest(PUBLIC_URL, { timeoutMs: 7000, isFresh: true }), call)
    expect(data).toMatchObject({ metadata: { title: 'There', statusCode: 200, cached: 0 }, markdown: 'read there' })
    const [asked] = lab.reader.asked
    // Four times the largest document would be more than may be read as JSON here.
    expect(asked).toMatchObject({ source: { kind: 'url', url: PUBLIC_URL }, isFresh: true, answerBytes: 33_554_432 })
    // What is left of it.
    expect(asked?.timeoutMs).toBeLessThan(7000)
    expect(asked?.timeoutMs).toBeGreaterThan(2000)
    expect(lab.reader.policies).toEqual([{ repeatableOnceSent: true }])
    expect(call.log).toMatchObject({
      channelId: 'reader-main',
      tried: [{ channelId: 'reader-main' }],
      usage: { units: { documents: 1, pages: 1 } },
    })
    expect(lab.parser.parsed).toEqual([])
  })

  it('is refused while as many are being fetched as may be, and read once one of them is there', async () => {
    const gates: (() => void)[] = []
    lab.reader.gate = () => new Promise((open) => gates.push(open))
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
    lab.reader.gate = undefined
    expect((await lab.bodyOf(urlRequest())).data.markdown).toBe('read there')
  })

  it('is judged by its address first, as if the gateway went there itself', async () => {
    for (const url of ['http://127.0.0.1/', 'http://[::1]/', 'http://93.184.216.34:25/', 'https://gw.example.org/x']) {
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

  it('is asked for by no name that could not be judged: nobody would judge it after that', async () => {
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

  it('is given again to nobody else, when it was read with a key of the caller’s own', async () => {
    const calls = ['a', 'b', 'a'].map((bearer) => Object.assign(newCall(), { caller: callerWithOwnBearer(bearer) }))
    const seen: number[] = []
    for (const call of calls) seen.push((await lab.bodyOf(urlRequest(), call)).data.metadata.cached)
    expect(seen).toEqual([0, 0, 1])
  })

  it('may be a file, which is not sent twice when it is large', async () => {
    for (const [text, repeatableOnceSent] of [
      ['small', true],
      ['x'.repeat(10 * 1024 * 1024 + 1), false],
    ] as const) {
      const { request, leave } = await lab.fileRequest(text)
      await lab.bodyOf(request)
      await leave()
      expect(lab.reader.policies.at(-1)).toEqual({ repeatableOnceSent })
      expect(lab.reader.asked.at(-1)?.source).toMatchObject({ kind: 'file', name: 'a.txt', contentType: 'text/plain' })
    }
  })
})
