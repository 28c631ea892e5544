import { beforeEach, describe, expect, it } from '@jest/globals'
import { callOf, strangerOf } from '../../test/support/bytes-holders.js'
import { BytesInFlight } from './memory-budget.js'

let nowMs = 0
beforeEach(() => {
  nowMs = 0
})

const budget = (bytesInFlight = 100, callerShare = 0.5): BytesInFlight =>
  new BytesInFlight(
    () => ({ bytesInFlight, callerShare }),
    () => nowMs,
  )

describe('One caller of several', () => {
  it('takes everything while nobody else asks', () => {
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
