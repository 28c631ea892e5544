import { beforeEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { callOf, strangerOf } from '../../test/support/byte-streams.js'
import { FairShare } from '../core/fair-share.js'
import type { ArrivingBody } from '../core/quota.js'
import { type MemoryHolder, MemoryBudget } from './memory-budget.js'

let nowMs = 0
beforeEach(() => {
  nowMs = 0
})

const budget = (bytesInFlight = 100, callerShare = 0.5): MemoryBudget =>
  new MemoryBudget(
    () => ({ bytesInFlight, callerShare }),
    () => nowMs,
  )

describe('The bytes in flight', () => {
  it('are granted up to the maximum and not a byte beyond', () => {
    const inFlight = budget()
    expect(inFlight.take(callOf('a'), 50)).toBe(true)
    expect(inFlight.take(callOf('b'), 51)).toBe(false)
    expect(inFlight.take(callOf('b'), 50)).toBe(true)
    expect([inFlight.bytes, inFlight.refused]).toEqual([100, 1])
  })

  it('are granted to a call that is alone, whatever it asks for', () => {
    const inFlight = budget()
    const alone = callOf('a')
    expect(inFlight.take(alone, 500)).toBe(true)
    expect(inFlight.take(callOf('b'), 1)).toBe(false)
    inFlight.close(alone)
    expect(inFlight.take(callOf('b'), 1)).toBe(true)
  })

  it('are granted to a body that is alone, however long it becomes while it comes', () => {
    const inFlight = budget()
    const body = inFlight.reserve(callOf('a'), undefined, 900_000)
    expect([body?.arrived(262_144), body?.arrived(600_000)]).toEqual([true, true])
    expect(inFlight.take(callOf('a'), 1)).toBe(false)
  })

  it('are given back once, when the call is over at the latest', () => {
    const inFlight = budget()
    const call = callOf('a')
    inFlight.take(call, 50)
    inFlight.giveBack(call, 20)
    expect([inFlight.bytes, call.heldBytes]).toEqual([30, 30])
    inFlight.giveBack(call, 1000)
    inFlight.take(call, 10)
    inFlight.close(call)
    inFlight.close(call)
    inFlight.giveBack(call, 10)
    expect(inFlight.bytes).toBe(0)
  })

  it('are not taken any more for a call that is over', () => {
    const inFlight = budget()
    const call = callOf('a')
    inFlight.close(call)
    inFlight.add(call, 50)
    inFlight.take(call, 50)
    expect(inFlight.bytes).toBe(0)
  })

  it('are taken beyond the maximum by answers, which cannot be refused, and then nothing else is', () => {
    const inFlight = budget()
    inFlight.add(callOf('a'), 150)
    expect(inFlight.bytes).toBe(150)
    expect(inFlight.take(callOf('b'), 1)).toBe(false)
  })
})

describe('A body on its way', () => {
  const KIB = 1024
  const MIB = 1024 * KIB

  it('counts with what has arrived and a step ahead, whatever it announces', () => {
    const inFlight = budget(300 * MIB)
    const announced = Array.from({ length: 5 }, () => inFlight.reserve(callOf('a'), 60 * MIB, 60 * MIB))
    for (const body of announced) expect(body?.arrived(1)).toBe(true)
    expect(inFlight.bytes).toBe(5 * 64 * KIB)
    expect(announced[0]?.arrived(100 * KIB)).toBe(true)
    expect(inFlight.bytes).toBe(4 * 64 * KIB + 164 * KIB + 1)
    expect(inFlight.reserve(callOf('b'), 60 * MIB, 60 * MIB)?.arrived(60 * MIB)).toBe(true)
  })

  it('is never counted with more than it announces, or may have', () => {
    const inFlight = budget(2 * MIB)
    const [short, long] = [inFlight.reserve(callOf('a'), 70, 90), inFlight.reserve(callOf('b'), undefined, 600_000)]
    expect(inFlight.bytes).toBe(70 + 64 * KIB)
    expect([short?.arrived(30), long?.arrived(1_000_000)]).toEqual([true, true])
    expect(inFlight.bytes).toBe(600_070)
    short?.end()
    expect(inFlight.bytes).toBe(600_030)
  })

  it('finds out that there is no room left while it comes', () => {
    const inFlight = budget(1_000_000)
    inFlight.add(callOf('b'), 600_000)
    const body = inFlight.reserve(callOf('a'), undefined, 900_000)
    expect(body?.arrived(275_000)).toBe(true)
    expect(inFlight.bytes).toBe(875_000)
    expect(body?.arrived(1)).toBe(false)
  })

  it('finds room of its own where it is small', () => {
    const inFlight = budget(MIB)
    inFlight.add(callOf('b'), 900 * KIB)
    expect(inFlight.reserve(callOf('a'), MIB, MIB)).toBeUndefined()
    expect(inFlight.reserve(callOf('a'), 64 * KIB, MIB)?.arrived(64 * KIB)).toBe(true)
  })

  it('that makes no progress loses its place to one that needs it', () => {
    const inFlight = budget(1_000_000, 0.9)
    const evicted: string[] = []
    const body = (name: string): ArrivingBody | undefined => {
      const made = inFlight.reserve(callOf(name), 400_000, 400_000)
      if (made !== undefined) made.onEvicted = () => evicted.push(name)
      return made
    }
    const [stalled, going] = [body('a'), body('b')]
    for (const each of [stalled, going]) expect(each?.arrived(400_000)).toBe(true)
    nowMs = 5_000
    going?.arrived(16_384)
    nowMs = 5_001
    expect(evicted).toEqual([])
    expect(body('c')?.arrived(400_000)).toBe(true)
    expect(evicted).toEqual(['a'])
    expect(inFlight.bytes).toBe(800_000)
  })

  it('that has stalled itself is refused more where there is no room, and keeps its own place', () => {
    const inFlight = budget(1_000_000, 0.9)
    const slow = inFlight.reserve(callOf('a'), 800_000, 800_000)
    if (slow !== undefined) {
      slow.onEvicted = () => {
        throw new Error('evicted by itself')
      }
    }
    expect(slow?.arrived(600_000)).toBe(true)
    inFlight.add(callOf('b'), 300_000)
    nowMs = 10_000
    expect(slow?.arrived(100_000)).toBe(false)
    expect(inFlight.bytes).toBe(965_536)
  })

  it('that has stalled gives back what is reserved ahead of it before it loses its place', () => {
    const inFlight = budget(1_000_000, 0.9)
    const stalled = inFlight.reserve(callOf('a'), 800_000, 800_000)
    let evicted = 0
    if (stalled !== undefined) stalled.onEvicted = () => evicted++
    stalled?.arrived(800)
    inFlight.add(callOf('b'), 930_000)
    nowMs = 10_000
    expect(inFlight.take(callOf('c'), 60_000)).toBe(true)
    expect([evicted, inFlight.bytes]).toEqual([0, 990_800])
  })

  it('that comes keeps what it has received, however long it takes', () => {
    const inFlight = budget(1_000_000)
    const slow = inFlight.reserve(callOf('a'), 900_000, 900_000)
    for (let count = 1; count <= 50; count++) {
      nowMs = count * 4_900
      expect(slow?.arrived(16_384)).toBe(true)
    }
    expect(inFlight.take(callOf('b'), 200_000)).toBe(false)
  })
})

describe('All of it', () => {
  const step = fc.tuple(
    fc.constantFrom('take', 'add', 'giveBack', 'close', 'expect', 'arrive', 'end', 'wait'),
    fc.nat(8_000),
    fc.nat(7),
    fc.constantFrom(callOf('a'), callOf('b'), strangerOf('a'), strangerOf('b')),
  )

  it('is what a plain count of the calls is, and nothing when all are over, whatever happens in between', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        nowMs = 0
        const inFlight = budget(10_000, 0.3)
        const calls: MemoryHolder[] = []
        const bodies: ArrivingBody[] = []
        for (const [what, amount, which, { caller }] of steps) {
          const begun = { caller, heldBytes: 0, isOver: false }
          const call = calls[which]
          const body = bodies[which]
          if (what === 'take') inFlight.take(addTo(calls, begun), amount)
          else if (what === 'add' && call !== undefined) inFlight.add(call, amount)
          else if (what === 'giveBack' && call !== undefined) inFlight.giveBack(call, amount)
          else if (what === 'close' && call !== undefined) inFlight.close(call)
          else if (what === 'arrive') body?.arrived(amount)
          else if (what === 'end') body?.end()
          else if (what === 'wait') nowMs += amount
          else if (what === 'expect') {
            const expected = inFlight.reserve(addTo(calls, begun), amount, 9_000)
            if (expected !== undefined) bodies.push(expected)
          }
          expect(inFlight.bytes).toBe(calls.reduce((sum, { heldBytes }) => sum + heldBytes, 0))
          expect(calls.every(({ heldBytes }) => heldBytes >= 0)).toBe(true)
        }
        for (const call of calls) inFlight.close(call)
        expect(inFlight.bytes).toBe(0)
      }),
    )
  })
})

function addTo(calls: MemoryHolder[], call: MemoryHolder): MemoryHolder {
  calls.push(call)
  return call
}

describe('One caller of several', () => {
  it('never gets more than its share, also while no other one holds anything', () => {
    const inFlight = budget()
    for (let index = 0; index < 5; index++) expect(inFlight.take(callOf('a'), 10)).toBe(true)
    expect(inFlight.take(callOf('a'), 1)).toBe(false)
    expect(inFlight.take(callOf('b'), 50)).toBe(true)
  })

  it('finds room beside two others that have all between their shares', () => {
    const inFlight = budget(800)
    for (const name of ['a', 'b'])
      while (inFlight.take(callOf(name), 10)) expect(inFlight.bytes).toBeLessThanOrEqual(800)
    expect(inFlight.bytes).toBe(700)
    for (const name of ['c', 'd']) expect(inFlight.take(callOf(name), 40)).toBe(true)
  })

  it('is remembered for ten seconds when it found no room: one above its share gets nothing new meanwhile', () => {
    const places = new FairShare(
      () => ({ total: 7, callerShare: 0.5 }),
      () => nowMs,
    )
    for (let count = 0; count < 7; count++) expect(places.take({ keyId: 'a' })).toBe(true)
    expect(places.take({ keyId: 'b' })).toBe(false)
    places.count({ keyId: 'a' }, -1)
    nowMs = 9_999
    expect(places.take({ keyId: 'a' })).toBe(false)
    nowMs = 10_000
    expect(places.take({ keyId: 'a' })).toBe(true)
  })

  it('may have one body larger than its share, as it could otherwise never send it', () => {
    const inFlight = budget()
    inFlight.take(callOf('b'), 5)
    expect(inFlight.take(callOf('a'), 80)).toBe(true)
    expect(inFlight.take(callOf('a'), 1)).toBe(false)
  })
})

describe('One of several with bearers of their own', () => {
  it('gets no more than its share while another one holds something', () => {
    const inFlight = budget()
    expect(inFlight.take(strangerOf('a'), 40)).toBe(true)
    expect(inFlight.take(strangerOf('b'), 5)).toBe(true)
    expect(inFlight.take(strangerOf('a'), 11)).toBe(false)
    expect(inFlight.take(strangerOf('b'), 40)).toBe(true)
    expect(inFlight.take(callOf('key'), 10)).toBe(true)
  })

  it('has, beside keys, no more than its part of what one key would have', () => {
    const inFlight = budget()
    const first = strangerOf('a')
    inFlight.take(callOf('key'), 45)
    expect(inFlight.take(first, 30)).toBe(true)
    expect(inFlight.take(strangerOf('a'), 1)).toBe(false)
    expect(inFlight.take(strangerOf('b'), 21)).toBe(false)
    expect(inFlight.take(strangerOf('b'), 12)).toBe(true)
    inFlight.giveBack(first, 6)
    expect(inFlight.take(strangerOf('a'), 1)).toBe(true)
  })

  it('may have one body larger than its share beside a key while no other stranger holds any', () => {
    const inFlight = budget()
    inFlight.take(callOf('key'), 5)
    expect(inFlight.take(strangerOf('a'), 80)).toBe(true)
    expect(inFlight.take(strangerOf('a'), 1)).toBe(false)
  })

  it('takes nothing from keys by inventing bearers: all of them together have one share', () => {
    const inFlight = budget()
    expect(inFlight.take(callOf('key'), 10)).toBe(true)
    let taken = 0
    for (let index = 0; index < 30; index++) if (inFlight.take(strangerOf(`invented ${index}`), 5)) taken += 5
    expect(taken).toBe(50)
    expect(inFlight.take(callOf('key'), 27)).toBe(true)
  })
})
