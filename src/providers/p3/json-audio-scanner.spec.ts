import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { piecesOf } from '../../../test/support/byte-streams.js'
import { JsonAudioScanner } from './p3-json-audio.js'

interface Scanned {
  readonly audio: Buffer
  readonly text: string
  readonly isClosed: boolean
}

function scanned(json: string | Buffer, cuts: readonly number[] = []): Scanned {
  const heard: Buffer[] = []
  const scanner = new JsonAudioScanner((audio) => heard.push(audio))
  for (const piece of piecesOf(Buffer.from(json), cuts)) scanner.write(piece)
  const { isClosed } = scanner
  return { audio: Buffer.concat(heard), text: scanner.takeText(), isClosed }
}

/** Names that could be taken for the path of the audio stand everywhere. */
const key = fc.oneof(fc.constantFrom('data', 'audio', 'status'), fc.string())
const value = fc.object({
  key,
  maxDepth: 3,
  maxKeys: 4,
  values: [fc.string(), fc.double(), fc.boolean(), fc.constant(null)],
})

const others = fc.dictionary(
  key.filter((name) => name !== 'data' && name !== 'audio'),
  fc.oneof(value, fc.array(value, { maxLength: 3 }), fc.string()),
  { maxKeys: 4 },
)

const answer = fc
  .record({ before: others, beside: others, behind: others, after: others, audio: fc.uint8Array({ maxLength: 100 }) })
  .map(({ before, beside, behind, after, audio }) => ({
    bytes: Buffer.from(audio),
    whole: { ...before, data: { ...beside, audio: Buffer.from(audio).toString('hex'), ...behind }, ...after },
    rest: { ...before, data: { ...beside, audio: '', ...behind }, ...after },
  }))

describe('the audio in an answer of JSON', () => {
  it('is taken out wherever the bytes were cut, and everything else stays as it was', () => {
    fc.assert(
      fc.property(answer, fc.array(fc.nat(2000)), fc.nat(2), ({ bytes, whole, rest }, cuts, indent) => {
        const { audio, text, isClosed } = scanned(JSON.stringify(whole, null, indent), cuts)
        expect(audio).toEqual(bytes)
        expect(text).toBe(JSON.stringify(rest, null, indent))
        expect(isClosed).toBe(true)
      }),
    )
  })

  it('never looks complete when a part of the answer is missing', () => {
    fc.assert(
      fc.property(answer, fc.nat(), ({ whole }, length) => {
        const json = Buffer.from(JSON.stringify(whole))
        expect(scanned(json.subarray(0, length % json.length)).isClosed).toBe(false)
      }),
    )
  })

  it.each([
    ['of another object', '{"sound":{"audio":"zz"}}'],
    ['of an object further down', '{"x":{"data":{"audio":"zz"}},"data":{"x":{"audio":"zz"}}}'],
    ['of the answer itself', '{"audio":"zz"}'],
    ['of a list', '{"data":[{"audio":"zz"}]}'],
    ['of a list in its place', '{"data":["audio","zz"]}'],
    ['a value that is called so', '{"data":"audio","x":"zz"}'],
    ['in a list that is the whole answer', '[{"data":{"audio":"zz"}}]'],
    ['in a text', '{"x":"{\\"data\\":{\\"audio\\":\\"zz\\"}}","data":{"x":"\\"audio\\":"}}'],
    ['in a list of its place', '{"data":{"audio":["zz"]}}'],
    ['that is none', '{"data":{"audio":null}}'],
  ])('is not mistaken for the audio %s', (_place, json) => {
    expect(scanned(json)).toEqual({ audio: Buffer.alloc(0), text: json, isClosed: true })
  })

  it('may be of any length, while everything else has a limit', () => {
    let heardBytes = 0
    const scanner = new JsonAudioScanner((audio) => {
      heardBytes += audio.length
    })
    scanner.write(Buffer.from('{"data":{"audio":"'))
    const piece = Buffer.alloc(65_536, 'f')
    for (let count = 0; count < 160; count++) scanner.write(piece)
    expect(heardBytes).toBe((65_536 * 160) / 2)
    scanner.write(Buffer.from('","x":"'))
    expect(() => {
      scanner.write(piece)
    }).toThrow('too much beside the audio')
  })

  it('is refused when it is not hexadecimal', () => {
    expect(() => scanned('{"data":{"audio":"fg"}}')).toThrow('not hexadecimal')
    expect(() => scanned('{"data":{"audio":"fff"}}')).toThrow('half a byte')
    expect(() => scanned('{"data":{"audio":"\\u0066f"}}')).toThrow('not hexadecimal')
  })

  it('is refused in an answer that is nested without end', () => {
    expect(scanned('['.repeat(64)).isClosed).toBe(false)
    expect(() => scanned('['.repeat(65))).toThrow('too deep')
  })

  it('is read anew for each answer', () => {
    const heard: string[] = []
    const scanner = new JsonAudioScanner((audio) => heard.push(audio.toString('hex')))
    // What is cut off says nothing about what follows.
    for (const json of ['{"data":{"audio":"aab', '{"data":{"x":"\\', '{"data":', '{"data":{"audio":"ccdd"}}']) {
      scanner.write(Buffer.from(json))
      expect(scanner.takeText()).toBe(json.replace(/"(?:aab|ccdd)/, '"'))
      expect(scanner.isClosed).toBe(false)
    }
    expect(heard).toEqual(['aa', 'ccdd'])
  })
})
