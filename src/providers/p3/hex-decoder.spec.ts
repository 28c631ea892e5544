import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { piecesOf } from '../../../test/support/byte-streams.js'
import { HexDecoder } from './hex-decoder.js'

const cuts = fc.array(fc.nat(200))

function decoded(text: Buffer, at: readonly number[]): Buffer {
  const decoder = new HexDecoder()
  const bytes = Buffer.concat(piecesOf(text, at).map((piece) => decoder.decode(piece)))
  decoder.finish()
  return bytes
}

describe('hexadecimal audio', () => {
  it('is the same bytes wherever its text was cut, in small and capital digits', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), cuts, fc.boolean(), (array, at, isCapital) => {
        const bytes = Buffer.from(array)
        const text = isCapital ? bytes.toString('hex').toUpperCase() : bytes.toString('hex')
        expect(decoded(Buffer.from(text), at)).toEqual(bytes)
      }),
    )
  })

  it('is refused at any other character, wherever it stands and wherever its text was cut', () => {
    const alien = fc.integer({ min: 0, max: 255 }).filter((byte) => !/[0-9a-f]/i.test(String.fromCharCode(byte)))
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 80 }), fc.nat(), alien, cuts, (array, place, byte, at) => {
        const text = Buffer.from(Buffer.from(array).toString('hex'))
        text[place % text.length] = byte
        expect(() => decoded(text, at)).toThrow('not hexadecimal')
      }),
    )
  })

  it('is refused when its last digit has no partner', () => {
    expect(() => decoded(Buffer.from('fff'), [])).toThrow('half a byte')
    expect(() => decoded(Buffer.from('fff'), [1, 2])).toThrow('half a byte')
  })
})
