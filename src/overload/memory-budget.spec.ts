import { beforeEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { callOf, strangerOf } from '../../test/support/byte-streams.js'
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
    expect(inFlight.take(callOf('a'), 60)).toBe(true)
    expect(inFlight.take(callOf('a'), 41)).toBe(false)
    expect(inFlight.take(callOf('a'), 40)).toBe(true)
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
  it('has what it announces kept free, and counts with what it was when it is there', () => {
    const inFlight = budget()
    const call = callOf('a')
    const body = inFlight.reserve(call, 70, 90)
    expect(inFlight.bytes).toBe(70)
    expect(inFlight.reserve(callOf('a'), 31, 90)).toBeUndefined()
    expect(body?.arrived(30)).toBe(true)
    body?.end()
    expect(inFlight.bytes).toBe(30)
  })

  it('of unknown length is given room as it comes, never beyond its maximum', () => {
    const inFlight = budget(2_000_000)
    const body = inFlight.reserve(callOf('a'), undefined, 600_000)
    expect(inFlight.bytes).toBe(262_144)
    expect(body?.arrived(262_144)).toBe(true)
    expect(inFlight.bytes).toBe(262_144)
    body?.arrived(1)
    expect(inFlight.bytes).toBe(524_288)
    body?.arrived(1_000_000)
    expect(inFlight.bytes).toBe(600_000)
  })

  it('finds out that there is no room left while it comes', () => {
    const inFlight = budget(1_000_000)
    inFlight.add(callOf('b'), 600_000)
    const body = inFlight.reserve(callOf('a'), undefined, 900_000)
    expect(body?.arrived(300_000)).toBe(true)
    expect(inFlight.bytes).toBe(900_000)
    expect(body?.arrived(100_001)).toBe(false)
  })

  it('that does not come is not waited for: others get its room after five seconds', () => {
    const inFlight = budget()
    const stalled = Array.from({ length: 5 }, () => inFlight.reserve(callOf('a'), 20, 60))
    stalled[0]?.arrived(8)
    nowMs = 5_000
    expect(inFlight.reserve(callOf('b'), 60, 60)).toBeUndefined()
    nowMs = 5_001
    expect(inFlight.reserve(callOf('b'), 60, 60)).toBeDefined()
    expect(inFlight.bytes).toBe(68)
    expect(stalled[1]?.arrived(20)).toBe(true)
    expect(stalled[2]?.arrived(20)).toBe(false)
  })

  it('that comes keeps what it has received, however long it takes', () => {
    const inFlight = budget()
    const slow = inFlight.reserve(callOf('a'), 90, 90)
    nowMs = 60_000
    expect(slow?.arrived(85)).toBe(true)
    expect(inFlight.take(callOf('b'), 20)).toBe(false)
    expect(inFlight.bytes).toBe(85)
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
  it('takes everything while no other caller asks', () => {
    const inFlight = budget()
    for (let index = 0; index < 10; index++) expect(inFlight.take(callOf('a'), 10)).toBe(true)
  })

  it('gets no more than its share while another one holds something', () => {
    const inFlight = budget()
    const other = callOf('b')
    expect(inFlight.take(callOf('a'), 40)).toBe(true)
    expect(inFlight.take(other, 5)).toBe(true)
    expect(inFlight.take(callOf('a'), 11)).toBe(false)
    expect(inFlight.take(callOf('a'), 10)).toBe(true)
    expect(inFlight.take(callOf('b'), 45)).toBe(true)
    inFlight.close(other)
    expect(inFlight.take(callOf('a'), 1)).toBe(false)
  })

  it('makes room for another one who found none: it gets nothing new for a while', () => {
    const inFlight = budget()
    const calls = Array.from({ length: 10 }, () => callOf('a'))
    for (const call of calls) inFlight.take(call, 10)
    expect(inFlight.take(callOf('b'), 20)).toBe(false)
    for (const call of calls.slice(0, 3)) inFlight.close(call)
    nowMs = 9_999
    expect(inFlight.take(callOf('a'), 1)).toBe(false)
    expect(inFlight.take(callOf('b'), 20)).toBe(true)
    expect(inFlight.take(callOf('a'), 1)).toBe(false)
  })

  it('is held to its share no longer when the other one does not come back', () => {
    const inFlight = budget()
    const first = callOf('a')
    inFlight.take(first, 50)
    inFlight.take(callOf('a'), 50)
    expect(inFlight.take(callOf('b'), 20)).toBe(false)
    inFlight.giveBack(first, 10)
    nowMs = 10_000
    expect(inFlight.take(callOf('a'), 10)).toBe(true)
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
    expect(inFlight.take(strangerOf('b'), 45)).toBe(true)
  })

  it('makes room for another one who found none', () => {
    const inFlight = budget()
    const calls = Array.from({ length: 10 }, () => strangerOf('a'))
    for (const call of calls) inFlight.take(call, 10)
    expect(inFlight.take(strangerOf('b'), 20)).toBe(false)
    for (const call of calls.slice(0, 3)) inFlight.close(call)
    expect(inFlight.take(strangerOf('a'), 1)).toBe(false)
    expect(inFlight.take(strangerOf('b'), 20)).toBe(true)
  })

  it('has, beside keys, no more than its part of what one key would have', () => {
    const inFlight = budget()
    const first = strangerOf('a')
    inFlight.take(callOf('key'), 45)
    expect(inFlight.take(first, 30)).toBe(true)
    expect(inFlight.take(strangerOf('a'), 20)).toBe(true)
    expect(inFlight.take(strangerOf('b'), 20)).toBe(false)
    inFlight.giveBack(first, 20)
    expect(inFlight.take(strangerOf('a'), 1)).toBe(false)
    expect(inFlight.take(strangerOf('b'), 20)).toBe(true)
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
    expect(inFlight.take(callOf('key'), 40)).toBe(true)
  })
})
