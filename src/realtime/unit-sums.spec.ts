import { describe, expect, it } from '@jest/globals'
import { sumOfUnits } from './unit-sums.js'

describe('The sum of units', () => {
  it('adds what has the same name, however deep, and keeps the rest', () => {
    const first = sumOfUnits(undefined, { total: 3, details: { cached: 1, more: { text: 2 } } })
    expect(sumOfUnits(first, { total: 4, details: { more: { text: 5 }, audio: 6 }, other: 7 })).toEqual({
      total: 7,
      details: { cached: 1, more: { text: 7 }, audio: 6 },
      other: 7,
    })
    expect(first).toEqual({ total: 3, details: { cached: 1, more: { text: 2 } } })
  })

  it('keeps the first kind of a name that changes between number and object', () => {
    expect(sumOfUnits({ a: 1, b: { c: 1 } }, { a: { c: 1 }, b: 1 })).toEqual({ a: 1, b: { c: 1 } })
  })

  it('does not grow with the names that an upstream invents', () => {
    let sums = sumOfUnits(undefined, { total: 1 })
    for (let n = 0; n < 1000; n++) sums = sumOfUnits(sums, { total: 1, [`name${n}`]: 1 })
    expect(Object.keys(sums)).toHaveLength(64)
    expect(sums['total']).toBe(1001)
  })
})
