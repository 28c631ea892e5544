import { describe, expect, it } from '@jest/globals'
import { type SpeechFormat, synthesizeSpeech } from '../audio/speech-synthesizer.js'
import { MultipartReader } from '../server/multipart-reader.js'
import { audioFacts, type AudioFacts } from './audio-metadata.js'

function factsOf(content: Buffer): AudioFacts {
  const reader = new MultipartReader('B')
  reader.push(Buffer.from('--B\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'))
  reader.push(content)
  reader.push(Buffer.from('\r\n--B--\r\n'))
  const [file] = reader.finish()
  if (file === undefined) throw new Error('the part was not read')
  return audioFacts(file)
}

const speak = (format: SpeechFormat, text: string): Buffer =>
  Buffer.concat([...synthesizeSpeech(text, { format, speed: 1 })])
/** Five minutes are 5,000 characters: more than the first 64 KiB in every format. */
const TEXTS: readonly (readonly [string, number])[] = [
  ['Hi', 0.3],
  ['Hello, world! It babbles on.', 28 * 0.06],
  ['babble on '.repeat(500), 300],
]

/** An ID3v2.4 tag with `size` bytes of padding. */
function id3(size: number, flags = 0): Buffer {
  const digits = [21, 14, 7, 0].map((shift) => (size >> shift) & 0x7f)
  return Buffer.concat([Buffer.from(`ID3\u0004\0`), Buffer.of(flags, ...digits), Buffer.alloc(size + (flags && 10))])
}

describe('the duration of an uploaded file', () => {
  it.each<[SpeechFormat, string]>([
    ['mp3', 'mp3'],
    ['opus', 'ogg'],
    ['wav', 'wav'],
  ])('is that of the speech for %s', (format, container) => {
    for (const [text, seconds] of TEXTS) {
      const facts = factsOf(speak(format, text))
      expect(facts.container).toBe(container)
      // Speech is a whole number of frames.
      expect(Math.abs(facts.seconds - seconds)).toBeLessThanOrEqual(0.013)
    }
  })

  it.each([
    [id3(500), 0.3],
    [id3(500, 0x10), 0.3],
    [id3(0), 0.3],
  ])('leaves out the tag before an MP3', (tag, seconds) => {
    expect(factsOf(Buffer.concat([tag, speak('mp3', 'Hi')])).seconds).toBeCloseTo(seconds, 1)
  })

  it('follows the bit rate of the first MPEG-1 frame', () => {
    const frame = Buffer.from('fffb9000', 'hex')
    expect(factsOf(Buffer.concat([frame, Buffer.alloc(16_000 - 4)])).seconds).toBe(1)
    frame[2] = 0x50
    expect(factsOf(Buffer.concat([frame, Buffer.alloc(16_000 - 4)])).seconds).toBe(2)
  })

  it('passes over an Ogg page on which no packet ends, and pages of another stream', () => {
    const speech = speak('opus', 'Hi')
    const endless = Buffer.from(speech.subarray(speech.lastIndexOf('OggS')))
    const foreign = Buffer.from(endless)
    endless.fill(0xff, 6, 14)
    foreign.writeBigUInt64LE(48_000_000n, 6)
    foreign.writeUInt32LE(7, 14)
    expect(factsOf(Buffer.concat([speech, endless, foreign])).seconds).toBeCloseTo(0.3, 5)
  })

  it('is what a FLAC file says, and estimated when it does not say', () => {
    const flac = speak('flac', 'Hello')
    expect(factsOf(flac).seconds).toBe(flac.length / 16_000)
    flac.writeUInt32BE(24_000 * 90, 22)
    expect(factsOf(flac)).toMatchObject({ container: 'flac', seconds: 90 })
  })

  it.each<[string, Buffer]>([
    ['an MP3 whose tag is longer than what is kept of it', Buffer.concat([id3(70_000), speak('mp3', 'Hi')])],
    ['AAC in ADTS', speak('aac', 'Hi')],
    ['Ogg without Opus', Buffer.concat([Buffer.from('OggS'), Buffer.alloc(2000)])],
    ['a few bytes of FLAC', Buffer.from('fLaC')],
    ['a few bytes of MP3', Buffer.from('fffb', 'hex')],
    ['no known audio', Buffer.alloc(1000)],
  ])('is estimated from the size for %s', (_name, content) => {
    expect(factsOf(content).seconds).toBe(content.length / 16_000)
  })
})
