import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { codeOf, id3, inspect, inspectSpooled, sample, text, wav } from '../../test/support/inspected-audio.js'
import { ACCEPTED_FILE_FORMATS, type AudioFacts } from './audio-facts.js'

/** Frames of 144 bytes, without the tag before them. */
const mp3Frames = sample('tone-no-xing.mp3').subarray(20)
const encoderFrame = sample('tone.mp3').subarray(45, 225)
const flacMetadata = sample('tone.flac').subarray(0, sample('tone.flac').indexOf(Buffer.from([0xff, 0xf8])))

describe('inspectAudio', () => {
  it.each<[string, Buffer]>([
    ['text', text('hello, this is not audio at all. '.repeat(50))],
    ['HTML', text('<!doctype html><html></html>')],
    ['JSON', text('{"error":"no"}')],
    ['PDF', Buffer.concat([text('%PDF-1.7\n'), Buffer.alloc(5000, 0xff)])],
    ['one byte', text('R')],
    ['AVI', sample('video.avi')],
    ['WebP', text('RIFF\u0010\0\0\0WEBPVP8 ')],
    ['AAC in ADTS', sample('tone.aac')],
    ['AVIF', text('\0\0\0\u0018ftypavif\0\0\0\0avifmif1')],
    ['an MP4 without ftyp', sample('tone.mp4').subarray(28)],
    ['zeros', Buffer.alloc(4000)],
  ])('refuses %s as no audio under any name', async (_kind, content) => {
    for (const extension of ACCEPTED_FILE_FORMATS)
      expect(await codeOf(content, `a.${extension}`)).toBe('invalid_audio_format')
  })

  it('names the accepted formats when it refuses a kind of file', async () => {
    await expect(inspect(text('no'), 'a.mp3')).rejects.toThrow(ACCEPTED_FILE_FORMATS.join(', '))
  })

  it.each<[string, Buffer]>([
    ['a tag without frames', id3(500)],
    ['a tag longer than the file', id3(500).subarray(0, 400)],
    ['a tag before garbage', Buffer.concat([id3(50), text('garbage '.repeat(99))])],
    ['an MP3 header alone', mp3Frames.subarray(0, 4)],
    ['an MP3 header before zeros', Buffer.concat([mp3Frames.subarray(0, 4), Buffer.alloc(5000)])],
    ['an MP3 whose second frame is missing', Buffer.concat([mp3Frames.subarray(0, 144), Buffer.alloc(5000)])],
    ['an encoder frame alone', encoderFrame],
    ['a RIFF header alone', wav().subarray(0, 8)],
    ['a WAV header alone', wav({ bytes: 0 })],
    ['a WAV header alone that promises data', wav({ bytes: 0, dataSize: 32_000 })],
    ['a WAV whose data has no length', wav({ dataSize: 0 })],
    ['a WAV without data chunk', wav().subarray(0, 36)],
    ['a WAV without format chunk', Buffer.concat([wav().subarray(0, 12), wav().subarray(36)])],
    ['a FLAC header alone', sample('tone.flac').subarray(0, 42)],
    ['FLAC metadata alone', flacMetadata],
    ['FLAC magic before garbage', text(`fLaC${'garbage'.repeat(50)}`)],
    ['an Ogg page alone', sample('tone-opus.ogg').subarray(0, 47)],
    ['Ogg header pages alone', sample('tone-vorbis.ogg').subarray(0, sample('tone-vorbis.ogg').lastIndexOf('OggS'))],
    ['an Ogg video', sample('video-only.ogg')],
    ['Ogg magic before garbage', text(`OggS${'garbage'.repeat(50)}`)],
    ['an MP4 without media', sample('tone.mp4').subarray(0, sample('tone.mp4').indexOf('mdat') + 4)],
    ['an MP4 cut before its track list', sample('tone.m4a').subarray(0, 1200)],
    ['an MP4 video', sample('video-only.mp4')],
    [
      'a WebM header alone',
      sample('tone.webm').subarray(0, sample('tone.webm').indexOf(Buffer.from('1f43b675', 'hex'))),
    ],
    ['a WebM video', sample('video-only.webm')],
  ])('refuses %s as undecodable', async (_kind, content) => {
    expect(await codeOf(content, 'a.mp3')).toBe('audio_undecodable')
  })

  it('refuses a file without bytes', async () => {
    expect(await codeOf(Buffer.alloc(0), 'a.wav')).toBe('empty_file')
  })

  it('answers or refuses whatever bytes are changed or missing, and never breaks', async () => {
    const names = [
      'tone.mp3',
      'tone.wav',
      'tone.flac',
      'tone-opus.ogg',
      'tone-vorbis.ogg',
      'tone.m4a',
      'clip.mp4',
      'tone.webm',
      'tone-live.webm',
      'tone.mpeg',
    ]
    const samples = names.map(sample)
    const change = fc.tuple(fc.nat(400), fc.integer({ min: 0, max: 255 }))
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...samples),
        fc.array(change, { maxLength: 8 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (original, changes, kept) => {
          const content = Buffer.from(original.subarray(0, Math.ceil(original.length * kept)))
          for (const [index, value] of changes) if (index < content.length) content[index] = value
          const result: unknown = await inspectSpooled(content, 'a.mp3', 4096).catch((error: unknown) => error)
          if (result instanceof Error) expect(result).toMatchObject({ kind: 'invalid_request' })
          else expect((result as AudioFacts).durationSeconds ?? 1).toBeGreaterThan(0)
        },
      ),
      { numRuns: 400 },
    )
  })
})
