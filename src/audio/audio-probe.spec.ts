import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { codeOf, id3, inspect, inspectSpooled, sample, text, wav } from '../../test/support/audio-decoders.js'
import { SpooledFile } from '../core/spooled-file.js'
import { ACCEPTED_FILE_FORMATS, type AudioFacts, ByteWindow } from './audio-facts.js'
import { durationOf } from './audio-probe.js'
import { inspectMp4, inspectWebm } from './mp4-webm.js'

// The search for a length ends after a second, which a busy machine may spend on others.
beforeEach(() => {
  jest.spyOn(performance, 'now').mockReturnValue(0)
})
afterEach(() => {
  jest.restoreAllMocks()
})

async function durationIn(content: Buffer, contentType: string, timeLimitMs?: number): Promise<number | undefined> {
  const spool = new SpooledFile({ memoryBytes: 65_536 })
  await spool.append(content)
  await spool.finish()
  try {
    return await durationOf(new ByteWindow(spool), contentType, timeLimitMs)
  } finally {
    await spool.remove()
  }
}

const frames = readFileSync(new URL('fixtures/tone-no-xing.mp3', import.meta.url)).subarray(20)

describe('durationOf', () => {
  it('finds the length of a long file without loading it', async () => {
    const repeats = 2000
    const seconds = await durationIn(Buffer.concat(Array.from({ length: repeats }, () => frames)), 'audio/mpeg')
    expect(seconds).toBeCloseTo(0.576 * repeats, -1)
  })

  it('gives up at its time limit', async () => {
    expect(await durationIn(frames, 'audio/mpeg')).toBeCloseTo(0.576, 2)
    expect(await durationIn(frames, 'audio/mpeg', -1)).toBeUndefined()
  })

  it('does not know rather than fail on what the library cannot read', async () => {
    expect(await durationIn(Buffer.from('no audio'), 'audio/flac')).toBeUndefined()
  })
})

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

describe('a hostile file', () => {
  /** 4,096 elements, and the few reads that look into one. */
  const READ_LIMIT = 4_200

  class CountingWindow extends ByteWindow {
    reads = 0

    override bytes(position: number, length: number): Promise<Buffer> {
      this.reads += 1
      return super.bytes(position, length)
    }
  }

  type Inspector = (bytes: ByteWindow, extension: string) => Promise<unknown>

  async function inspect(content: Buffer, inspector: Inspector): Promise<{ reads: number; verdict: unknown }> {
    const spool = new SpooledFile({ memoryBytes: content.length * 4 })
    try {
      await spool.append(content)
      await spool.finish()
      const bytes = new CountingWindow(spool)
      const verdict: unknown = await inspector(bytes, 'webm').catch((error: unknown) => error)
      return { reads: bytes.reads, verdict }
    } finally {
      await spool.remove()
    }
  }

  const repeat = (piece: Buffer, count: number): Buffer => Buffer.concat(Array<Buffer>(count).fill(piece))

  /** An MP4 box; `size` is what it claims. */
  function box(type: string, content: Buffer = Buffer.alloc(0), size = content.length + 8): Buffer {
    const header = Buffer.alloc(8)
    header.writeUInt32BE(size)
    header.write(type, 4, 'latin1')
    return Buffer.concat([header, content])
  }

  /** An EBML element with a size of eight bytes; `size` is what it claims. */
  function element(id: string, content: Buffer = Buffer.alloc(0), size = content.length): Buffer {
    const header = Buffer.alloc(8)
    header.writeBigUInt64BE(BigInt(size))
    header.writeUInt8(0x01, 0)
    return Buffer.concat([Buffer.from(id, 'hex'), header, content])
  }

  const FAR = 100_000_000
  const mp4 = (tracks: Buffer): Buffer => Buffer.concat([box('ftyp', Buffer.from('isom')), box('moov', tracks)])
  const webm = (segments: Buffer): Buffer => {
    const audioTrack = element('1654ae6b', element('ae', element('83', Buffer.of(2))))
    const head = element('1a45dfa3', element('4282', Buffer.from('webm')))
    return Buffer.concat([head, element('18538067', audioTrack), segments])
  }

  it.each<[string, Buffer, Inspector]>([
    [
      'an MP4 of tracks that claim all that follows',
      mp4(repeat(box('trak', box('mdia', undefined, FAR)), 800)),
      inspectMp4,
    ],
    ['an MP4 of nested boxes without end', mp4(repeat(box('trak', box('mdia', box('minf'))), 4000)), inspectMp4],
    [
      'a WebM of clusters that claim all that follows',
      webm(repeat(element('18538067', element('1f43b675', undefined, FAR)), 800)),
      inspectWebm,
    ],
    [
      'a WebM of nested elements without end',
      webm(repeat(element('18538067', element('1f43b675', element('e7'))), 4000)),
      inspectWebm,
    ],
  ])('%s is refused after a bounded number of reads', async (_name, content, inspector) => {
    const { reads, verdict } = await inspect(content, inspector)
    expect(verdict).toMatchObject({ kind: 'invalid_request', details: { code: 'audio_undecodable' } })
    expect(reads).toBeLessThanOrEqual(READ_LIMIT)
  })

  it('lends a track no sound of the track behind it', async () => {
    const handler = box('hdlr', Buffer.from('\0\0\0\0\0\0\0\0soun', 'latin1'))
    const claiming = box('trak', box('mdia', undefined, FAR))
    const content = Buffer.concat([mp4(Buffer.concat([claiming, handler])), box('mdat', Buffer.alloc(9))])
    expect((await inspect(content, inspectMp4)).verdict).toMatchObject({ details: { code: 'audio_undecodable' } })
  })
})
