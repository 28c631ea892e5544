import { describe, expect, it } from '@jest/globals'
import {
  EXPECTED_OUTPUT_TOKENS,
  type LimitedCall,
  LimitedCalls,
  served,
  tokens,
} from '../../test/support/limited-calls.js'
import { CallReservation } from './reservations.js'

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

  it('pays what was used so far when its caller left, and its whole expectation when nobody can tell', async () => {
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
    ['nobody was asked', () => undefined],
    [
      'its request had not been sent',
      (one: LimitedCall) => one.call.log.tried.push({ channelId: 'p1-main', startedAtMs: 1 }),
    ],
    [
      'the upstream had failed already',
      (one: LimitedCall) => {
        one.call.log.upstreamMs = 5
        one.call.log.tried.push({ channelId: 'p1-main', startedAtMs: 1, endedAtMs: 2, failure: 'upstream_failed' })
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

  it('has asked an upstream also when the departure ended the attempt first', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000 })
    const one = await calls.enter()
    await one.expect({ tokens: 500 })
    one.call.log.upstreamMs = 5
    one.call.log.tried.push({ channelId: 'a', startedAtMs: 1, failure: 'upstream_failed' })
    one.call.log.tried.push({ channelId: 'b', startedAtMs: 2, failure: 'caller_left' })
    await one.end({ left: true })
    expect((await calls.used()).tokens).toBe(500)
  })

  it('gets everything back when the gateway cut an answer of which not a byte had left', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000 })
    const one = await calls.enter()
    await one.expect({ tokens: 500 })
    served(one, 0)
    one.call.departure.announce()
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
    one.call.log.meter = { usageSoFar: () => ({ units, estimated: true }) }
    await one.end({ usage: { units: { usage_characters: 300 }, estimated: false } })
    expect((await calls.used()).audioSeconds).toBe(31)
  })

  it('keeps the seconds it expected where neither tells', async () => {
    const calls = new LimitedCalls({ audioSecondsPerMinute: 60 })
    const one = await calls.enter(undefined, '/v1/audio/speech')
    await one.expect({ audioSeconds: 20 })
    served(one)
    one.call.log.meter = { usageSoFar: () => ({ units: { input_characters: 300 }, estimated: true }) }
    await one.end({ usage: { units: { usage_characters: 300 }, estimated: false } })
    expect((await calls.used()).audioSeconds).toBe(20)
  })
})

describe('An answer without a maximum', () => {
  it('is reserved as what answers are expected to be, each of those asked for', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000 })
    const one = await calls.enter()
    await one.expect({ tokens: 10, unboundedAnswers: 3 })
    expect((await calls.used()).tokens).toBe(10 + 3 * EXPECTED_OUTPUT_TOKENS)
    served(one)
    await one.end({ usage: tokens(9, 4) })
    expect((await calls.used()).tokens).toBe(13)
  })

  it('lets no more begin at once than have room for that', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 1000 })
    const all = await Promise.allSettled(
      Array.from({ length: 200 }, async () => (await calls.enter()).expect({ tokens: 5, unboundedAnswers: 1 })),
    )
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(Math.floor(1000 / 55))
  })

  it('never makes a request impossible: what is only guessed is at most the whole limit', async () => {
    const calls = new LimitedCalls({ tokensPerMinute: 40 })
    const one = await calls.enter()
    await one.expect({ tokens: 10, unboundedAnswers: 1 })
    expect((await calls.used()).tokens).toBe(40)
    const reservation = new CallReservation(calls.account)
    reservation.plan({ tokens: 10, unboundedAnswers: 1 }, EXPECTED_OUTPUT_TOKENS)
    expect(reservation.asked('tokensPerMinute')).toBe(40)
    await expect((await calls.enter()).expect({ tokens: 41, unboundedAnswers: 1 })).rejects.toMatchObject({
      details: { code: 'request_exceeds_limit' },
    })
  })
})
