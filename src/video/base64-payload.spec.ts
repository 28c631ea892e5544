import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { Base64Payload } from './base64-payload.js'

const STRICT = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Mostly base64, so that what is wrong is one character and not all of them. */
const nearlyBase64 = fc
  .tuple(
    fc.uint8Array({ maxLength: 40 }),
    fc.array(fc.tuple(fc.nat(), fc.string({ unit: 'binary', minLength: 1, maxLength: 1 })), { maxLength: 2 }),
    fc.nat(3),
  )
  .map(([bytes, changes, dropped]) => {
    let text = Buffer.from(bytes).toString('base64')
    for (const [place, character] of changes) {
      const at = text.length === 0 ? 0 : place % text.length
      text = text.slice(0, at) + character + text.slice(at + 1)
    }
    return text.slice(0, Math.max(0, text.length - dropped))
  })

const alphabetSoup = fc.string({
  unit: fc.constantFrom('A', '/', '+', '=', '-', '_', ' ', '\n', '.', '\u0141', '\u00c1'),
  maxLength: 12,
})

describe('A Base64 payload', () => {
  it('is strict exactly where a plain regular expression says so', () => {
    fc.assert(
      fc.property(fc.oneof(nearlyBase64, alphabetSoup), (text) => {
        expect(new Base64Payload(text).isStrict()).toBe(STRICT.test(text))
      }),
      { numRuns: 5_000 },
    )
  })

  it.each(['A', 'AAA', 'A===', '====', 'AA==AAAA', 'AA-_', 'AA A', 'AAAA\n', 'AAA\u0141', 'AAA\u00c1'])(
    'is not strict as %j',
    (text) => {
      expect(new Base64Payload(text).isStrict()).toBe(false)
    },
  )

  it('is judged to its last character, however long it is', () => {
    const good = 'A'.repeat(200_000)
    expect(new Base64Payload(good).isStrict()).toBe(true)
    for (const place of [0, 65_535, 65_536, 131_072, 199_999]) {
      for (const wrong of ['!', '-', '_', ' ', '\u0141']) {
        expect(new Base64Payload(good.slice(0, place) + wrong + good.slice(place + 1)).isStrict()).toBe(false)
      }
    }
    expect(new Base64Payload(`${'A'.repeat(65_535)}=AAAA`).isStrict()).toBe(false)
  })

  it('has the length and, in every place, the bytes that decoding it would give', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat(70), fc.nat(20), (content, position, length) => {
        const bytes = Buffer.from(content)
        const payload = new Base64Payload(bytes.toString('base64'))
        expect(payload.byteLength).toBe(bytes.length)
        expect(payload.read(position, length)).toEqual(bytes.subarray(position, position + length))
      }),
    )
  })
})
