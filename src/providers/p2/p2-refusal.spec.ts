import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { ERROR_KINDS, type ErrorKind } from '../../core/errors.js'
import type { GatewayError } from '../../core/gateway-error.js'
import type { SentCredentials } from '../../dialects/openai-wire.js'
import { BytesSource } from '../../upstream/bytes-source.js'
import type { UpstreamResponse } from '../../upstream/upstream-exchange.js'
import { handshakeRefusal, p2Refusal } from './p2-error.js'

const OURS: SentCredentials = { credentials: '1234567890|canary-token', callersKey: false }
const CALLERS: SentCredentials = { ...OURS, callersKey: true }

const GRANT = 'authenticate request: load grant: requested grant not found'
const ACCESS = 'extract request resource id: get resource id: access denied'
const LIFETIME = 'quota exceeded for types: text_words_lifetime'
const CONCURRENCY = 'quota exceeded for types: concurrency'

const CHANNELS = { phase: 'answered', channelFault: true }
const causeOf = (error: GatewayError): string => String(error.details.cause)

describe('An error frame', () => {
  it.each<[number, ErrorKind]>([
    [3005, 'upstream_failed'],
    [3006, 'upstream_failed'],
    [3030, 'upstream_timeout'],
    [3031, 'upstream_failed'],
    [3032, 'upstream_timeout'],
    [3040, 'upstream_failed'],
    [3000, 'upstream_failed'],
    [4711, 'upstream_failed'],
  ])('%d is the upstream\u2019s failure, worth another channel and another time', (code, kind) => {
    for (const sent of [OURS, CALLERS]) {
      const error = p2Refusal(code, 'words of the upstream', sent)
      expect(error).toMatchObject({ kind, details: { attempt: CHANNELS, retryable: true } })
      expect(error.message).not.toContain('words')
      expect(causeOf(error)).toContain(`P2 answered ${code}: words of the upstream`)
    }
  })

  it.each<[number, string | undefined, string | undefined]>([
    [3001, undefined, undefined],
    [3010, 'input', 'string_above_max_length'],
    [3011, 'input', 'invalid_value'],
    [3050, 'voice', 'voice_not_found'],
  ])('%d is the caller\u2019s fault, in the upstream\u2019s words', (code, param, errorCode) => {
    const error = p2Refusal(code, 'words of the upstream', OURS)
    expect(error).toMatchObject({ kind: 'invalid_request', message: 'words of the upstream' })
    expect(error.details).toMatchObject({ attempt: { phase: 'answered' } })
    expect([error.details.param, error.details.code]).toEqual([param, errorCode])
    expect(p2Refusal(code, ' ', OURS).message).toMatch(/upstream/)
  })

  it('3003 is a limit: the channel\u2019s with its own key, the caller\u2019s with theirs', () => {
    const busy = { kind: 'rate_limited', details: { retryAfterSeconds: 1, attempt: CHANNELS } }
    expect(p2Refusal(3003, 'too many', OURS)).toMatchObject(busy)
    expect(p2Refusal(3001, CONCURRENCY, OURS)).toMatchObject(busy)
    expect(p2Refusal(3003, 'too many', CALLERS).details.attempt).toEqual({ phase: 'answered' })
    expect(p2Refusal(3001, CONCURRENCY, CALLERS).details.attempt).toEqual({ phase: 'answered' })
    expect(causeOf(p2Refusal(3003, CONCURRENCY, OURS))).toContain('more syntheses at a time')
  })
})

describe('Words about the account', () => {
  it.each([GRANT, ACCESS, LIFETIME, 'access denied', GRANT.toUpperCase()])(
    '%j are the channel\u2019s fault, whatever the code, and no caller reads them',
    (words) => {
      for (const code of [3001, 3003, 3031, 4711]) {
        const error = p2Refusal(code, words, OURS)
        expect(error).toMatchObject({ kind: 'upstream_failed', details: { attempt: CHANNELS, retryable: false } })
        expect(error.message).toBe('The upstream does not serve this gateway at the moment.')
        expect(causeOf(error)).toContain(words)
      }
    },
  )

  it.each<[string, ErrorKind, string]>([
    [GRANT, 'unauthorized', 'invalid_api_key'],
    [ACCESS, 'forbidden_model', 'model_not_allowed'],
    [LIFETIME, 'rate_limited', 'insufficient_quota'],
  ])('%j are the caller\u2019s business when the key is theirs', (words, kind, code) => {
    const error = p2Refusal(3001, words, CALLERS)
    expect(error.kind).toBe(kind)
    expect(error.details.code ?? ERROR_KINDS[error.kind].audio.code).toBe(code)
    expect(error.details.attempt).toEqual({ phase: 'answered' })
  })

  it('that only repeat what the caller wrote as a voice or a text do not accuse the channel', () => {
    for (const code of [3010, 3011, 3050]) {
      expect(p2Refusal(code, `unknown: ${GRANT}`, OURS).details.attempt?.channelFault).toBeUndefined()
    }
  })

  it('come with a hint for whoever runs the channel', () => {
    expect(causeOf(p2Refusal(3001, GRANT, OURS))).toContain('app id and access token')
    expect(causeOf(p2Refusal(3031, 'Fail to feed text, reason Init Engine Instance failed', OURS))).toContain('cluster')
    expect(causeOf(p2Refusal(55000000, 'resource mismatch', OURS))).toContain('generations')
  })
})

describe('The words of an upstream', () => {
  it('never carry the key, whole or in parts, nor hosts', () => {
    const words = `1234567890|canary-token 1234567890 canary-token at tts.internal and 10.0.0.1`
    for (const code of [3001, 3031, 3050]) {
      for (const sent of [OURS, CALLERS]) {
        const error = p2Refusal(code, words, sent)
        expect(`${error.message} ${causeOf(error)}`).not.toMatch(/canary|1234567890|internal|10\.0/)
      }
    }
  })

  it('carry no rest of a token that holds the app id', async () => {
    const nested: SentCredentials = { credentials: 'app7|token-of-app7-canary', callersKey: false }
    const words = 'token-of-app7-canary of app7 is unknown'
    const told = [p2Refusal(3001, words, nested), p2Refusal(3031, words, nested)]
    const body = new BytesSource(Buffer.from(JSON.stringify({ message: words })))
    told.push(await handshakeRefusal({ status: 401, headers: {}, body }, nested))
    for (const error of told) {
      expect(causeOf(error)).toContain('[key] of [key] is unknown')
      expect(`${error.message} ${causeOf(error)}`).not.toMatch(/canary|token-of|app7/)
    }
  })

  it('may be anything', () => {
    fc.assert(
      fc.property(fc.nat(0xffffffff), fc.string({ unit: 'binary' }), fc.boolean(), (code, text, callersKey) => {
        const error = p2Refusal(code, text, { ...OURS, callersKey })
        expect(error.details.attempt?.phase).toBe('answered')
      }),
    )
  })
})

describe('A refused handshake', () => {
  const refuse = (status: number, sent: SentCredentials, body = '{"code":3001,"message":"words, canary-token"}') => {
    const response: UpstreamResponse = {
      status,
      headers: { 'retry-after': '7' },
      body: new BytesSource(Buffer.from(body)),
    }
    return handshakeRefusal(response, sent)
  }

  it.each([401, 402, 403])('with %d is the channel\u2019s fault with its own key', async (status) => {
    const error = await refuse(status, OURS)
    expect(error).toMatchObject({ kind: 'upstream_failed', details: { attempt: CHANNELS, retryable: false } })
    expect(error.message).not.toContain('words')
    expect(causeOf(error)).toContain('words, [key]')
  })

  it.each<[number, ErrorKind]>([
    [401, 'unauthorized'],
    [403, 'forbidden_model'],
    [429, 'rate_limited'],
  ])('with %d is about the caller\u2019s key when it was that', async (status, kind) => {
    expect(await refuse(status, CALLERS)).toMatchObject({ kind, details: { attempt: { phase: 'answered' } } })
  })

  it('with 429 says when to come back', async () => {
    const details = { retryAfterSeconds: 7, attempt: CHANNELS }
    expect(await refuse(429, OURS)).toMatchObject({ kind: 'rate_limited', details })
  })

  it.each([200, 302, 400, 404, 409, 413, 422, 426, 500, 503])('with %d is the channel\u2019s fault', async (status) => {
    for (const sent of [OURS, CALLERS]) {
      const error = await refuse(status, sent, 'no JSON')
      expect(error).toMatchObject({ kind: 'upstream_failed', details: { attempt: CHANNELS } })
    }
  })
})
