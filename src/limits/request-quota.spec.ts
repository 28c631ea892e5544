import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import {
  EXPECTED_OUTPUT_TOKENS,
  type LimitedCall,
  LimitedCalls,
  READ,
  served,
  SESSION,
  tokens,
  WORK,
} from '../../test/support/limited-calls.js'
import { attemptRecord, failureOf } from '../../test/support/raw-upstream.js'
import { GatewayError } from '../core/errors.js'
import { estimateChat, estimateRecording, estimateSpeech } from './estimate-usage.js'
import { RequestReservation } from './reservations.js'

describe('The counts of a key', () => {
  /** One call: what it expects, what it uses, how it ends, and how many turns of others happen between its steps. */
  interface Plan {
    readonly expected: number
    readonly used: number
    readonly ending: 'answered' | 'failed' | 'left' | 'left early' | 'unreported'
    readonly pauses: readonly number[]
  }

  const PLAN: fc.Arbitrary<Plan> = fc.record({
    expected: fc.integer({ min: 1, max: 400 }),
    used: fc.integer({ min: 0, max: 300 }),
    ending: fc.constantFrom('answered', 'failed', 'left', 'left early', 'unreported'),
    pauses: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 3, maxLength: 3 }),
  })

  const LIMITS = { requestsPerMinute: 20, tokensPerMinute: 1000, concurrency: 4 }

  async function turns(count = 0): Promise<void> {
    for (let turn = 0; turn < count; turn++) await nextTurn()
  }

  /** Runs a call to its end; resolves with the tokens it has to pay. */
  async function run(calls: LimitedCalls, { expected, used, ending, pauses }: Plan): Promise<number> {
    const one = calls.make()
    try {
      await turns(pauses[0])
      const entering = one.enter(WORK)
      // Whatever is under way then: the first wait, or nothing any more.
      if (ending === 'left early') await one.end({ left: true })
      await entering
      await turns(pauses[1])
      await one.expect({ tokens: expected })
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      await one.end({ status: 429 })
      return 0
    }
    if (ending === 'left early') return 0
    served(one)
    expect((await calls.used()).underWay).toBeLessThanOrEqual(LIMITS.concurrency)
    await turns(pauses[2])
    if (ending === 'answered') await one.end({ usage: tokens(0, used) })
    else if (ending === 'left') await one.end({ left: true, usage: tokens(0, used) })
    else await one.end({ status: ending === 'failed' ? 502 : 200 })
    return { answered: used, left: used, failed: 0, unreported: expected }[ending]
  }

  it.each(['at once', 'awaited'] as const)(
    'are exact however its calls interleave, counted %s: what was used stays, the rest comes back',
    async (kind) => {
      await fc.assert(
        fc.asyncProperty(fc.array(PLAN, { minLength: 1, maxLength: 30 }), async (plans) => {
          const calls = new LimitedCalls(LIMITS, kind)
          const paid = await Promise.all(plans.map((plan) => run(calls, plan)))
          await nextTurn()
          const { underWay, tokens: used, requests } = await calls.used()
          expect({ underWay, used }).toEqual({ underWay: 0, used: paid.reduce((sum, count) => sum + count, 0) })
          expect(requests).toBeLessThanOrEqual(LIMITS.requestsPerMinute)
        }),
        { numRuns: 200 },
      )
    },
  )
})

describe('A call of a key with limits', () => {
  it('counts as a request of its minute when it asks for work, and not when it reads', async () => {
    const calls = new LimitedCalls({ requestsPerMinute: 2, concurrency: 9 })
    for (let count = 0; count < 3; count++) await calls.enter(READ)
    await calls.enter()
    await calls.enter()
    const error = await failureOf(calls.enter())
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
    const error = await failureOf(second.enter({ countsAsRequest: true, isSession: false }))
    expect(error.message).toContain('The limit of 1 requests at once of this API key (key:team-a) is reached.')
    expect(error.details).toMatchObject({ code: 'concurrency_limit_exceeded', retryAfterSeconds: 1 })
    expect(second.headers()).toMatchObject({
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
      await failureOf(two.expect({ tokens: 70, audioSeconds: 3 }))
      expect(two.headers()).toMatchObject({
        'x-ratelimit-remaining-requests': '7',
        'x-ratelimit-remaining-tokens': '100',
        'x-ratelimit-remaining-audio-seconds': '2',
      })
      const full = new LimitedCalls({ requestsPerMinute: 9, concurrency: 1, realtimeSessions: 1 }, kind)
      await full.enter()
      const refused = full.make()
      await failureOf(refused.enter(WORK))
      expect(refused.headers()['x-ratelimit-remaining-requests']).toBe('8')
      const seats = new LimitedCalls({ requestsPerMinute: 9, realtimeSessions: 1 }, kind)
      await seats.enter(SESSION)
      const noSeat = seats.make()
      await failureOf(noSeat.enter(SESSION))
      expect(noSeat.headers()['x-ratelimit-remaining-requests']).toBe('8')
    },
  )

  it('holds nothing once it is refused, however long its caller goes on sending', async () => {
    const calls = new LimitedCalls({ requestsPerMinute: 1, concurrency: 2 })
    const first = await calls.enter()
    await failureOf(calls.enter())
    expect((await calls.used()).underWay).toBe(1)
    await first.end()
    expect((await calls.used()).underWay).toBe(0)
  })

  it('takes nothing when its caller has left before it was counted in', async () => {
    const calls = new LimitedCalls({ concurrency: 1 }, 'awaited')
    const one = calls.make()
    const entering = failureOf(one.enter(READ))
    await one.end({ left: true })
    expect((await entering).kind).toBe('caller_left')
    expect((await calls.used()).underWay).toBe(0)
  })

  it('reserves nothing once its caller has left', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000 }, 'awaited')
    const one = await calls.enter()
    const expecting = failureOf(one.expect({ tokens: 800 }))
    await one.end({ left: true })
    expect((await expecting).kind).toBe('caller_left')
    expect((await calls.used()).tokens).toBe(0)
  })

  it('reserves what it expects and is settled by what was used', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000, audioSecondsPerMinute: 60 })
    const one = await calls.enter()
    await one.expect({ tokens: 800, audioSeconds: 1.5 })
    expect(await calls.used()).toMatchObject({ tokens: 800, audioSeconds: 1.5 })
    expect(one.headers()).toMatchObject({
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
    const error = await failureOf((await calls.enter()).expect({ tokens: 1 }))
    expect(error.message).toContain('The limit of 1000 tokens per minute of this API key (key:team-a) is used up.')
  })

  it('is refused with what is left and what it asks for when it does not fit, and keeps nothing', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 100, audioSecondsPerMinute: 10, concurrency: 5 })
    await (await calls.enter()).expect({ audioSeconds: 8 })
    const two = await calls.enter()
    const error = await failureOf(two.expect({ tokens: 70, audioSeconds: 3 }))
    expect(error.message).toBe(
      'The limit of 10 seconds of audio per minute of this API key (key:team-a) has 2 left, and this request expects ' +
        'to use 3. It is reset in 60 s.',
    )
    expect(two.headers()['x-gateway-limit']).toBe('audioSecondsPerMinute; scope=key:team-a; reset=60')
    await two.end({ status: 429 })
    expect(await calls.used()).toMatchObject({ tokens: 0, audioSeconds: 8, underWay: 1 })
  })

  it('is told not to try again when it can never fit', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 100 })
    const one = await calls.enter()
    const error = await failureOf(one.expect({ tokens: 101 }))
    expect(error.message).toBe(
      'The limit of 100 tokens per minute of this API key (key:team-a) is less than the 101 that this request expects ' +
        'to use: it can never be served. Ask for less at once.',
    )
    expect(error.details).toEqual({ code: 'request_exceeds_limit', retryable: false })
    expect(one.headers()['x-gateway-limit']).toBe('tokensPerMinute; scope=key:team-a')
    expect((await calls.used()).tokens).toBe(0)
  })

  it('waits for a whole limit at most by a guess, and is refused for ever by what is known alone', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 100, audioSecondsPerMinute: 10 })
    const one = await calls.enter()
    await one.expect({ tokens: 4000, audioSeconds: 900, isGuess: true })
    expect(await calls.used()).toMatchObject({ tokens: 100, audioSeconds: 10 })
    const waiting = await failureOf((await calls.enter()).expect({ tokens: 1, audioSeconds: 900, isGuess: true }))
    expect(waiting.details).toEqual({ retryAfterSeconds: 60 })
    const never = await failureOf((await calls.enter()).expect({ audioSeconds: 10.5 }))
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
    const headers = (await calls.enter(undefined, '/v1/messages')).headers()
    expect(Object.keys(headers).filter((name) => name.includes('ratelimit'))).toEqual([
      'anthropic-ratelimit-requests-limit',
      'anthropic-ratelimit-requests-remaining',
      'anthropic-ratelimit-requests-reset',
      'anthropic-ratelimit-tokens-limit',
      'anthropic-ratelimit-tokens-remaining',
      'anthropic-ratelimit-tokens-reset',
    ])
    const reset = headers['anthropic-ratelimit-requests-reset'] ?? ''
    expect(reset).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    expect(Date.parse(reset) - Date.now()).toBeGreaterThan(58_000)
    expect(Date.parse(reset) - Date.now()).toBeLessThanOrEqual(61_000)
    expect(headers['anthropic-ratelimit-requests-remaining']).toBe('4')
  })
})

describe('A realtime session of a key with limits', () => {
  it('has a seat for its life', async () => {
    const calls = new LimitedCalls({ realtimeSessions: 1 })
    const one = await calls.enter(SESSION)
    const error = await failureOf(calls.enter(SESSION))
    expect(error.message).toContain('The limit of 1 realtime sessions at once')
    expect(error.details.code).toBe('concurrency_limit_exceeded')
    await calls.enter()
    await one.end()
    await calls.enter(SESSION)
  })

  it('pays as it goes and not once more at its end', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000, audioSecondsPerMinute: 60 })
    const one = await calls.enter(SESSION)
    one.quota.consume({ tokens: 300, audioSeconds: 4.5 })
    one.quota.consume({ tokens: 200 })
    served(one)
    await one.end({ usage: tokens(300, 200) })
    expect(await calls.used()).toMatchObject({ tokens: 500, audioSeconds: 4.5 })
  })

  it('knows when nothing is left, and none begins then', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 100, realtimeSessions: 9 })
    const one = await calls.enter(SESSION)
    expect(one.quota.exhaustedLimit()).toBeUndefined()
    one.quota.consume({ tokens: 130 })
    const error = await failureOf(calls.enter(SESSION))
    expect(error.message).toContain('The limit of 100 tokens per minute of this API key (key:team-a) is used up.')
    expect(calls.refusals).toEqual(['tokensPerMinute'])
    expect(one.quota.exhaustedLimit()?.message).toContain('is used up. It is reset in 60 s.')
    expect(await calls.account.inUse('realtimeSessions')).toBe(1)
  })
})

describe('A call of a key with limits, when it is over,', () => {
  it.each([
    ['failed', { status: 502 }, 0],
    ['failed although something was reported', { status: 500, usage: tokens(5, 5) }, 0],
  ])('gets everything back when it %s', async (_case, ending, bytesOut) => {
    const calls = new LimitedCalls({ tokensPerMinute: 100 })
    const one = await calls.enter()
    await one.expect({ tokens: 60 })
    served(one, bytesOut)
    await one.end(ending)
    expect((await calls.used()).tokens).toBe(0)
  })

  it('pays what was used so far when its caller left, and its whole expectation when its usage is unknown', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000 })
    const told = await calls.enter()
    await told.expect({ tokens: 500 })
    served(told)
    await told.end({ left: true, usage: tokens(20, 7) })
    expect((await calls.used()).tokens).toBe(27)
    const untold = await calls.enter()
    await untold.expect({ tokens: 500 })
    served(untold)
    await untold.end({ left: true })
    expect((await calls.used()).tokens).toBe(527)
  })

  it('keeps what it reserved when its caller leaves before the answer: the upstream had begun to work', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000, audioSecondsPerMinute: 100 })
    const one = await calls.enter()
    await one.expect({ tokens: 500, audioSeconds: 8 })
    served(one, 0)
    await one.end({ left: true })
    expect(await calls.used()).toMatchObject({ tokens: 500, audioSeconds: 8 })
    // What is known of it counts; the rest stays.
    const other = await calls.enter()
    await other.expect({ tokens: 400, audioSeconds: 8 })
    served(other, 0)
    await other.end({ left: true, usage: tokens(10, 5) })
    expect(await calls.used()).toMatchObject({ tokens: 515, audioSeconds: 16 })
  })

  it('keeps what it reserved when its caller leaves and only the prompt is known', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000 })
    const one = await calls.enter()
    await one.expect({ tokens: 500 })
    served(one)
    await one.end({ left: true, usage: { units: { prompt_tokens: 20 }, estimated: true } })
    expect((await calls.used()).tokens).toBe(500)
  })

  it.each([
    ['no upstream was asked', () => undefined],
    ['its request had not been sent', (one: LimitedCall) => one.call.log.attempts.push(attemptRecord('p1-main', 1))],
    [
      'the upstream had failed already',
      (one: LimitedCall) => {
        const failed = { endedAtMs: 2, failure: 'upstream_failed', upstreamMs: 5 } as const
        one.call.log.attempts.push(attemptRecord('p1-main', 1, failed))
      },
    ],
  ])('gets everything back when its caller leaves and %s', async (_case, prepare) => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000 })
    const one = await calls.enter()
    await one.expect({ tokens: 500 })
    prepare(one)
    await one.end({ left: true })
    expect((await calls.used()).tokens).toBe(0)
  })

  it('has asked an upstream also when the client disconnect ended the attempt first', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000 })
    const one = await calls.enter()
    await one.expect({ tokens: 500 })
    one.call.log.attempts.push(attemptRecord('a', 1, { failure: 'upstream_failed', upstreamMs: 5 }))
    one.call.log.attempts.push(attemptRecord('b', 2, { failure: 'caller_left' }))
    await one.end({ left: true })
    expect((await calls.used()).tokens).toBe(500)
  })

  it('gets everything back when the gateway cut an answer of which not a byte had left', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000 })
    const one = await calls.enter()
    await one.expect({ tokens: 500 })
    served(one, 0)
    one.call.disconnect.abort()
    await one.end()
    expect((await calls.used()).tokens).toBe(0)
  })

  it('pays the seconds that were spoken, where the audio tells how many', async () => {
    const calls = new LimitedCalls({ audioSecondsPerMinute: 60 })
    const one = await calls.enter(undefined, '/v1/audio/speech')
    await one.expect({ audioSeconds: 20 })
    served(one)
    await one.end({ usage: { units: { input_characters: 300, spoken_seconds: 12.5 }, estimated: true } })
    expect((await calls.used()).audioSeconds).toBe(12.5)
  })

  it('pays the seconds that were counted where the upstream reports characters alone', async () => {
    const calls = new LimitedCalls({ audioSecondsPerMinute: 60 })
    const one = await calls.enter(undefined, '/v1/audio/speech')
    await one.expect({ audioSeconds: 20 })
    served(one)
    const units = { input_characters: 300, spoken_seconds: 31 }
    one.call.log.usageReader = { reportedUsage: undefined, estimate: () => ({ units, estimated: true }) }
    await one.end({ usage: { units: { usage_characters: 300 }, estimated: false } })
    expect((await calls.used()).audioSeconds).toBe(31)
  })

  it('keeps the seconds it expected where neither tells', async () => {
    const calls = new LimitedCalls({ audioSecondsPerMinute: 60 })
    const one = await calls.enter(undefined, '/v1/audio/speech')
    await one.expect({ audioSeconds: 20 })
    served(one)
    one.call.log.usageReader = {
      reportedUsage: undefined,
      estimate: () => ({ units: { input_characters: 300 }, estimated: true }),
    }
    await one.end({ usage: { units: { usage_characters: 300 }, estimated: false } })
    expect((await calls.used()).audioSeconds).toBe(20)
  })
})

describe('An answer without a maximum', () => {
  it('is reserved as what answers are expected to be, each of those asked for', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000 })
    const one = await calls.enter()
    await one.expect({ tokens: 10, unboundedResponses: 3 })
    expect((await calls.used()).tokens).toBe(10 + 3 * EXPECTED_OUTPUT_TOKENS)
    served(one)
    await one.end({ usage: tokens(9, 4) })
    expect((await calls.used()).tokens).toBe(13)
  })

  it('lets no more begin at once than have room for that', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000 })
    const all = await Promise.allSettled(
      Array.from({ length: 200 }, async () => (await calls.enter()).expect({ tokens: 5, unboundedResponses: 1 })),
    )
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(Math.floor(1000 / 55))
  })

  it('never makes a request impossible: what is only guessed is at most the whole limit', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 40 })
    const one = await calls.enter()
    await one.expect({ tokens: 10, unboundedResponses: 1 })
    expect((await calls.used()).tokens).toBe(40)
    const reservation = new RequestReservation(calls.account)
    reservation.plan({ tokens: 10, unboundedResponses: 1 }, EXPECTED_OUTPUT_TOKENS)
    expect(reservation.requested('tokensPerMinute')).toBe(40)
    await expect((await calls.enter()).expect({ tokens: 41, unboundedResponses: 1 })).rejects.toMatchObject({
      details: { code: 'request_exceeds_limit' },
    })
  })
})

describe('work reservations', () => {
  const KINDS = ['at once', 'awaited'] as const
  const LIMITS = { tokensPerMinute: 100, audioSecondsPerMinute: 10 }

  afterEach(() => {
    jest.restoreAllMocks()
  })

  describe.each(KINDS)('The work of a session, counted %s,', (kind) => {
    it('is reserved and settled piece by piece, and not once more when the session is over', async () => {
      const calls = new LimitedCalls(LIMITS, kind)
      const session = await calls.enter(SESSION)
      const one = await session.quota.reserve({ tokens: 30, audioSeconds: 2 })
      const other = await session.quota.reserve({ tokens: 50, audioSeconds: 3 })
      expect([one.refusal, other.refusal]).toEqual([undefined, undefined])
      expect(await calls.used()).toMatchObject({ tokens: 80, audioSeconds: 5 })
      one.settle({ tokens: 10, audioSeconds: 1 })
      await nextTurn()
      expect(await calls.used()).toMatchObject({ tokens: 60, audioSeconds: 4 })
      other.settle({ tokens: 55, audioSeconds: 3 })
      await nextTurn()
      served(session)
      await session.end({ usage: tokens(60, 5) })
      expect(await calls.used()).toMatchObject({ tokens: 65, audioSeconds: 4 })
    })

    it('fits exactly, and one more does not: that holds nothing, and is paid if it is done all the same', async () => {
      const calls = new LimitedCalls(LIMITS, kind)
      const session = await calls.enter(SESSION)
      await session.quota.reserve({ tokens: 99 })
      const fits = await session.quota.reserve({ tokens: 1, audioSeconds: 1 })
      const refused = await session.quota.reserve({ tokens: 1, audioSeconds: 4 })
      expect(fits.refusal).toBeUndefined()
      expect(refused.refusal?.limit).toBe('tokensPerMinute')
      expect(refused.refusal?.message).toMatch(
        /^The limit of 100 tokens per minute of this API key \(key:team-a\) is used up\./,
      )
      await nextTurn()
      expect(await calls.used()).toMatchObject({ tokens: 100, audioSeconds: 1 })
      refused.settle({ tokens: 7, audioSeconds: 2 })
      await nextTurn()
      expect(await calls.used()).toMatchObject({ tokens: 107, audioSeconds: 3 })
    })

    it('is told what is left where something is', async () => {
      const calls = new LimitedCalls(LIMITS, kind)
      const session = await calls.enter(SESSION)
      await session.quota.reserve({ audioSeconds: 8 })
      const { refusal } = await session.quota.reserve({ tokens: 20, audioSeconds: 2.5 })
      expect(refusal?.limit).toBe('audioSecondsPerMinute')
      expect(refusal?.message).toContain('10 seconds of audio per minute of this API key (key:team-a) has 2 left')
      expect(refusal?.message).toContain('expects to use 2.5')
    })

    it('is never more than the whole limit, as it is a guess', async () => {
      const calls = new LimitedCalls(LIMITS, kind)
      const session = await calls.enter(SESSION)
      const all = await session.quota.reserve({ tokens: 5000, audioSeconds: 50, unboundedResponses: 1 })
      expect(all.refusal).toBeUndefined()
      expect(await calls.used()).toMatchObject({ tokens: 100, audioSeconds: 10 })
    })

    it('holds nothing once the session is over, whatever was under way', async () => {
      const calls = new LimitedCalls(LIMITS, kind)
      const session = await calls.enter(SESSION)
      const held = await session.quota.reserve({ tokens: 30, audioSeconds: 2 })
      const coming = session.quota.reserve({ tokens: 40 })
      await session.end({ left: true })
      await coming
      await nextTurn()
      expect(await calls.used()).toMatchObject({ tokens: 0, audioSeconds: 0 })
      held.settle({ tokens: 0, audioSeconds: 0 })
      await nextTurn()
      expect(await calls.used()).toMatchObject({ tokens: 0, audioSeconds: 0 })
    })

    it('is not taken for used up by its own session, and is by others', async () => {
      const calls = new LimitedCalls(LIMITS, kind)
      const [one, other] = [await calls.enter(SESSION), await calls.enter(SESSION)]
      const held = await one.quota.reserve({ tokens: 100 })
      expect(one.quota.exhaustedLimit()).toBeUndefined()
      expect(other.quota.exhaustedLimit()?.message).toContain('is used up')
      held.settle({ tokens: 100 })
      await nextTurn()
      expect(one.quota.exhaustedLimit()?.message).toContain('is used up')
    })
  })

  describe('What another process has given back', () => {
    it('is noticed within a second by the session that took the limit for used up', async () => {
      const calls = new LimitedCalls(LIMITS)
      const session = await calls.enter(SESSION)
      const now = jest.spyOn(performance, 'now')
      const startMs = Math.ceil(performance.now())
      const peek = jest.spyOn(calls.ledger, 'peek')
      const elsewhere = await calls.make().quota.reserve({ tokens: 100 })
      for (const [ms, looks] of [
        [0, 1],
        [999, 1],
        [1000, 2],
      ] as const) {
        now.mockReturnValue(startMs + ms)
        expect(session.quota.exhaustedLimit()).toBeDefined()
        expect(peek).toHaveBeenCalledTimes(looks)
      }
      elsewhere.settle({ tokens: 0 })
      expect(session.quota.exhaustedLimit()).toBeUndefined()
    })
  })
})

const chat = (fields: object): number => {
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hello' }], ...fields }
  return estimateChat(Buffer.byteLength(JSON.stringify(body)), body).tokens ?? NaN
}

const promptTokens = chat({})

describe('What a chat request is expected to use', () => {
  it('is a token for four bytes of its body, when it names no maximum', () => {
    expect(promptTokens).toBe(Math.ceil('{"model":"m","messages":[{"role":"user","content":"Hello"}]}'.length / 4))
  })

  it.each([
    [{ max_tokens: 1000 }, 1000],
    [{ max_completion_tokens: 500 }, 500],
    [{ max_tokens: 1000, max_completion_tokens: 500 }, 500],
    [{ max_tokens: 1000, n: 3 }, 3000],
    [{ max_tokens: 1e15 }, 1_000_000],
    [{ max_tokens: 10, n: 1e15 }, 1280],
    [{ max_tokens: null, n: null }, 0],
    [{ max_tokens: 'many', n: -4 }, 0],
    [{ max_tokens: -5 }, 0],
  ])('adds what it allows each choice: %p', (fields, output) => {
    const text = JSON.stringify(fields).length / 4
    expect(chat(fields) - output - promptTokens).toBeGreaterThanOrEqual(0)
    expect(chat(fields) - output - promptTokens).toBeLessThanOrEqual(text + 1)
  })

  it.each([
    [{}, 1],
    [{ n: 3 }, 3],
    [{ max_tokens: 5 }, 0],
    [{ max_completion_tokens: 5, n: 3 }, 0],
    [{ max_tokens: null, n: null }, 1],
    [{ max_tokens: 0, n: 2 }, 2],
    [{ n: 1e15 }, 128],
  ])('has so many answers of which it does not say how long they may be: %p', (fields, answers) => {
    const body = { messages: [{ role: 'user', content: 'Hello' }], ...fields }
    expect(estimateChat(100, body).unboundedResponses).toBe(answers)
  })

  const LONG = 'four '.repeat(40_000)
  const LETTERS = 'a'.repeat(200_000)
  it.each<[string, object]>([
    ['a text', { type: 'text', text: LONG }],
    ['a text that looks like a data URL', { type: 'text', text: `data:image/png;base64,${LETTERS}` }],
    ['a text that looks like Base64', { type: 'text', text: LETTERS }],
    ['a URL whose data is no Base64', { type: 'image_url', image_url: { url: `data:text/plain,${LETTERS}` } }],
    ['a URL that only begins like one', { type: 'image_url', image_url: { url: `data:,${LETTERS}` } }],
    ['a document of plain text', { type: 'document', source: { type: 'text', data: LETTERS } }],
    ['data that is no Base64', { type: 'document', source: { type: 'base64', data: LONG } }],
  ])('counts %s by its length', (_name, part) => {
    expect(chat({ messages: [{ role: 'user', content: [part] }] })).toBeGreaterThan(49_000)
    expect(chat({ system: [part] })).toBeGreaterThan(49_000)
  })

  it.each<[string, object]>([
    ['a picture', { type: 'image_url', image_url: { url: `data:image/png;base64,${LETTERS}` } }],
    ['one with a parameter', { type: 'image_url', image_url: { url: `data:image/svg+xml;q=1;base64,${LETTERS}` } }],
    ['a sound', { type: 'input_audio', input_audio: { data: LETTERS, format: 'wav' } }],
    ['a file', { type: 'file', file: { file_data: `data:application/pdf;base64,${LETTERS}` } }],
  ])('takes %s for a thousand tokens', (_name, part) => {
    const expected = chat({ messages: [{ role: 'user', content: [part] }] })
    expect(expected).toBeGreaterThan(1000)
    expect(expected).toBeLessThan(1200)
  })

  it('takes a picture for a thousand tokens, in either family, and long text for text', () => {
    const base64 = Buffer.alloc(300_000, 7).toString('base64')
    const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } }
    const source = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64 } }
    for (const part of [picture, source]) {
      const expected = chat({ messages: [{ role: 'user', content: [part, part] }] })
      expect(expected).toBeGreaterThan(2000)
      expect(expected).toBeLessThan(2200)
    }
    const words = 'four '.repeat(40_000)
    expect(chat({ messages: [{ role: 'user', content: words }] })).toBeGreaterThan(49_000)
  })
})

describe('What speech is expected to take', () => {
  it.each([
    ['a'.repeat(150), undefined, 10],
    ['a'.repeat(150), 2, 5],
    ['a'.repeat(150), null, 10],
    ['你'.repeat(50), undefined, 10],
    ['你'.repeat(25) + 'a'.repeat(75), undefined, 10],
  ])('%s at speed %p', (input, speed, seconds) => {
    expect(estimateSpeech(input, speed).audioSeconds).toBeCloseTo(seconds)
  })
})

describe('What a recording is expected to take', () => {
  it('is its length, and a thousand tokens a minute where the model counts tokens', () => {
    expect(estimateRecording(1, 90, false)).toEqual({ audioSeconds: 90 })
    expect(estimateRecording(1, 90, true)).toEqual({ audioSeconds: 90, tokens: 1500 })
  })

  it('is guessed from its size when the file does not tell', () => {
    expect(estimateRecording(160_000, undefined, false)).toEqual({ audioSeconds: 10, isGuess: true })
    expect(estimateRecording(960_000, undefined, true)).toEqual({ audioSeconds: 60, tokens: 1000, isGuess: true })
  })
})
