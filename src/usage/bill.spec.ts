import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { Bill, Decimal, unitPrice } from './bill.js'

const textOf = (scale: number, ...entries: (readonly [quantity: number, price: string])[]): string | undefined => {
  const bill = new Bill(scale, false)
  for (const [quantity, price] of entries) bill.add(quantity, unitPrice(Decimal(price), scale))
  return bill.text
}

describe('A bill', () => {
  it.each<[string, number, (readonly [number, string])[], string]>([
    ['nothing', 3, [], '0'],
    ['whole prices', 0, [[7, '30']], '210'],
    ['zeros at the end', 3, [[4, '0.250']], '1'],
    ['less than one', 6, [[3, '0.000002']], '0.000006'],
    ['the largest safe number', 0, [[1, '9007199254740991']], '9007199254740991'],
    [
      'one more than that',
      0,
      [
        [1, '9007199254740991'],
        [1, '1'],
      ],
      '9007199254740992',
    ],
    [
      'two products, of which one is not safe',
      12,
      [
        [3, '0.000000000001'],
        [1_000_000, '999999999999'],
      ],
      '999999999999000000.000000000003',
    ],
    [
      'parts of a unit',
      4,
      [
        [0.1, '0.0003'],
        [2, '0.0003'],
      ],
      '0.00063',
    ],
  ])('adds up exactly: %s', (_what, scale, entries, expected) => {
    expect(textOf(scale, ...entries)).toBe(expected)
  })

  it('says what decimals say, whatever the figures', () => {
    const quantity = fc.oneof(fc.nat(), fc.maxSafeNat(), fc.double({ min: 0, max: 1e6, noNaN: true }))
    const price = fc.tuple(fc.nat(), fc.integer({ min: 0, max: 12 }))
    fc.assert(
      fc.property(fc.array(fc.tuple(quantity, price), { maxLength: 8 }), (drawn) => {
        const entries = drawn.map(([count, [digits, places]]) => {
          const text = String(digits).padStart(places + 1, '0')
          return [count, places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}`] as const
        })
        const expected = entries.reduce((sum, [count, each]) => sum.plus(Decimal(each).times(count)), Decimal(0))
        expect(textOf(12, ...entries)).toBe(expected.toFixed())
      }),
    )
  })
})
