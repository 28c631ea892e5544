import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { FaultList } from './config-fault.js'
import { decimal } from './decimal-schema.js'
import { Cursor } from './schema-schema.js'

function read(value: unknown): unknown {
  const faults = new FaultList()
  return decimal.read(value, new Cursor('price', { faults, production: false }))
}

describe('A price', () => {
  it.each([
    ['0', '0'],
    ['2.50', '2.50'],
    ['0.000000000001', '0.000000000001'],
    [0.1, '0.1'],
    [15, '15'],
    [1e-7, '0.0000001'],
    [2.5e-9, '0.0000000025'],
  ])('%j is kept as %j', (given, kept) => {
    expect(read(given)).toBe(kept)
  })

  it.each(['', '-1', '1e3', '.5', '5.', ' 1', '0x1', '1,5', -0.1, Number.NaN, Infinity, 1e21, 1e-13, true, [1], {}])(
    '%j is refused',
    (given) => {
      expect(typeof read(given)).not.toBe('string')
    },
  )

  it('is what was written, for every number of up to twelve digits behind the point', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 999 }), fc.integer({ min: 0, max: 999_999_999_999 }), (whole, behind) => {
        const text = `${whole}.${String(behind).padStart(12, '0')}`
        expect(Number(read(Number(text)))).toBe(Number(text))
        expect(String(read(Number(text)))).toBe(text.replace(/\.?0+$/, ''))
      }),
    )
  })
})
