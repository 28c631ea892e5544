import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { GatewayError } from './errors.js'
import { JsonBody } from './json-body.js'
import { LONG_STRING_BYTES, longTextOf } from './long-strings.js'

const base64Of = (bytes: number): string => Buffer.alloc(bytes, 7).toString('base64')
const PICTURE = base64Of(30_000)
const parsed = (text: string): Record<string, unknown> => JsonBody.parse(Buffer.from(text)).fields

describe('A long string of a JSON body', () => {
  it('is what the parser makes of it, wherever it stands', () => {
    const body = {
      first: PICTURE,
      messages: [{ content: [{ image_url: { url: `data:image/png;base64,${PICTURE}` } }, PICTURE, 'grün'] }, null, 7],
      last: `${PICTURE} is no Base64`,
    }
    const text = JSON.stringify(body)
    expect(parsed(text)).toEqual(body)
    expect(JSON.stringify(parsed(text))).toBe(text)
    expect(JsonBody.parse(Buffer.from(text)).edited({ first: '1' }).toString()).toBe(
      JSON.stringify({ ...body, first: 1 }),
    )
  })

  it('is not decoded before it is read, and then once', () => {
    const fields = parsed(JSON.stringify({ picture: PICTURE, short: base64Of(300) }))
    expect(longTextOf(fields, 'picture')).toHaveLength(PICTURE.length)
    expect(longTextOf(fields, 'short')).toBeUndefined()
    expect(longTextOf(fields, 'absent')).toBeUndefined()
    expect(fields['picture']).toBe(PICTURE)
    expect(longTextOf(fields, 'picture')).toBeUndefined()
    expect(fields['picture']).toBe(PICTURE)
  })

  it('may be copied, replaced and removed like any other', () => {
    const fields = parsed(JSON.stringify({ one: PICTURE, two: PICTURE, three: PICTURE }))
    expect({ ...fields }).toEqual({ one: PICTURE, two: PICTURE, three: PICTURE })
    const others = parsed(JSON.stringify({ one: PICTURE, two: PICTURE }))
    others['one'] = 'short'
    delete others['two']
    expect(others).toEqual({ one: 'short' })
  })

  it.each([LONG_STRING_BYTES - 3, LONG_STRING_BYTES - 2, LONG_STRING_BYTES - 1, LONG_STRING_BYTES, 65_536, 65_540])(
    'of %i characters is the same',
    (characters) => {
      const text = 'A'.repeat(characters)
      expect(parsed(JSON.stringify({ text, list: [text, text] }))).toEqual({ text, list: [text, text] })
    },
  )

  it('that is a key stays a key', () => {
    expect(Object.keys(parsed(JSON.stringify({ [PICTURE]: PICTURE })))).toEqual([PICTURE])
  })

  it('is refused, or read, as the parser has it, whatever bytes stand in it', () => {
    const text = JSON.stringify({ a: { b: [PICTURE] }, c: `data:image/png;base64,${PICTURE}` })
    const bytes = [0x00, 0x0a, 0x1f, 0x20, 0x22, 0x2d, 0x5c, 0x5f, 0x7b, 0x7d, 0x7f, 0x80, 0xc3, 0xff]
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(text.length - 1), fc.constantFrom(...bytes)), { minLength: 1, maxLength: 3 }),
        fc.nat(text.length),
        fc.boolean(),
        (changes, end, isCut) => {
          const damaged = Buffer.from(text)
          for (const [position, byte] of changes) damaged[position] = byte
          const given = isCut ? damaged.subarray(0, end) : damaged
          expect(outcomeOf(() => JsonBody.parse(given).fields)).toEqual(outcomeOf(() => byTheParser(given)))
        },
      ),
      { numRuns: 300 },
    )
  })
})

/** Duplicate keys and those that reach a prototype do not come about here. */
function byTheParser(bytes: Buffer): unknown {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null) throw new SyntaxError('no object')
  return value
}

function outcomeOf(read: () => unknown): unknown {
  try {
    return read()
  } catch (error) {
    if (error instanceof GatewayError || error instanceof SyntaxError || error instanceof TypeError) return 'refused'
    throw error
  }
}
