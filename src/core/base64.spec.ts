import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { isStrictBase64, TextSpan } from './base64.js'

const STRICT = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

const isStrict = (text: string): boolean => {
  const bytes = Buffer.from(text, 'latin1')
  const isStrictString = isStrictBase64(text)
  expect(isStrictBase64(new TextSpan(bytes, 0, bytes.length))).toBe(isStrictString)
  return isStrictString
}

/** Mostly base64, with few wrong characters. */
const nearlyBase64 = fc
  .tuple(fc.uint8Array({ maxLength: 40 }), fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }), fc.nat(3))
  .map(([bytes, changes, dropped]) => {
    const text = Buffer.from(Buffer.from(bytes).toString('base64'), 'latin1')
    for (const [place, byte] of changes) if (text.length > 0) text[place % text.length] = byte
    return text.toString('latin1', 0, Math.max(0, text.length - dropped))
  })

const alphabetSoup = fc.string({ unit: fc.constantFrom('A', '/', '+', '=', '-', '_', ' ', '\n', '.'), maxLength: 16 })

describe('The base64 check', () => {
  it('agrees with a plain regular expression on anything near base64', () => {
    fc.assert(
      fc.property(fc.oneof(nearlyBase64, alphabetSoup), (text) => {
        expect(isStrict(text)).toBe(STRICT.test(text))
      }),
      { numRuns: 5000 },
    )
  })

  it.each(['', 'AAAA', 'AA==', 'AAA=', 'ab+/'])('accepts %j', (text) => {
    expect(isStrict(text)).toBe(true)
  })

  it.each(['A', 'AAA', 'AAAA=', 'A===', '====', 'AA==AAAA', 'AA-_', 'AA A', 'AAAA\n', 'AAA\u00e9', 'AA=A', '=AAA'])(
    'refuses %j',
    (text) => {
      expect(isStrict(text)).toBe(false)
    },
  )

  it('looks at every character of a payload larger than what it decodes at once', () => {
    const payload = Buffer.alloc(200_000, 'A')
    expect(isStrictBase64(new TextSpan(payload, 0, payload.length))).toBe(true)
    for (const place of [0, 65_535, 65_536, 131_072, 199_999]) {
      for (const wrong of ['!', '-', '_', '=', ' ']) {
        const damaged = Buffer.from(payload)
        damaged.write(wrong, place)
        const isPadding = wrong === '=' && place === payload.length - 1
        expect(isStrictBase64(new TextSpan(damaged, 0, damaged.length))).toBe(isPadding)
      }
    }
  })

  it('checks nothing outside its bounds', () => {
    const frame = Buffer.from('"AAAA"')
    expect(isStrictBase64(new TextSpan(frame, 1, 5))).toBe(true)
    expect(isStrictBase64(new TextSpan(frame, 0, 4))).toBe(false)
  })
})
