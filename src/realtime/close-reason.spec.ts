import { isUtf8 } from 'node:buffer'
import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { closeReason } from './close-reason.js'

describe('The reason of a close', () => {
  it('that may be shown stays as it is', () => {
    expect(closeReason(Buffer.from('session over'), 'secret-1')).toBe('session over')
    expect(closeReason(Buffer.alloc(0), 'secret-1')).toBe('')
  })

  it('shows no host, no account and no secret', () => {
    const reason = Buffer.from('secret-1 of org-abcdef refused at wss://api.example.com/v1')
    expect(closeReason(reason, 'secret-1')).toBe('[key] of [account] refused at [address]')
  })

  it('always fits into a close frame and is the beginning of what was said', () => {
    // What a cut character would become may not be in the text itself.
    const texts = fc.string({ unit: 'grapheme', maxLength: 400 }).filter((text) => !text.includes('\ufffd'))
    fc.assert(
      fc.property(texts, (text) => {
        const reason = closeReason(Buffer.from(text), '')
        const bytes = Buffer.from(reason)
        expect(bytes.length).toBeLessThanOrEqual(123)
        expect(isUtf8(bytes)).toBe(true)
        expect(reason).not.toContain('\ufffd')
      }),
    )
  })

  it.each(['é', '€', '😀'])('is cut before a character that does not fit whole: %s', (character) => {
    for (let padding = 118; padding <= 123; padding++) {
      const reason = closeReason(Buffer.from('x'.repeat(padding) + character.repeat(3)), '')
      expect(reason).toMatch(new RegExp(`^x+${character}*$`, 'u'))
      expect(Buffer.byteLength(reason)).toBeGreaterThan(123 - Buffer.byteLength(character))
    }
  })
})
