import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { joinedPieces } from './joined-pieces.js'

const SMALL = Buffer.alloc(4_095, 's')
const LARGE = Buffer.alloc(4_096, 'L')

describe('The pieces of a body', () => {
  it('are the same bytes in the same order, however they are cut', () => {
    const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 4_090, max: 4_100 })))
    fc.assert(
      fc.property(sizes, (lengths) => {
        const pieces = lengths.map((length, index) => Buffer.alloc(length, index))
        const joined = joinedPieces(pieces)
        expect(Buffer.concat(joined).equals(Buffer.concat(pieces))).toBe(true)
        expect(joined.length).toBeLessThanOrEqual(pieces.length)
      }),
    )
  })

  it('become one while they are small', () => {
    expect(joinedPieces([SMALL, SMALL, SMALL])).toEqual([Buffer.concat([SMALL, SMALL, SMALL])])
  })

  it('are not copied when they are large, nor when they stand alone', () => {
    const joined = joinedPieces([SMALL, LARGE, LARGE, SMALL, SMALL])
    expect(joined.map(({ length }) => length)).toEqual([4_095, 4_096, 4_096, 8_190])
    expect(joined[0]).toBe(SMALL)
    expect(joined[1]).toBe(LARGE)
    expect(joined[2]).toBe(LARGE)
  })
})
