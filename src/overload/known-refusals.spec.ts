import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { ENDPOINTS } from '../../test/support/endpoints.js'
import type { Dialect } from '../core/endpoint.js'
import { GatewayError } from '../core/errors.js'
import type { Sharer } from '../core/fair-share.js'
import type { Quota } from '../core/quota.js'
import { RequestContext } from '../core/request-context.js'
import type { CallerHeaders } from './caller-resolver.js'
import { KnownRefusals } from './known-refusals.js'

describe('Refusals that are known', () => {
  const CHAT = '/v1/chat/completions'
  const OUTCOME = { status: 401, left: false, totalMs: 1, gatewayMs: 1 }
  const STRANGER: Sharer = { keyId: 'caller', member: '192.0.2.1' }
  const KEY: Sharer = { keyId: 'team' }
  const NO_KEY = new GatewayError('key_missing', 'No API key was sent.')
  const UNKNOWN = new GatewayError('unauthorized', 'The key is unknown.')
  const USED_UP = new GatewayError('rate_limited', 'Used up.', { retryAfterSeconds: 30 })

  let nowMs = 0
  let validKeys: Set<string>
  let reported: [requestId: string, times: number][]
  let known: KnownRefusals
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['performance'] })
    nowMs = 5_000
    validKeys = new Set()
    reported = []
    known = new KnownRefusals({
      keyFault: ({ authorization }) =>
        authorization === undefined ? NO_KEY : validKeys.has(authorization) ? undefined : UNKNOWN,
      onRepeated: ({ requestId }, _outcome, times) => reported.push([requestId, times]),
      nowMs: () => nowMs,
    })
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  const pass = (milliseconds: number): void => {
    nowMs += milliseconds
    jest.advanceTimersByTime(milliseconds)
  }

  const headersOf = (authorization?: string, isOfMessages = false): CallerHeaders => ({
    ...{ authorization, apiKey: undefined, isOfMessages, forwardedFor: undefined, peer: undefined },
  })
  const find = (sharer: Sharer, authorization?: string, path = CHAT) =>
    known.find(ENDPOINTS.find(path), 'POST', sharer, headersOf(authorization))

  /** Requests that were refused like any other; the last is `req-99`. */
  function refuse(
    failure: Error,
    { times = 100, keyId = 'caller', quota = {}, attempts = 0, method = 'POST', path = CHAT } = {},
    dialect?: Dialect,
  ): void {
    for (let index = 0; index < times; index++) {
      const call = new RequestContext(`req-${index}`, method, path, nowMs, ENDPOINTS.find(path), dialect)
      call.caller = { keyId }
      const addHeaders = (headers: Record<string, unknown>): void => {
        headers['x-ratelimit-remaining-requests'] = '0'
      }
      call.quota = { addHeaders, ...quota } as unknown as Quota
      call.log.failure = failure
      for (let attempt = 0; attempt < attempts; attempt++) call.log.attempts.push({} as never)
      known.learn(call, OUTCOME)
    }
  }

  it('are found once there were a hundred in a second, and told of together a second later', () => {
    refuse(NO_KEY, { times: 99 })
    expect(known.isBusy).toBe(false)
    expect(find(STRANGER)).toBeUndefined()
    refuse(NO_KEY, { times: 1 })
    expect(known.isBusy).toBe(true)
    for (let index = 0; index < 7; index++) expect(find(STRANGER)).toMatchObject({ error: NO_KEY, headers: {} })
    expect(reported).toEqual([])
    pass(1_000)
    expect(reported).toEqual([['req-0', 7]])
    expect(known.isBusy).toBe(false)
    expect(find(STRANGER)).toBeUndefined()
  })

  it('are those of the same reason at the same endpoint', () => {
    refuse(NO_KEY)
    expect(find(STRANGER, 'Bearer invented')).toBeUndefined()
    expect(find(STRANGER, undefined, '/v1/audio/speech')).toBeUndefined()
    refuse(UNKNOWN, { times: 1 })
    expect(find(STRANGER, 'Bearer invented')).toMatchObject({ error: UNKNOWN })
    expect(find(KEY)).toBeUndefined()
  })

  it.each([
    ['without a key', NO_KEY, 'caller', STRANGER],
    ['of a key whose minute is used up', USED_UP, KEY.keyId, KEY],
  ])('are those in the form that the client reads, at a path that clients of two dialects share: %s', (...row) => {
    const [, failure, keyId, sharer] = row
    const asked = { method: 'GET', path: '/v1/models', keyId, quota: { isUsedUp: true } }
    const formOf = (isOfMessages: boolean) =>
      known.find(ENDPOINTS.find('/v1/models'), 'GET', sharer, headersOf(undefined, isOfMessages))?.call.dialect
    refuse(failure, asked, 'messages')
    expect([formOf(true), formOf(false)]).toEqual(['messages', undefined])
    refuse(failure, asked, 'openai')
    expect([formOf(true), formOf(false)]).toEqual(['messages', 'openai'])
  })

  it('are none for a key that is valid', () => {
    refuse(UNKNOWN)
    validKeys.add('Bearer good')
    expect(find(STRANGER, 'Bearer good')).toBeUndefined()
    expect(find(STRANGER, 'Bearer bad')).toMatchObject({ error: UNKNOWN })
    // What was found out of headers holds for a second.
    validKeys.add('Bearer bad')
    pass(1_000)
    refuse(UNKNOWN)
    expect(find(STRANGER, 'Bearer bad')).toBeUndefined()
  })

  it('are found whatever the headers, however many differ', () => {
    refuse(UNKNOWN)
    for (let index = 0; index < 400; index++)
      expect(find(STRANGER, `Bearer ${index}`)).toMatchObject({ error: UNKNOWN })
    expect(find(STRANGER, `Bearer ${'x'.repeat(700)}`)).toMatchObject({ error: UNKNOWN })
  })

  it('of a key whose minute is used up carry what is left, and end with the minute', () => {
    refuse(USED_UP, { keyId: KEY.keyId, quota: { isUsedUp: true } })
    expect(find(KEY)).toMatchObject({ error: USED_UP, headers: { 'x-ratelimit-remaining-requests': '0' } })
    expect(find(KEY)?.headers).not.toHaveProperty('x-request-id')
    expect(find({ keyId: 'other' })).toBeUndefined()
    pass(1_000)
    // Half a second is left: less than `Retry-After` can say.
    refuse(new GatewayError('rate_limited', 'Used up.', { retryAfterSeconds: 1 }), {
      ...{ keyId: KEY.keyId, quota: { isUsedUp: true } },
    })
    expect(find(KEY)).toBeUndefined()
  })

  it.each([
    [
      'whose limit depends on what ends meanwhile, or is counted without Redis',
      USED_UP,
      { quota: { isUsedUp: false } },
    ],
    ['that an upstream was asked for', NO_KEY, { attempts: 1 }],
    ['that is no refusal', new Error('a fault'), {}],
    ['for another reason', new GatewayError('invalid_request', 'Bad.'), {}],
  ])('are never those of a request %s', (_what, failure, options) => {
    refuse(failure, { keyId: KEY.keyId, ...options })
    expect([known.isBusy, find(KEY), find(STRANGER)]).toEqual([false, undefined, undefined])
  })

  it('are told of when all that has ended must be known', () => {
    refuse(NO_KEY)
    find(STRANGER)
    known.report()
    expect(reported).toEqual([['req-99', 1]])
    find(STRANGER)
    pass(1_000)
    expect(reported).toEqual([
      ['req-99', 1],
      ['req-99', 1],
    ])
  })
})
