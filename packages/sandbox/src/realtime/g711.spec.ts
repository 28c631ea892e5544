import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'

import { bytesPerMs, loudness, speak } from './audio-format.js'
import { decodeBase64 } from './base64-audio.js'
import { decodeALaw, decodeMuLaw, encodeALaw, encodeMuLaw } from './g711.js'

const LAWS = [
  { name: 'mu-law', encode: encodeMuLaw, decode: decodeMuLaw },
  { name: 'A-law', encode: encodeALaw, decode: decodeALaw },
]

describe.each(LAWS)('G.711 $name', ({ encode, decode }) => {
  it('keeps every byte through a decoder and an encoder', () => {
    for (let byte = 0; byte < 256; byte += 1) expect(decode(encode(decode(byte)))).toBe(decode(byte))
  })

  it('stays within a sixteenth of each sample, and a small step near silence', () => {
    fc.assert(
      fc.property(fc.integer({ min: -32_768, max: 32_767 }), (sample) => {
        const error = Math.abs(decode(encode(sample)) - sample)
        expect(error).toBeLessThanOrEqual(Math.max(16, Math.abs(sample) / 16))
      }),
    )
  })
})

it('knows the silence of both laws as the standard gives it', () => {
  expect([encodeMuLaw(0), encodeALaw(0)]).toEqual([0xff, 0xd5])
})

it('speaks equally long and loud in all formats', () => {
  const spoken = (['pcm16', 'g711_ulaw', 'g711_alaw'] as const).map((format) => {
    const audio = Buffer.concat([...speak('Hello from the gateway', format, 1)])
    return { ms: audio.length / bytesPerMs(format), loudness: loudness(audio, format) }
  })
  expect(spoken.map(({ ms }) => ms)).toEqual([1320, 1320, 1320])
  for (const { loudness: level } of spoken) expect(level).toBeGreaterThan(0.05)
})

describe('base64 of audio', () => {
  it('is decoded exactly', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(decodeBase64(Buffer.from(bytes).toString('base64'))?.equals(bytes)).toBe(true)
      }),
    )
  })

  it.each(['AAA', 'AA==AA==', 'AA A', 'A-_A', 'AB==', '####', 'AAAA\n'])('is refused: %j', (text) => {
    expect(decodeBase64(text)).toBeUndefined()
  })
})
