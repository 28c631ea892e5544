import { describe, expect, it } from '@jest/globals'
import { ManualSource } from '../../../test/support/byte-streams.js'
import type { ErrorKind } from '../../core/errors.js'
import type { GatewayError } from '../../core/gateway-error.js'
import { P3_STATUS_CODES, p3Failure, p3Refusal } from './p3-error.js'

const CHANNELS_KEY = { credentials: 'channel-canary-key', callersKey: false }
const CALLERS_KEY = { ...CHANNELS_KEY, callersKey: true }
const WORDS = 'upstream words of api.example.com for channel-canary-key'

interface Row {
  readonly code: number
  readonly kind: ErrorKind
  /** Whose fault; the channel's are tried on another one. */
  readonly fault: 'caller' | 'channel'
  readonly word?: string
  readonly param?: string
  readonly retryable?: false
  readonly retryAfterSeconds?: number
  /** The same with the caller's own key, where that makes a difference. */
  readonly own?: { readonly kind: ErrorKind; readonly word?: string }
}

const failed = { kind: 'upstream_failed', fault: 'channel' } as const
const account = { ...failed, retryable: false } as const
const invalid = { kind: 'invalid_request', fault: 'caller' } as const
const busy = { kind: 'rate_limited', fault: 'channel', retryAfterSeconds: 1, own: { kind: 'rate_limited' } } as const

/** The vendor's own table, code by code. */
const ROWS: readonly Row[] = [
  { code: 1000, ...failed },
  { code: 1001, kind: 'upstream_timeout', fault: 'channel' },
  { code: 1002, ...busy },
  { code: 1004, ...account, own: { kind: 'unauthorized' } },
  { code: 1008, ...account, own: { kind: 'rate_limited', word: 'insufficient_quota' } },
  { code: 1013, ...failed },
  { code: 1024, ...failed },
  { code: 1033, ...failed },
  { code: 1026, ...invalid, word: 'content_policy_violation', param: 'input' },
  { code: 1027, ...invalid, word: 'content_policy_violation' },
  { code: 1039, ...busy },
  { code: 1041, ...busy },
  { code: 1042, ...invalid, word: 'invalid_characters', param: 'input' },
  { code: 1043, ...invalid },
  { code: 1044, ...invalid },
  { code: 2013, ...invalid },
  { code: 2037, ...invalid },
  { code: 2038, ...account, own: { kind: 'forbidden_model' } },
  { code: 2039, ...invalid },
  { code: 2042, ...invalid, word: 'voice_not_permitted', param: 'voice' },
  { code: 2045, ...busy },
  { code: 2048, ...invalid },
  { code: 2049, ...account, own: { kind: 'unauthorized' } },
  { code: 2054, ...invalid, word: 'voice_not_found', param: 'voice' },
  { code: 2056, ...busy, retryAfterSeconds: 60 },
  { code: 20132, ...invalid, word: 'invalid_voice', param: 'voice' },
]

describe('a status code of P3', () => {
  it.each(ROWS)('$code is $kind, the fault of the $fault', (row) => {
    const { kind, message, details } = p3Failure({ code: row.code, message: WORDS }, CHANNELS_KEY)
    expect({ kind, ...details }).toEqual({
      kind: row.kind,
      cause: `status_code ${row.code}: upstream words of [host] for [key]`,
      attempt: { phase: 'answered', ...(row.fault === 'channel' ? { channelFault: true } : {}) },
      ...(row.word === undefined ? {} : { code: row.word }),
      ...(row.param === undefined ? {} : { param: row.param }),
      ...(row.retryable === undefined ? {} : { retryable: row.retryable }),
      ...(row.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: row.retryAfterSeconds }),
    })
    // The upstream's words are for the caller only where the caller can do something about it.
    if (row.fault === 'caller') expect(message).toBe('upstream words of [host] for [key]')
    else expect(message).not.toContain('upstream words')
  })

  it.each(ROWS)('$code with the caller’s own key speaks of that key or says the same', (row) => {
    const own = p3Failure({ code: row.code, message: WORDS }, CALLERS_KEY)
    if (row.own === undefined) {
      expect(own).toEqual(p3Failure({ code: row.code, message: WORDS }, CHANNELS_KEY))
      return
    }
    expect(own.kind).toBe(row.own.kind)
    expect(own.details.code).toBe(row.own.word)
    expect(own.details.attempt).toEqual({ phase: 'answered' })
    expect(own.details.retryAfterSeconds).toBe(row.retryAfterSeconds)
  })

  it('has a row here for each documented one, and another one is P3’s own failure', () => {
    expect(Object.keys(P3_STATUS_CODES).map(Number)).toEqual(ROWS.map(({ code }) => code).sort((a, b) => a - b))
    expect(p3Failure({ code: 4242, message: WORDS }, CHANNELS_KEY)).toMatchObject({
      kind: 'upstream_failed',
      message: 'The upstream failed with status code 4242.',
      details: { attempt: { channelFault: true } },
    })
  })

  it('says something to the caller even when P3 does not', () => {
    const { message } = p3Failure({ code: 2013, message: '' }, CHANNELS_KEY)
    expect(message).toBe('The upstream refused the request (2013).')
  })
})

describe('an answer of P3 with another HTTP status than 200', () => {
  async function refused(status: number, body: string, headers: Record<string, string> = {}): Promise<GatewayError> {
    const source = new ManualSource()
    const refusal = p3Refusal({ status, headers, body: source }, CHANNELS_KEY)
    source.data(body)
    source.end()
    return await refusal
  }
  const reported = (code: number, message = WORDS): string =>
    JSON.stringify({ data: null, base_resp: { status_code: code, status_msg: message } })

  it.each([
    [500, '<html>', 'upstream_failed'],
    [503, '', 'upstream_failed'],
    [401, '<html>', 'upstream_failed'],
    [429, '{}', 'rate_limited'],
    [400, 'null', 'invalid_request'],
    [404, '404 page not found', 'unknown_model'],
    [500, reported(1002), 'rate_limited'],
    [400, reported(1004), 'upstream_failed'],
    [400, reported(2038), 'upstream_failed'],
    [403, reported(2038), 'upstream_failed'],
    // What the status says is more precise here.
    [413, reported(2013), 'payload_too_large'],
    [422, reported(2013), 'unprocessable'],
    [500, reported(4242), 'upstream_failed'],
    [400, '{"base_resp":{"status_code":"1004"}}', 'invalid_request'],
  ])('%s with %s is %s', async (status, body, kind) => {
    expect(await refused(status, body)).toMatchObject({ kind, details: { attempt: { phase: 'answered' } } })
  })

  it('shows the upstream’s words where the fault is the caller’s', async () => {
    expect((await refused(400, reported(2013))).message).toBe('upstream words of [host] for [key]')
    expect((await refused(400, reported(2054))).details).toMatchObject({ param: 'voice', code: 'voice_not_found' })
  })

  it('keeps the time to wait that the upstream names', async () => {
    const { details } = await refused(429, reported(1002), { 'retry-after': '7' })
    expect(details.retryAfterSeconds).toBe(7)
  })
})
