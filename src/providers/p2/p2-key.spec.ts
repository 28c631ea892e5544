import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { GatewayError } from '../../core/gateway-error.js'
import { parseP2Key } from './p2-key.js'

const printable = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 1,
})
const part = printable.filter((text) => !text.includes('|'))

describe('parseP2Key', () => {
  it('parts any two printable texts at the bar', () => {
    fc.assert(
      fc.property(part, part, (appId, accessToken) => {
        expect(parseP2Key(`${appId}|${accessToken}`)).toEqual({ appId, accessToken })
      }),
    )
  })

  it('accepts nothing but two non-empty printable parts, whatever comes', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.oneof(fc.constantFrom('|', 'a', ' ', '\n', 'ä'), fc.string({ maxLength: 1 })) }),
        (key) => {
          const parts = key.split('|')
          const isPair = parts.length === 2 && parts.every((text) => /^[\x21-\x7e]+$/.test(text))
          if (isPair) expect(parseP2Key(key)).toEqual({ appId: parts[0], accessToken: parts[1] })
          else expect(() => parseP2Key(key)).toThrow(GatewayError)
        },
      ),
      { numRuns: 1000 },
    )
  })

  it.each(['', 'a', 'a|', '|a', '|', 'a|b|c', 'a||b', ' a|b', 'a|b ', 'a|b\n', 'ä|b'])(
    'refuses %j as malformed',
    (key) => {
      expect(() => parseP2Key(key)).toThrow(expect.objectContaining({ kind: 'key_malformed' }))
    },
  )
})
