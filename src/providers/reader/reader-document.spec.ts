import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import {
  fileRequest,
  READER_DIALECTS,
  READER_KEY,
  type ReaderLab,
  startReaderLab,
  urlRequest,
} from '../../../test/support/provider-labs.js'
import { attemptOf, newCall } from '../../../test/support/raw-upstream.js'
import { BudgetLease, MemoryBudget } from '../../overload/memory-budget.js'
import type { RequestContext } from '../../core/request-context.js'
import type { ReadDocument } from '../contract.js'

let lab: ReaderLab
beforeAll(async () => {
  lab = await startReaderLab()
})
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(async () => {
  await lab.close()
})

const contentOf = ({ content }: ReadDocument): unknown => JSON.parse(`{${content.toString()}}`)
const failureOf = (reading: Promise<unknown>): Promise<unknown> => reading.catch((reason: unknown) => reason)

describe.each(READER_DIALECTS)('A reader that speaks as %s', (dialect) => {
  it('reads a page, and every member of the metadata is filled from where it says it', async () => {
    const url = `https://example.org/${dialect}?q=1`
    const document = await lab.provider.read(urlRequest(url), lab.context(dialect))
    expect(document.metadata).toEqual({
      url,
      title: 'Kettles',
      description: 'About kettles',
      keywords: dialect === 'firecrawl' ? 'kettle, tea' : 'kettle,tea',
      siteName: 'Example',
      favicon: 'https://example.org/icon.png',
      statusCode: 200,
      contentType: { gateway: 'text/html; charset=utf-8', firecrawl: 'text/html', jina: '' }[dialect],
      language: 'en',
      warnings: [
        dialect === 'gateway'
          ? { code: 'pages_without_text', message: 'Page 2 is a picture.', pages: [2] }
          : { code: 'reader_warning', message: 'Page 2 is a picture.' },
      ],
    })
    expect(contentOf(document)).toEqual({
      html: `<h1>Kettles</h1><p>Text of ${url}</p>`,
      markdown: `# Kettles\n\nText of ${url} \u{1f375}\n`,
    })
    expect(document.pages).toBe(dialect === 'firecrawl' ? 3 : 1)
    expect(lab.simulator.violations).toEqual([])
  })

  it('reads a file, which arrives whole and under its name', async () => {
    const bytes = Buffer.alloc(3_000_001, 'x')
    const { request, spool } = await fileRequest(bytes)
    const document = await lab.provider.read(request, lab.context(dialect))
    const part = lab.simulator.lastRequest?.parts?.find(({ name }) => name === 'file')
    expect(part).toMatchObject({
      filename: 'report.pdf',
      contentType: 'application/pdf',
      size: bytes.length,
      sha1: createHash('sha1').update(bytes).digest('hex'),
    })
    expect(document.metadata).toMatchObject({ url: '', title: 'report.pdf', statusCode: 200 })
    expect(lab.simulator.violations).toEqual([])
    await spool.remove()
  })

  it('need not know what a file is called, nor can it say where it came from', async () => {
    const texts = { markdown: 'x', content: 'x', html: '' }
    const data = { ...texts, title: '', url: 'file:///tmp/7', metadata: { title: '', url: 'file:///tmp/7' } }
    lab.simulator.queueFault({
      kind: 'status',
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code: dialect === 'jina' ? 200 : 0, success: true, data }),
    })
    const { request, spool } = await fileRequest(Buffer.from('words'))
    const document = await lab.provider.read(request, lab.context(dialect))
    expect(document.metadata).toMatchObject({ url: '', title: 'report.pdf' })
    await spool.remove()
  })

  it('says what it had read before, and reads it again for those who want it fresh', async () => {
    const url = `https://example.org/again-${dialect}`
    const read = async (isFresh: boolean): Promise<boolean> =>
      (await lab.provider.read(urlRequest(url, { isFresh }), lab.context(dialect))).isCached
    const says = dialect !== 'jina'
    expect([await read(false), await read(false), await read(true)]).toEqual([false, says, false])
  })

  it.each([
    [1, dialect === 'gateway' ? 0.001 : dialect === 'jina' ? '1' : 1000],
    [20_500, dialect === 'gateway' ? 20.5 : dialect === 'jina' ? '20' : 20_500],
    [900_000, dialect === 'gateway' ? 900 : dialect === 'jina' ? '180' : 300_000],
    [1_000_000, dialect === 'gateway' ? 1_000_000 : dialect === 'jina' ? '180' : 300_000],
  ])('is told in its own unit that there are %i ms', async (timeoutMs, told) => {
    await lab.provider.read(urlRequest('https://example.org/', { timeoutMs }), lab.context(dialect))
    const request = lab.simulator.lastRequest
    const body = JSON.parse(request?.body.toString() ?? '') as Record<string, unknown>
    expect(dialect === 'jina' ? request?.headers['x-timeout'] : body['timeout']).toBe(told)
  })

  it.each([
    ['400', { kind: 'invalid_request', message: 'The request failed' }],
    ['413', { kind: 'payload_too_large', message: 'The request failed' }],
    ['422', { kind: 'unprocessable', message: 'No content available at [address]' }],
  ] as const)('that answers %s blames the document, in its words', async (fault, expected) => {
    lab.simulator.queueFault(fault)
    const failure = await failureOf(lab.provider.read(urlRequest('https://example.org/'), lab.context(dialect)))
    expect(failure).toMatchObject({ ...expected, details: { attempt: { phase: 'answered' } } })
    expect(failure).not.toMatchObject({ details: { attempt: { channelError: true } } })
  })

  it.each([
    ['401', 'unauthorized'],
    ['403', 'forbidden_model'],
    ['quota', 'rate_limited'],
    ['429', 'rate_limited'],
  ] as const)('that answers %s blames the channel, or the caller whose own key it was', async (fault, callers) => {
    lab.simulator.queueFault(fault)
    lab.simulator.queueFault(fault)
    const request = urlRequest('https://example.org/')
    const own = await failureOf(lab.provider.read(request, lab.context(dialect)))
    const kind = fault === '429' ? 'rate_limited' : 'upstream_failed'
    expect(own).toMatchObject({ kind, details: { attempt: { channelError: true } } })
    expect((own as Error).message).not.toContain(READER_KEY)
    if (fault === '429') expect(own).toMatchObject({ details: { retryAfterSeconds: 2 } })
    const passed = await failureOf(lab.provider.read(request, lab.context(dialect, { callersKey: true })))
    expect(passed).toMatchObject({ kind: callers })
  })

  it('is heard as long as the answer may be, and no further, which is no fault of the channel', async () => {
    const answer = JSON.stringify({
      ...{ code: dialect === 'jina' ? 200 : 0, success: true },
      data: { markdown: 'x'.repeat(100_000), content: 'x'.repeat(100_000) },
    })
    const read = async (answerBytes: number, call: RequestContext): Promise<unknown> => {
      lab.simulator.queueFault({
        kind: 'status',
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: answer,
      })
      const request = urlRequest('https://example.org/', { responseBytes: answerBytes })
      return await failureOf(lab.provider.read(request, lab.context(dialect, attemptOf(call))))
    }
    const memory = new MemoryBudget(() => ({ bytesInFlight: 1_000_000, callerShare: 1 }))
    const call = newCall('/v1/document/parse')
    const lease = new BudgetLease(memory, call)
    call.memory = lease
    expect(await read(answer.length, call)).toMatchObject({ pages: 1 })
    // Until the call is over: what was made of the answer is held as well.
    expect(memory.bytes).toBe(answer.length)
    lease.close()
    expect(memory.bytes).toBe(0)
    const failure = await read(answer.length - 1, newCall('/v1/document/parse'))
    expect(failure).toMatchObject({ kind: 'payload_too_large', details: { attempt: { phase: 'answered' } } })
    expect(failure).not.toMatchObject({ details: { attempt: { channelError: true } } })
  })

  it.each(['500', 'html', 'malformed', 'empty', 'reset', 'cut', 'cleancut'] as const)(
    'that answers with %s has failed, and another may be asked',
    async (fault) => {
      lab.simulator.queueFault(fault)
      const failure = await failureOf(lab.provider.read(urlRequest('https://example.org/'), lab.context(dialect)))
      expect(failure).toMatchObject({ kind: 'upstream_failed', details: { attempt: { channelError: true } } })
    },
  )

  it('that never answers ends with the time the caller gave it', async () => {
    lab.simulator.queueFault('hang')
    const context = lab.context(dialect, { deadlineAtMs: performance.now() + 50 })
    const failure = await failureOf(lab.provider.read(urlRequest('https://example.org/'), context))
    expect(failure).toMatchObject({ kind: 'upstream_timeout' })
  })

  it('is let go when the caller leaves', async () => {
    lab.simulator.queueFault('hang')
    const call = newCall('/v1/document/parse')
    const arrived = lab.simulator.nextRequest()
    const aborted = lab.simulator.nextAbort()
    const reading = failureOf(
      lab.provider.read(urlRequest('https://example.org/'), lab.context(dialect, attemptOf(call))),
    )
    await arrived
    call.disconnect.abort()
    expect(await reading).toMatchObject({ kind: 'caller_left' })
    await aborted
  })
})

describe('What a reader says in its own way', () => {
  const answered = async (dialect: string, status: number, body: object): Promise<unknown> => {
    lab.simulator.queueFault({
      kind: 'status',
      status,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return await failureOf(lab.provider.read(urlRequest('https://example.org/'), lab.context(dialect)))
  }

  it.each([
    ['firecrawl', 500, { success: false, code: 'SCRAPE_DNS_RESOLUTION_ERROR', error: 'x' }, 'upstream_failed'],
    ['firecrawl', 408, { success: false, code: 'SCRAPE_TIMEOUT', error: 'x' }, 'upstream_timeout'],
    ['firecrawl', 422, { success: false, code: 'constructor', error: 'x' }, 'unprocessable'],
    ['firecrawl', 413, { success: false, code: '__proto__', error: 'x' }, 'payload_too_large'],
    ['gateway', 502, { code: 5000, message: 'x', request_id: 'y' }, 'upstream_failed'],
    ['gateway', 200, { code: 50_401, message: 'x' }, 'upstream_timeout'],
    ['gateway', 200, { code: 42_201, message: 'no text' }, 'unprocessable'],
    ['gateway', 403, { code: 40_301, message: 'address refused' }, 'invalid_request'],
    ['jina', 451, { code: 451, message: 'blocked domain' }, 'invalid_request'],
  ])('%s with %i %j is no fault of the channel', async (dialect, status, body, kind) => {
    const failure = await answered(dialect, status, body)
    expect(failure).toMatchObject({ kind, details: { attempt: { phase: 'answered' } } })
    expect(failure).not.toMatchObject({ details: { attempt: { channelError: true } } })
  })

  it.each([
    ['gateway', { code: 0, data: {} }],
    ['gateway', { code: 0, data: { markdown: 7 } }],
    ['firecrawl', { success: true, data: { html: 'x' } }],
    ['jina', { code: 200, data: null }],
  ])('%s with a success that holds no document, %j, has failed', async (dialect, body) => {
    expect(await answered(dialect, 200, body)).toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { channelError: true } },
    })
  })
})
