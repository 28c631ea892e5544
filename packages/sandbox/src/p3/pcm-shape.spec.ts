import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'

import { recut, resamplePcm, toStereo } from './pcm-shape.js'

const RATES = [8000, 16_000, 22_050, 32_000, 44_100]
const samples = fc.array(fc.integer({ min: -32_768, max: 32_767 }), { minLength: 1, maxLength: 400 })

function toPieces(values: readonly number[], cut: number): Buffer[] {
  const bytes = Buffer.alloc(values.length * 2)
  values.forEach((value, index) => bytes.writeInt16LE(value, index * 2))
  return [bytes.subarray(0, cut * 2), bytes.subarray(cut * 2)]
}

function resample(pieces: Iterable<Buffer>, toHz: number): number[] {
  const bytes = Buffer.concat([...resamplePcm(pieces, 24_000, toHz)])
  return Array.from({ length: bytes.length / 2 }, (_, index) => bytes.readInt16LE(index * 2))
}

describe('resampling', () => {
  it('keeps the duration and gives the same samples however the input is cut', () => {
    fc.assert(
      fc.property(samples, fc.nat(400), fc.constantFrom(...RATES), (values, place, toHz) => {
        const whole = resample(toPieces(values, 0), toHz)
        expect(whole.length).toBe(Math.ceil((values.length * toHz) / 24_000))
        expect(resample(toPieces(values, Math.min(place, values.length)), toHz)).toEqual(whole)
      }),
    )
  })

  it('keeps a straight line straight', () => {
    const ramp = Array.from({ length: 240 }, (_, index) => index * 100)
    const line = resample(toPieces(ramp, 100), 32_000).slice(0, 318)
    expect(line.every((value, index) => Math.abs(value - index * 75) <= 1)).toBe(true)
  })
})

describe('other shapes', () => {
  it('stereo has every sample left and right', () => {
    const stereo = Buffer.concat([...toStereo(toPieces([1, -2, 3], 1))])
    expect(stereo.toString('hex')).toBe('01000100fefffeff03000300')
  })

  it('recut pieces have the size wanted and join to the same bytes', () => {
    fc.assert(
      fc.property(samples, fc.nat(400), fc.integer({ min: 1, max: 50 }), (values, place, size) => {
        const pieces = toPieces(values, Math.min(place, values.length))
        const cut = [...recut(pieces, size)]
        expect(Buffer.concat(cut).equals(Buffer.concat(pieces))).toBe(true)
        expect(cut.slice(0, -1).every((piece) => piece.length === size)).toBe(true)
      }),
    )
  })
})
