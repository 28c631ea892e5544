import { describe, expect, it } from '@jest/globals'
import { LimitedCalls, READ, served, SESSION, tokens, WORK } from '../../test/support/limited-calls.js'
import { GatewayError } from '../core/gateway-error.js'

async function refusalOf(work: Promise<unknown>): Promise<GatewayError> {
  try {
    await work
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('was not refused')
}

describe('A call of a key with limits', () => {
  it('counts as a request of its minute when it asks for work, and not when it reads', async () => {
    const calls = new LimitedCalls({ requestsPerMinute: 2, concurrency: 9 })
    for (let count = 0; count < 3; count++) await calls.enter(READ)
    await calls.enter()
    await calls.enter()
    const error = await refusalOf(calls.enter())
    expect(error.kind).toBe('rate_limited')
    expect(error.message).toBe(
      'The limit of 2 requests per minute of this API key (key:team-a) is used up. It is reset in 60 s.',
    )
    expect(error.details).toMatchObject({ retryAfterSeconds: 60 })
    expect(calls.refusals).toEqual(['requestsPerMinute'])
    await expect(calls.enter(READ)).resolves.toBeDefined()
  })

  it('has a place among those under way until it is over, and is no request when it finds none', async () => {
    const calls = new LimitedCalls({ requestsPerMinute: 9, concurrency: 1 })
    const first = await calls.enter()
    const second = calls.make()
    const error = await refusalOf(second.enter({ isWork: true, isSession: false }))
    expect(error.message).toContain('The limit of 1 requests at once of this API key (key:team-a) is reached.')
    expect(error.details).toMatchObject({ code: 'concurrency_limit_exceeded', retryAfterSeconds: 1 })
    expect(second.call.answerHeaders).toMatchObject({
      'x-gateway-limit': 'concurrency; scope=key:team-a; reset=1',
      'x-ratelimit-limit-requests': '9',
    })
    await second.end({ status: 429 })
    expect(await calls.used()).toMatchObject({ requests: 1, underWay: 1 })
    await first.end()
    expect(await calls.used()).toMatchObject({ underWay: 0 })
    await calls.enter()
  })

  it.each(['at once', 'awaited'] as const)(
    'is told what is left when what it had counted is taken back with its refusal, counted %s',
    async (kind) => {
      const calls = new LimitedCalls({ requestsPerMinute: 9, tokensPerMinute: 100, audioSecondsPerMinute: 10 }, kind)
      await (await calls.enter()).expect({ audioSeconds: 8 })
      const two = await calls.enter()
      await refusalOf(two.expect({ tokens: 70, audioSeconds: 3 }))
      expect(two.call.answerHeaders).toMatchObject({
        'x-ratelimit-remaining-requests': '7',
        'x-ratelimit-remaining-tokens': '100',
        'x-ratelimit-remaining-audio-seconds': '2',
      })
      const full = new LimitedCalls({ requestsPerMinute: 9, concurrency: 1, realtimeSessions: 1 }, kind)
      await full.enter()
      const refused = full.make()
      await refusalOf(refused.enter(WORK))
      expect(refused.call.answerHeaders['x-ratelimit-remaining-requests']).toBe('8')
      const seats = new LimitedCalls({ requestsPerMinute: 9, realtimeSessions: 1 }, kind)
      await seats.enter(SESSION)
      const noSeat = seats.make()
      await refusalOf(noSeat.enter(SESSION))
      expect(noSeat.call.answerHeaders['x-ratelimit-remaining-requests']).toBe('8')
    },
  )

  it('holds nothing once it is refused, however long its caller goes on sending', async () => {
    const calls = new LimitedCalls({ requestsPerMinute: 1, concurrency: 2 })
    const first = await calls.enter()
    await refusalOf(calls.enter())
    expect((await calls.used()).underWay).toBe(1)
    await first.end()
    expect((await calls.used()).underWay).toBe(0)
  })

  it('takes nothing when its caller has left before it was counted in', async () => {
    const calls = new LimitedCalls({ concurrency: 1 }, 'awaited')
    const one = calls.make()
    const entering = refusalOf(one.enter(READ))
    await one.end({ left: true })
    expect((await entering).kind).toBe('caller_left')
    expect((await calls.used()).underWay).toBe(0)
  })

  it('reserves nothing once its caller has left', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000 }, 'awaited')
    const one = await calls.enter()
    const expecting = refusalOf(one.expect({ tokens: 800 }))
    await one.end({ left: true })
    expect((await expecting).kind).toBe('caller_left')
    expect((await calls.used()).tokens).toBe(0)
  })

  it('reserves what it expects and is settled by what was used', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000, audioSecondsPerMinute: 60 })
    const one = await calls.enter()
    await one.expect({ tokens: 800, audioSeconds: 1.5 })
    expect(await calls.used()).toMatchObject({ tokens: 800, audioSeconds: 1.5 })
    expect(one.call.answerHeaders).toMatchObject({
      'x-ratelimit-limit-tokens': '1000',
      'x-ratelimit-remaining-tokens': '200',
      'x-ratelimit-reset-tokens': '1m0s',
      'x-ratelimit-remaining-audio-seconds': '58',
    })
    served(one)
    await one.end({ usage: tokens(30, 12) })
    expect(await calls.used()).toMatchObject({ tokens: 42, audioSeconds: 1.5 })
  })

  it('debits what was used beyond the expectation', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000 })
    const one = await calls.enter()
    await one.expect({ tokens: 10 })
    served(one)
    await one.end({ usage: tokens(900, 300) })
    expect(await calls.used()).toMatchObject({ tokens: 1200 })
    const error = await refusalOf((await calls.enter()).expect({ tokens: 1 }))
    expect(error.message).toContain('The limit of 1000 tokens per minute of this API key (key:team-a) is used up.')
  })

  it('is refused with what is left and what it asks for when it does not fit, and keeps nothing', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 100, audioSecondsPerMinute: 10, concurrency: 5 })
    await (await calls.enter()).expect({ audioSeconds: 8 })
    const two = await calls.enter()
    const error = await refusalOf(two.expect({ tokens: 70, audioSeconds: 3 }))
    expect(error.message).toBe(
      'The limit of 10 seconds of audio per minute of this API key (key:team-a) has 2 left, and this request expects ' +
        'to use 3. It is reset in 60 s.',
    )
    expect(two.call.answerHeaders['x-gateway-limit']).toBe('audioSecondsPerMinute; scope=key:team-a; reset=60')
    await two.end({ status: 429 })
    expect(await calls.used()).toMatchObject({ tokens: 0, audioSeconds: 8, underWay: 1 })
  })

  it('is told not to try again when it can never fit', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 100 })
    const one = await calls.enter()
    const error = await refusalOf(one.expect({ tokens: 101 }))
    expect(error.message).toBe(
      'The limit of 100 tokens per minute of this API key (key:team-a) is less than the 101 that this request expects ' +
        'to use: it can never be served. Ask for less at once.',
    )
    expect(error.details).toEqual({ code: 'request_exceeds_limit', retryable: false })
    expect(one.call.answerHeaders['x-gateway-limit']).toBe('tokensPerMinute; scope=key:team-a')
    expect((await calls.used()).tokens).toBe(0)
  })

  it('waits for a whole limit at most by a guess, and is refused for ever by what is known alone', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 100, audioSecondsPerMinute: 10 })
    const one = await calls.enter()
    await one.expect({ tokens: 4000, audioSeconds: 900, isGuess: true })
    expect(await calls.used()).toMatchObject({ tokens: 100, audioSeconds: 10 })
    const waiting = await refusalOf((await calls.enter()).expect({ tokens: 1, audioSeconds: 900, isGuess: true }))
    expect(waiting.details).toEqual({ retryAfterSeconds: 60 })
    const never = await refusalOf((await calls.enter()).expect({ audioSeconds: 10.5 }))
    expect(never.details).toEqual({ code: 'request_exceeds_limit', retryable: false })
    served(one)
    await one.end({ usage: tokens(300, 20) })
    expect(await calls.used()).toMatchObject({ tokens: 320, audioSeconds: 10 })
  })

  it('reserves a guess that is less than the limit as it is', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 100, audioSecondsPerMinute: 10 })
    await (await calls.enter()).expect({ tokens: 30, audioSeconds: 2.5, isGuess: true })
    expect(await calls.used()).toMatchObject({ tokens: 30, audioSeconds: 2.5 })
  })

  it('reserves once, however often it is routed', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 100 })
    const one = await calls.enter()
    await one.expect({ tokens: 60 })
    await one.expect({ tokens: 60 })
    expect((await calls.used()).tokens).toBe(60)
  })

  it('is answered in the names of the messages family on its paths', async () => {
    const calls = new LimitedCalls({ requestsPerMinute: 5, tokensPerMinute: 100, audioSecondsPerMinute: 9 })
    const { call } = await calls.enter(undefined, '/v1/messages')
    expect(Object.keys(call.answerHeaders).filter((name) => name.includes('ratelimit'))).toEqual([
      'anthropic-ratelimit-requests-limit',
      'anthropic-ratelimit-requests-remaining',
      'anthropic-ratelimit-requests-reset',
      'anthropic-ratelimit-tokens-limit',
      'anthropic-ratelimit-tokens-remaining',
      'anthropic-ratelimit-tokens-reset',
    ])
    const reset = call.answerHeaders['anthropic-ratelimit-requests-reset'] ?? ''
    expect(reset).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    expect(Date.parse(reset) - Date.now()).toBeGreaterThan(58_000)
    expect(Date.parse(reset) - Date.now()).toBeLessThanOrEqual(61_000)
    expect(call.answerHeaders['anthropic-ratelimit-requests-remaining']).toBe('4')
  })
})

describe('A realtime session of a key with limits', () => {
  it('has a seat for its life', async () => {
    const calls = new LimitedCalls({ realtimeSessions: 1 })
    const one = await calls.enter(SESSION)
    const error = await refusalOf(calls.enter(SESSION))
    expect(error.message).toContain('The limit of 1 realtime sessions at once')
    expect(error.details.code).toBe('concurrency_limit_exceeded')
    await calls.enter()
    await one.end()
    await calls.enter(SESSION)
  })

  it('pays as it goes and not once more at its end', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000, audioSecondsPerMinute: 60 })
    const one = await calls.enter(SESSION)
    one.allowance.spend({ tokens: 300, audioSeconds: 4.5 })
    one.allowance.spend({ tokens: 200 })
    served(one)
    await one.end({ usage: tokens(300, 200) })
    expect(await calls.used()).toMatchObject({ tokens: 500, audioSeconds: 4.5 })
  })

  it('knows when nothing is left, and none begins then', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 100, realtimeSessions: 9 })
    const one = await calls.enter(SESSION)
    expect(one.allowance.spentLimit()).toBeUndefined()
    one.allowance.spend({ tokens: 130 })
    const error = await refusalOf(calls.enter(SESSION))
    expect(error.message).toContain('The limit of 100 tokens per minute of this API key (key:team-a) is used up.')
    expect(calls.refusals).toEqual(['tokensPerMinute'])
    expect(one.allowance.spentLimit()?.message).toContain('is used up. It is reset in 60 s.')
    expect(await calls.account.inUse('realtimeSessions')).toBe(1)
  })
})
