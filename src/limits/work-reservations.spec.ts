import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { LimitedCalls, served, SESSION, tokens } from '../../test/support/limited-calls.js'

const KINDS = ['at once', 'awaited'] as const
const LIMITS = { tokensPerMinute: 100, audioSecondsPerMinute: 10 }

afterEach(() => {
  jest.restoreAllMocks()
})

describe.each(KINDS)('The work of a session, counted %s,', (kind) => {
  it('is reserved and settled piece by piece, and not once more when the session is over', async () => {
    const calls = new LimitedCalls(LIMITS, kind)
    const session = await calls.enter(SESSION)
    const one = await session.allowance.reserve({ tokens: 30, audioSeconds: 2 })
    const other = await session.allowance.reserve({ tokens: 50, audioSeconds: 3 })
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
    await session.allowance.reserve({ tokens: 99 })
    const fits = await session.allowance.reserve({ tokens: 1, audioSeconds: 1 })
    const refused = await session.allowance.reserve({ tokens: 1, audioSeconds: 4 })
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
    await session.allowance.reserve({ audioSeconds: 8 })
    const { refusal } = await session.allowance.reserve({ tokens: 20, audioSeconds: 2.5 })
    expect(refusal?.limit).toBe('audioSecondsPerMinute')
    expect(refusal?.message).toContain('10 seconds of audio per minute of this API key (key:team-a) has 2 left')
    expect(refusal?.message).toContain('expects to use 2.5')
  })

  it('is never more than the whole limit, as it is a guess', async () => {
    const calls = new LimitedCalls(LIMITS, kind)
    const session = await calls.enter(SESSION)
    const all = await session.allowance.reserve({ tokens: 5000, audioSeconds: 50, unboundedAnswers: 1 })
    expect(all.refusal).toBeUndefined()
    expect(await calls.used()).toMatchObject({ tokens: 100, audioSeconds: 10 })
  })

  it('holds nothing once the session is over, whatever was under way', async () => {
    const calls = new LimitedCalls(LIMITS, kind)
    const session = await calls.enter(SESSION)
    const held = await session.allowance.reserve({ tokens: 30, audioSeconds: 2 })
    const coming = session.allowance.reserve({ tokens: 40 })
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
    const held = await one.allowance.reserve({ tokens: 100 })
    expect(one.allowance.spentLimit()).toBeUndefined()
    expect(other.allowance.spentLimit()?.message).toContain('is used up')
    held.settle({ tokens: 100 })
    await nextTurn()
    expect(one.allowance.spentLimit()?.message).toContain('is used up')
  })
})

describe('What another process has given back', () => {
  it('is noticed within a second by whoever took the limit for used up', async () => {
    const calls = new LimitedCalls(LIMITS)
    const session = await calls.enter(SESSION)
    const now = jest.spyOn(performance, 'now')
    const startMs = Math.ceil(performance.now())
    const peek = jest.spyOn(calls.ledger, 'peek')
    const elsewhere = await calls.make().allowance.reserve({ tokens: 100 })
    for (const [ms, looks] of [
      [0, 1],
      [999, 1],
      [1000, 2],
    ] as const) {
      now.mockReturnValue(startMs + ms)
      expect(session.allowance.spentLimit()).toBeDefined()
      expect(peek).toHaveBeenCalledTimes(looks)
    }
    elsewhere.settle({ tokens: 0 })
    expect(session.allowance.spentLimit()).toBeUndefined()
  })
})
