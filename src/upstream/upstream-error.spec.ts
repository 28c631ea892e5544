import { describe, expect, it, jest } from '@jest/globals'
import { ManualSource } from '../../test/support/byte-streams.js'
import type { ByteSource } from '../core/byte-stream.js'
import type { ErrorKind, GatewayError } from '../core/errors.js'
import type { Usage } from '../core/request-context.js'
import { RelayedUsage } from '../core/usage.js'
import { AUDIO_STATUS_MAP, parseOpenAIError } from '../dialects/openai-wire.js'
import type { UpstreamResponse } from './exchange.js'
import { type AccountError, accountError } from './upstream-error.js'
import { HeaderAllowList, estimatedResponse } from './upstream-response.js'

const FAULTS: readonly AccountError[] = ['key', 'access', 'quota', 'busy']

describe('A fault of the account behind a key', () => {
  it.each(FAULTS)("(%s) is the channel's with its own key: no caller hears which it is", (fault) => {
    const error = accountError(fault, false)
    expect(error.details.attempt).toEqual({ phase: 'answered', channelError: true })
    expect(error.details.code).toBeUndefined()
    expect(error.message).not.toMatch(/key|account|quota|access/)
    expect([error.kind, error.details.retryable]).toEqual(
      fault === 'busy' ? ['rate_limited', undefined] : ['upstream_failed', false],
    )
  })

  it.each([
    ['key', 'unauthorized', undefined],
    ['access', 'forbidden_model', undefined],
    ['quota', 'rate_limited', 'insufficient_quota'],
    ['busy', 'rate_limited', undefined],
  ] as const)(
    '(%s) is said to a caller whose own key was sent, as %s, and not held against the channel',
    (fault, kind, code) => {
      const error = accountError(fault, true)
      expect([error.kind, error.details.code]).toEqual([kind, code])
      expect(error.details.attempt).toEqual({ phase: 'answered' })
      expect(error.message).toMatch(/this API key/i)
    },
  )

  it('names a time to wait where waiting helps, and nowhere else', () => {
    for (const callersKey of [true, false]) {
      expect(accountError('busy', callersKey).details.retryAfterSeconds).toBe(1)
      expect(accountError('busy', callersKey, { retryAfterSeconds: 60 }).details.retryAfterSeconds).toBe(60)
      expect(accountError('quota', callersKey, { retryAfterSeconds: 60 }).details.retryAfterSeconds).toBeUndefined()
    }
  })

  it('keeps its cause for the log, and how far the attempt went', () => {
    const cause = new Error('1004: login fail')
    const { details } = accountError('key', false, { cause, phase: 'unsent' })
    expect(details).toEqual({ cause, attempt: { phase: 'unsent', channelError: true }, retryable: false })
  })
})

interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  readonly callersKey?: boolean
  readonly statusMap?: Readonly<Record<number, number>>
}

async function refusal({
  status,
  headers = {},
  body = '',
  callersKey = false,
  statusMap,
}: Answer): Promise<GatewayError> {
  const source = new ManualSource()
  const reading = parseOpenAIError({ status, headers, body: source }, { callersKey, credentials: SENT }, statusMap)
  source.data(Buffer.from(body))
  source.end()
  return await reading
}

const SENT = 'opaque+channel.credential'

const bodyOf = (message: string, code: string | null = null, type = 'invalid_request_error'): string =>
  JSON.stringify({ error: { message, type, param: null, code } })

describe('The account behind a key', () => {
  it.each<[number, string | null, ErrorKind]>([
    [401, null, 'unauthorized'],
    [402, null, 'rate_limited'],
    [403, null, 'forbidden_model'],
    [429, null, 'rate_limited'],
    [429, 'insufficient_quota', 'rate_limited'],
    [400, 'insufficient_quota', 'rate_limited'],
  ])("is the caller's when the key is (%i, %s), and never the channel's fault", async (status, code, kind) => {
    const error = await refusal({ status, body: bodyOf('No.', code), callersKey: true })
    expect(error.kind).toBe(kind)
    expect(error.details.attempt?.channelError).toBeUndefined()
    // An account that has run dry is not helped by waiting.
    if (code !== null) expect(error.details).toMatchObject({ code, retryable: false })
  })

  it('is not named by a refusal that quotes the credential back, whatever its shape', async () => {
    const error = await refusal({ status: 400, body: bodyOf(`The key ${SENT} is odd.`, SENT) })
    expect(JSON.stringify([error.message, error.details])).not.toContain(SENT)
    expect(error.details.relayed?.body).toContain('The key [key] is odd.')
  })
})

describe('A refusal of the upstream', () => {
  it.each<[number, ErrorKind]>([
    [400, 'invalid_request'],
    [404, 'unknown_model'],
    [409, 'conflict'],
    [413, 'payload_too_large'],
    [422, 'unprocessable'],
  ])('%i is the fault of the caller, in the words of the upstream', async (status, kind) => {
    const error = await refusal({ status, body: bodyOf('Too long.', 'string_above_max_length') })
    expect(error).toMatchObject({
      kind,
      message: 'Too long.',
      details: {
        code: 'string_above_max_length',
        attempt: { phase: 'answered' },
        relayed: { status, body: bodyOf('Too long.', 'string_above_max_length') },
      },
    })
    expect(error.details.attempt).not.toHaveProperty('channelError')
  })

  it.each([401, 402, 403])('%i is the fault of the channel and never shown as the caller’s', async (status) => {
    const error = await refusal({ status, body: bodyOf('Incorrect API key provided: sk-canary1') })
    expect(error).toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'answered', channelError: true }, retryable: false },
    })
    expect(error.details.relayed).toBeUndefined()
    expect(error.message).not.toContain('canary')
  })

  it.each<[number, ErrorKind]>([
    [401, 'unauthorized'],
    [403, 'forbidden_model'],
  ])('%i is the fault of a caller whose own key was sent', async (status, kind) => {
    const error = await refusal({ status, callersKey: true, body: bodyOf('Incorrect API key provided: sk-canary1') })
    expect(error).toMatchObject({ kind, details: { attempt: { phase: 'answered' } } })
    expect(error.details.attempt?.channelError).toBeUndefined()
    expect(error.message).not.toContain('canary')
  })

  it.each([429, 400, 500])('%i is an empty account when its code says so, whatever the status', async (status) => {
    for (const body of [bodyOf('Quota.', 'insufficient_quota'), bodyOf('Quota.', null, 'insufficient_quota')]) {
      expect(await refusal({ status, body })).toMatchObject({
        kind: 'upstream_failed',
        details: { attempt: { channelError: true }, retryable: false },
      })
    }
  })

  it.each([301, 302, 304, 405, 408, 418, 500, 502, 504])('%i is a failure of the upstream', async (status) => {
    expect(await refusal({ status, body: bodyOf('Canary.') })).toMatchObject({
      kind: 'upstream_failed',
      message: `The upstream failed with status ${status}.`,
      details: { attempt: { phase: 'answered', channelError: true } },
    })
  })

  it.each([
    [503, {}, 1],
    [529, {}, 1],
    [503, { 'retry-after': '20' }, 20],
    [529, { 'retry-after': '86400' }, 60],
  ])(
    '%i with %j says that the upstream is overloaded, and to come back after %i s',
    async (status, headers, seconds) => {
      expect(await refusal({ status, headers, body: bodyOf('Canary.') })).toMatchObject({
        kind: 'upstream_overloaded',
        message: 'The upstream is overloaded. Please try again later.',
        details: { retryAfterSeconds: seconds, attempt: { phase: 'answered', channelError: true } },
      })
    },
  )

  it.each([
    [{}, 1],
    [{ 'retry-after': '20' }, 20],
    [{ 'retry-after': '2.2' }, 3],
    [{ 'retry-after': '0' }, 1],
    [{ 'retry-after': '-5' }, 1],
    [{ 'retry-after': '86400' }, 60],
    [{ 'retry-after-ms': '1200', 'retry-after': '30' }, 2],
    [{ 'retry-after-ms': '', 'retry-after': '30' }, 30],
    [{ 'retry-after': 'soon' }, 1],
    [{ 'retry-after': 'Infinity' }, 1],
    [{ 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }, 1],
    [{ 'retry-after': 'Fri, 01 Jan 2999 00:00:00 GMT' }, 60],
  ])('429 with %j says to come back after %i s', async (headers, seconds) => {
    expect(await refusal({ status: 429, headers, body: bodyOf('Slow down, org-secret1') })).toMatchObject({
      kind: 'rate_limited',
      message: 'The upstream is busy. Please try again later.',
      details: { retryAfterSeconds: seconds, attempt: { phase: 'answered', channelError: true } },
    })
  })

  it('429 with a date counts from now', async () => {
    const date = new Date(Date.now() + 30_000).toUTCString()
    const { details } = await refusal({ status: 429, headers: { 'retry-after': date } })
    expect(details.retryAfterSeconds).toBeGreaterThan(27)
    expect(details.retryAfterSeconds).toBeLessThan(32)
  })

  it.each([
    ['empty', ''],
    ['broken', '{"error":{"mess'],
    ['HTML', '<html><body>Bad gateway at api.canary.com</body></html>'],
    ['a list', '[1]'],
    ['null', 'null'],
    ['of another dialect', '{"detail":"canary"}'],
    ['without a message', '{"error":{"code":"x"}}'],
    ['an error that is a text', '{"error":"canary"}'],
    ['binary', Buffer.from([0xff, 0xfe, 0x00])],
    ['nested deeper than the stack', `{"error":{"message":"a","x":${'['.repeat(60_000)}${']'.repeat(60_000)}}}`],
    ['larger than 256 KiB', bodyOf('canary'.repeat(50_000))],
  ])('with a body that is %s is still judged by its status', async (_name, body) => {
    const error = await refusal({ status: 400, body })
    expect(error).toMatchObject({ kind: 'invalid_request', message: 'The upstream refused the request.' })
    expect(error.details.relayed).toBeUndefined()
    expect(await refusal({ status: 500, body })).toMatchObject({ kind: 'upstream_failed' })
  })

  it('is relayed without hosts, accounts and keys, its other keys kept and the four of the dialect complete', async () => {
    const body = JSON.stringify({
      error: {
        message: 'See "https://api.canary.com/x" for org-canary1',
        type: 'x',
        innererror: { at: 'wss://canary.io' },
      },
      trace: ['Bearer canary-token'],
      count: 2,
    })
    const { message, details } = await refusal({ status: 422, body })
    expect(message).toBe('See "[address]" for [account]')
    expect(JSON.parse(details.relayed?.body ?? '')).toEqual({
      error: {
        message: 'See "[address]" for [account]',
        type: 'x',
        param: null,
        code: null,
        innererror: { at: '[address]' },
      },
      trace: ['Bearer [key]'],
      count: 2,
    })
  })

  it('becomes a 400 where the dialect of the route knows no 404', async () => {
    const error = await refusal({ status: 404, body: bodyOf('No such model.'), statusMap: AUDIO_STATUS_MAP })
    expect(error.details.relayed?.status).toBe(400)
    const other = await refusal({ status: 413, body: bodyOf('Large.'), statusMap: AUDIO_STATUS_MAP })
    expect(other.details.relayed?.status).toBe(413)
  })
})

const ALLOWED = new HeaderAllowList()
const COUNTS = '{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":1}}'
const USAGE = { units: { prompt_tokens: 3, prompt_tokens_details: { cached_tokens: 1 } }, estimated: false }

/** A body that was there with its head. */
const wholeBody = (text: string): ByteSource => ({
  complete: Buffer.from(text),
  start: () => undefined,
  pause: () => undefined,
  resume: () => undefined,
  cancel: () => undefined,
})

/** How it is known where the body ends; without either it is where the connection ends. */
const FRAMINGS = { length: { 'content-length': '1' }, chunks: { 'transfer-encoding': 'chunked' }, connection: {} }
type Framing = keyof typeof FRAMINGS

const responseOf = (text: string, framing: Framing): UpstreamResponse => ({
  status: 200,
  headers: { 'content-type': 'application/json', ...FRAMINGS[framing] },
  body: wholeBody(text),
})

/** What is relayed of an answer, and the usage that was found in it. */
async function metered(text: string, framing: Framing = 'length'): Promise<{ body: string; usages: Usage[] }> {
  const usage = new RelayedUsage()
  const { body } = await estimatedResponse(responseOf(text, framing), ALLOWED, usage)
  const usages = usage.reportedUsage === undefined ? [] : [usage.reportedUsage]
  return { body: Buffer.isBuffer(body) ? body.toString() : 'held back', usages }
}

describe('The usage of an answer', () => {
  it.each([
    ['at its end', `{"choices":[{"text":"hello"}],"usage":${COUNTS}}`],
    ['with something behind it', `{"choices":[],"usage":${COUNTS},"service_tier":"default","x":{"y":[1]}}`],
    ['with blanks wherever they may stand', ` \r\n\t{ \n "id" : 1 , "usage" :\n ${COUNTS} }\n`],
    ['as its only member', `{"usage":${COUNTS}}`],
    ['at its beginning', `{"usage":${COUNTS},"choices":[{"text":"the \\"usage\\": none"}]}`],
    ['though something within it is called the same', `{"usage":${COUNTS},"x":{"usage":{"prompt_tokens":9}}}`],
    ['though a text ends with its name', `{"usage":${COUNTS},"text":"of \\"usage"}`],
    ['though a text is its name', `{"usage":${COUNTS},"text":"usage"}`],
    ['though another name ends with it', `{"usage":${COUNTS},"of \\"usage":{"prompt_tokens":9}}`],
    ['though it is there twice, where the last one counts', `{"usage":{"prompt_tokens":9},"usage":${COUNTS}}`],
  ])('is found %s', async (_where, text) => {
    for (const framing of ['length', 'chunks', 'connection'] as const) {
      expect(await metered(text, framing)).toEqual({ body: text, usages: [USAGE] })
    }
  })

  it.each([
    ['there is none', '{"choices":[]}'],
    ['it is null', '{"choices":[],"usage":null}'],
    ['it holds no counts', '{"choices":[],"usage":{"a":"b"}}'],
    ['only something within the answer has one', `{"choices":[{"usage":${COUNTS}}]}`],
    ['a model only speaks of it', '{"text":"\\"usage\\":{\\"prompt_tokens\\":3}"}'],
    ['the answer has no members', '{}'],
  ])('is not invented where %s', async (_why, text) => {
    expect(await metered(text)).toEqual({ body: text, usages: [] })
  })

  it('costs no look at what stands before it', async () => {
    const parse = jest.spyOn(JSON, 'parse')
    await metered(`{"audio":"${'A'.repeat(500_000)}","usage":${COUNTS}}`)
    expect(parse.mock.calls.map(([text]) => text.length)).toEqual([`{"usage":${COUNTS}}`.length])
    parse.mockRestore()
  })
})

describe('An answer is broken', () => {
  it.each([
    ['when more follows', `{"choices":[],"usage":${COUNTS}}}`],
    ['when it is two', `{"a":1}{"usage":${COUNTS}}`],
    ['when a part of it is gone', `{"a":[1],{"usage":${COUNTS}}`],
    ['when its beginning is gone', `hoices":[],"usage":${COUNTS}}`],
    ['when it is a list', `[{"usage":${COUNTS}}]`],
    ['when it is a text', '"usage"'],
    ['when it is a page', '<html>"usage"</html>'],
    ['when it is nothing', ''],
  ])('%s', async (_when, text) => {
    for (const framing of ['length', 'connection'] as const) {
      await expect(metered(text, framing)).rejects.toMatchObject({ kind: 'upstream_failed' })
    }
  })

  it.each([
    ['within the usage', `{"choices":[],"usage":{"prompt_tokens":3`],
    ['where something within it ends', `{"choices":[{"message":{"text":"x"}`],
    ['behind the usage', `{"choices":[],"usage":${COUNTS}`],
    ['behind the usage of something within it', `{"choices":[{"index":0,"usage":${COUNTS}}`],
  ])('when its connection ends %s', async (_where, text) => {
    await expect(metered(text, 'connection')).rejects.toMatchObject({ kind: 'upstream_failed' })
  })
})
