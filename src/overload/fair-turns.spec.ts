import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { FairShare, type Sharer } from '../core/fair-share.js'
import { EventLoopLoad } from './load-monitor.js'
import { fairPart, FairTurns } from './fair-turns.js'

describe('Callers that share', () => {
  const FLOOD = { keyId: 'flood' }
  const address = (host: string): Sharer => ({ keyId: 'caller', member: host })

  /**
   * Seconds of overload: turns of twenty milliseconds, in which each of the callers sends so many requests and each admitted one
   * takes half a millisecond, and the same for each 32 KiB. Returns how many of all requests of each were served, in the second
   * half of the time.
   */
  function served(
    callers: readonly (readonly [Sharer, perTurn: (turn: number) => number, bytes?: number])[],
    seconds = 10,
  ): number[] {
    let nowMs = 1_000
    const load = new EventLoopLoad(() => ({ loopDelayHighMs: 100, loopDelayLowMs: 10 }), nowMs)
    const counts = callers.map(() => ({ asked: 0, served: 0 }))
    const beginMs = nowMs
    for (let turn = 0; nowMs < beginMs + seconds * 1_000; turn++) {
      const startedAtMs = nowMs
      for (const [index, [sharer, perTurn, bytes = 0]] of callers.entries()) {
        for (let sent = 0; sent < perTurn(turn); sent++) {
          const isIn = load.admits(nowMs, sharer)
          nowMs += isIn ? 0.5 * (1 + bytes / 32_768) : 0.01
          if (isIn) load.countBytes(sharer, bytes)
          const count = counts[index]
          if (count === undefined || nowMs < beginMs + seconds * 500) continue
          count.asked++
          if (isIn) count.served++
        }
      }
      const workedMs = nowMs - startedAtMs
      nowMs = Math.max(nowMs, startedAtMs + 20) + load.intervalMs
      load.turned(nowMs, nowMs - startedAtMs - workedMs, workedMs)
    }
    return counts.map((count) => count.served / count.asked)
  }

  it('are all served that ask for a tenth of their part, whatever one with a key sends', () => {
    const rare = (turn: number): number => Number(turn % 10 === 0)
    const [flood = 1, ...others] = served([
      [FLOOD, () => 1_000],
      [{ keyId: 'a' }, rare],
      [{ keyId: 'b' }, rare],
    ])
    expect(others).toEqual([1, 1])
    expect(flood).toBeLessThan(0.2)
  })

  it('are served by their keys whatever a flood of addresses sends, and by their address beside one of them', () => {
    const rare = (turn: number): number => Number(turn % 10 === 0)
    expect(
      served([
        [address('6.6.6.6'), () => 1_000],
        [{ keyId: 'a' }, rare],
        [address('10.0.0.1'), rare],
      ]).slice(1),
    ).toEqual([1, 1])
    const invented = Array.from({ length: 500 }, (_, index) => [address(`6.6.${index}.1`), () => 2] as const)
    const [key = 0] = served([[{ keyId: 'a' }, rare], ...invented], 4)
    expect(key).toBe(1)
  })

  it('have the same where they ask for the same, and leave what they do not ask for to others', () => {
    const [one = 0, other = 0, modest = 0] = served([
      [FLOOD, () => 60],
      [{ keyId: 'a' }, () => 60],
      [{ keyId: 'b' }, () => 4],
    ])
    expect(modest).toBeGreaterThan(0.95)
    expect(one / other).toBeGreaterThan(0.7)
    expect(one / other).toBeLessThan(1.4)
  })

  it('of large bodies or answers count for the work they are, not for one request', () => {
    const [flood = 1, small = 0] = served([
      [FLOOD, () => 4, 1_000_000],
      [{ keyId: 'a' }, () => 10],
    ])
    expect(small).toBeGreaterThan(0.9)
    expect(flood).toBeLessThan(0.4)
  })

  it('go first for all that is admitted with keys, and without them for half of it', () => {
    const turns = new FairTurns()
    // Of one caller, so that nine in ten of all others are below their part.
    for (let count = 0; count < 1_000; count++) turns.count(FLOOD)
    turns.tick(100)
    const first = (sharer: (index: number) => Sharer): number =>
      Array.from({ length: 1_000 }, (_, index) => turns.takesTurn(sharer(index))).filter(Boolean).length
    const byKey = first((index) => ({ keyId: `key-${index}` }))
    const byAddress = first((index) => address(`10.0.${index >> 8}.${index & 255}`))
    // A hundred milliseconds of a sum of which half is forgotten in a second.
    expect(byKey).toBe(Math.floor(1_000 * 0.5 ** 0.1 * Math.LN2 * 0.1))
    expect(byAddress).toBe(Math.floor((1_000 * 0.5 ** 0.1 * Math.LN2 * 0.1) / 2))
  })

  it('without keys divide the part of a key between them, also one that is alone', () => {
    const turns = new FairTurns()
    for (let count = 0; count < 400; count++) turns.count(FLOOD)
    for (let count = 0; count < 100; count++) turns.count(address('10.0.0.1'))
    turns.tick(100)
    expect(turns.takesTurn(address('10.0.0.1'))).toBe(true)
  })

  it('count together once there are too many names, and then get no turn that one of them would not', () => {
    const turns = new FairTurns()
    for (let index = 0; index < 4_096; index++) turns.count({ keyId: `key-${index}` })
    for (let count = 0; count < 100; count++) turns.count({ keyId: 'one more' })
    turns.tick(100)
    expect(turns.takesTurn({ keyId: 'another one' })).toBe(false)
  })

  it('get no more than they ask for, and share the rest equally', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1_000), { minLength: 1, maxLength: 20 }), fc.nat(5_000), (wanted, total) => {
        const part = fairPart(wanted, total)
        const given = wanted.reduce((sum, amount) => sum + Math.min(amount, part), 0)
        const all = wanted.reduce((sum, amount) => sum + amount, 0)
        expect(given).toBeCloseTo(Math.min(total, all), 6)
      }),
    )
  })

  it('leave places free for those that hold few', () => {
    const places = new FairShare(() => ({ total: 80, callerShare: 0.5 }))
    const taken = (sharer: Sharer): number => {
      let count = 0
      while (places.take(sharer)) count++
      return count
    }
    expect(taken(FLOOD)).toBe(70)
    // Of the last ten, one caller has as many as are next to nothing.
    expect([taken({ keyId: 'a' }), taken({ keyId: 'b' })]).toEqual([5, 5])
    for (let ended = 0; ended < 35; ended++) places.count(FLOOD, -1)
    expect(places.take(FLOOD)).toBe(true)
    for (let ended = 0; ended < 10; ended++) places.count(FLOOD, -1)
    expect([taken({ keyId: 'a' }), places.held]).toEqual([34, 70])
  })
})
