import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { id3, inspect, sample, wav } from '../../test/support/inspected-audio.js'
import { ACCEPTED_FILE_FORMATS } from './audio-facts.js'

describe('inspectAudio', () => {
  it.each<[string, string, string, number | undefined]>([
    ['tone.mp3', 'mp3', 'audio/mpeg', 0.576],
    ['tone-no-xing.mp3', 'mp3', 'audio/mpeg', 0.576],
    ['tone-mpeg25.mp3', 'mp3', 'audio/mpeg', 0.648],
    ['tone.mp2', 'mpga', 'audio/mpeg', 0.522],
    ['tone.wav', 'wav', 'audio/wav', 0.5],
    ['tone.flac', 'flac', 'audio/flac', 0.5],
    ['tone-opus.ogg', 'ogg', 'audio/ogg', 0.5],
    ['tone-vorbis.ogg', 'ogg', 'audio/ogg', 0.5],
    ['tone.m4a', 'm4a', 'audio/mp4', 0.564],
    ['tone.mp4', 'mp4', 'audio/mp4', 0.564],
    ['tone-fragmented.mp4', 'mp4', 'audio/mp4', 0.564],
    ['clip.mp4', 'mp4', 'video/mp4', 0.564],
    ['tone.webm', 'webm', 'audio/webm', 0.508],
    ['tone-live.webm', 'webm', 'audio/webm', undefined],
    ['tone.mpeg', 'mpeg', 'audio/mpeg', undefined],
  ])('knows %s', async (name, extension, contentType, seconds) => {
    const { durationSeconds, ...facts } = await inspect(sample(name), name)
    expect(facts).toMatchObject({ extension, contentType })
    if (seconds === undefined) expect(durationSeconds).toBeUndefined()
    else expect(durationSeconds).toBeCloseTo(seconds, 2)
  })

  it('believes the bytes, not the name', async () => {
    expect(await inspect(sample('tone.flac'), 'speech.mp3')).toMatchObject({ extension: 'flac' })
    expect(await inspect(sample('tone.mp3'), 'speech.txt')).toMatchObject({ extension: 'mp3' })
    expect(await inspect(sample('tone-opus.ogg'), 'speech.oga')).toMatchObject({ extension: 'ogg' })
    expect(await inspect(sample('tone.wav'), 'no-extension')).toMatchObject({ extension: 'wav' })
  })

  it('lets the name decide between kinds with the same bytes', async () => {
    expect(await inspect(sample('tone.mp4'), 'speech.M4A')).toMatchObject({ extension: 'm4a' })
  })

  it.each([10, 5000, 70_000, 1_500_000])('reads an MP3 behind a tag of %i bytes', async (size) => {
    const facts = await inspect(Buffer.concat([id3(size), sample('tone.mp3')]), 'a.mp3')
    expect(facts).toMatchObject({ extension: 'mp3' })
    expect(facts.durationSeconds).toBeCloseTo(0.576, 2)
  })

  it('reads a FLAC behind a tag, an MP3 behind two tags, and one behind stray bytes', async () => {
    expect(await inspect(Buffer.concat([id3(300), sample('tone.flac')]), 'a.flac')).toMatchObject({ extension: 'flac' })
    expect(await inspect(Buffer.concat([id3(9), id3(9), sample('tone.mp3')]), 'a')).toMatchObject({ extension: 'mp3' })
    expect(await inspect(Buffer.concat([Buffer.alloc(999), sample('tone-no-xing.mp3')]), 'a.mp3')).toMatchObject({
      extension: 'mp3',
    })
  })

  it('counts the bytes of a WAV that was streamed or cut, whatever its header says', async () => {
    expect((await inspect(wav({ dataSize: 0xffffffff }), 'a.wav')).durationSeconds).toBe(1)
    expect((await inspect(wav({ dataSize: 64_000 }), 'a.wav')).durationSeconds).toBe(1)
    expect((await inspect(wav({ dataSize: 16_000 }), 'a.wav')).durationSeconds).toBe(0.5)
  })

  it('counts the frames of an MP3 of varying bit rate without statistics', async () => {
    const slow = sample('tone-no-xing.mp3').subarray(20)
    const whole = sample('tone.mp3').subarray(45)
    const [first, second] = [slow.subarray(0, 144), whole.subarray(0, 180)]
    const stripped = Buffer.from(second).fill(0, 4)
    const stream = Buffer.concat(Array.from({ length: 20_000 }, (_, index) => (index % 2 === 0 ? first : stripped)))
    expect((await inspect(stream, 'a.mp3')).durationSeconds).toBeCloseTo(20_000 * 0.036, 5)
    expect(await inspect(Buffer.concat([stream, Buffer.alloc(400_000, 0xff)]), 'a.mp3')).not.toHaveProperty(
      'durationSeconds',
    )
  })

  it('finds the length of a long Ogg file, which only its last page tells', async () => {
    const short = sample('tone-opus.ogg')
    const pageAt = short.lastIndexOf('OggS')
    const pages = Array.from({ length: 600 }, (_, index) => {
      const page = Buffer.from(short.subarray(pageAt))
      // Only the last page may carry the mark that the stream ends.
      page.writeUInt8(index === 599 ? 4 : 0, 5)
      page.writeBigUInt64LE(BigInt((index + 1) * 48_000), 6)
      page.writeUInt32LE(index + 2, 18)
      return page
    })
    const { durationSeconds } = await inspect(Buffer.concat([short.subarray(0, pageAt), ...pages]), 'a.ogg')
    expect(durationSeconds).toBeCloseTo(600, 0)
  })

  it('lets a plausible file pass that has no readable duration', async () => {
    const broken = sample('tone-no-xing.mp3')
    broken.fill(0, 1000)
    expect(await inspect(broken, 'a.mp3')).toMatchObject({ extension: 'mp3' })
  })

  it('accepts the formats of the specification', () => {
    const specification = readFileSync(new URL('../../docs/spec.md', import.meta.url), 'utf8')
    expect(specification).toContain(`Accepted file formats: ${ACCEPTED_FILE_FORMATS.join(', ')}.`)
  })
})
