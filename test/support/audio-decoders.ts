import { readFileSync } from 'node:fs'
import { decoder as aacDecoder } from '@audio/decode-aac'
import { expect } from '@jest/globals'
import { FLACDecoder } from '@wasm-audio-decoders/flac'
import { MPEGDecoder } from 'mpg123-decoder'
import { OpusDecoder } from 'opus-decoder'
import type { AudioFacts } from '../../src/audio/audio-facts.js'
import { inspectAudio } from '../../src/audio/audio-probe.js'
import { GatewayError } from '../../src/core/errors.js'
import { SpooledFile } from '../../src/core/spooled-file.js'
import { adtsFrames, AudioFault, flacFrames, type FramedAudio, mp3Frames, readMp3Head } from './audio-frames.js'
import { oggOpusStream } from './ogg-pages.js'

const FIXTURES = new URL('../../src/audio/fixtures/', import.meta.url)

/** One of the recordings beside the inspector. */
export const sample = (name: string): Buffer => readFileSync(new URL(name, FIXTURES))

/** Inspects from memory and from disk; both must say the same. */
export async function inspect(content: Buffer, filename: string): Promise<AudioFacts> {
  const results = await Promise.allSettled(
    [1, 1024 * 1024].map((memoryBytes) => inspectSpooled(content, filename, memoryBytes)),
  )
  const [disk, memory] = results
  expect(disk).toEqual(memory)
  if (disk?.status === 'fulfilled') return disk.value
  throw disk?.reason instanceof Error ? disk.reason : new Error('nothing was thrown')
}

/** Inspects a file that lies on disk when it may take one byte of memory, and in memory otherwise. */
export async function inspectSpooled(content: Buffer, filename: string, memoryBytes: number): Promise<AudioFacts> {
  const spool = new SpooledFile({
    memoryBytes: Math.max(memoryBytes, content.length >> 1, 1) * (memoryBytes > 1 ? 4 : 1),
  })
  try {
    await spool.append(content)
    await spool.finish()
    return await inspectAudio(spool, filename)
  } finally {
    await spool.remove()
  }
}

/** The code of the refusal. Throws when the file is accepted. */
export async function codeOf(content: Buffer, filename: string): Promise<string | undefined> {
  const error = await inspect(content, filename).catch((reason: unknown) => reason)
  if (!(error instanceof GatewayError)) throw new Error(`expected a refusal, got ${JSON.stringify(error)}`)
  expect(error).toMatchObject({ kind: 'invalid_request', details: { param: 'file' } })
  return error.details.code
}

export const text = (content: string): Buffer => Buffer.from(content, 'latin1')
/** An ID3v2.3 tag with `size` bytes of padding. */
export function id3(size: number): Buffer {
  const digits = [21, 14, 7, 0].map((shift) => (size >> shift) & 0x7f)
  return Buffer.concat([text('ID3\u0003\0\0'), Buffer.from(digits), Buffer.alloc(size)])
}
/** A WAV of one second of 16 kHz mono with the given sizes in its header. */
export function wav(options: { dataSize?: number; bytes?: number; format?: number } = {}): Buffer {
  const bytes = options.bytes ?? 32_000
  const header = Buffer.alloc(44)
  header.write('RIFF\0\0\0\0WAVEfmt ', 'latin1')
  header.writeUInt32LE(0xffffffff, 4)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(options.format ?? 1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(16_000, 24)
  header.writeUInt32LE(32_000, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36)
  header.writeUInt32LE(options.dataSize ?? bytes, 40)
  return Buffer.concat([header, Buffer.alloc(bytes, 3)])
}

/** Signed 16-bit little-endian samples, the channels interleaved. */
interface RawSamples {
  readonly bytes: Buffer
  readonly sampleRateHz: number
  readonly channels: number
  readonly warnings: readonly string[]
}

/** What a writer puts as a size that it does not know yet. */
const UNKNOWN_BYTES = 0xffffffff
const PCM_FORMAT = 1
const MAGIC_WORDS = ['RIFF', 'OggS', 'fLaC', 'ID3', 'data']

/** The specification's raw PCM: 24 kHz, mono. Throws an AudioFault for what is visibly something else. */
function pcmOf(bytes: Buffer): RawSamples {
  const word = MAGIC_WORDS.find((magic) => bytes.toString('latin1', 0, magic.length) === magic)
  if (word !== undefined) throw new AudioFault(`it begins with ${word}, not with a sample`)
  const first = readMp3Head(bytes, 0)
  if (first !== undefined && readMp3Head(bytes, first.bytes) !== undefined)
    throw new AudioFault('it consists of MP3 frames, not of samples')
  assertOneHeader(bytes)
  return { bytes, sampleRateHz: 24_000, channels: 1, warnings: [] }
}

/** The samples of a RIFF/WAVE file of 16-bit PCM; sizes that were not known yet reach to the end. Throws an AudioFault. */
function riffSamples(file: Buffer): RawSamples {
  if (file.length < 12 || file.toString('latin1', 0, 4) !== 'RIFF' || file.toString('latin1', 8, 12) !== 'WAVE')
    throw new AudioFault('it does not begin as a RIFF/WAVE file')
  const riffBytes = file.readUInt32LE(4)
  if (riffBytes !== UNKNOWN_BYTES && riffBytes + 8 !== file.length)
    throw new AudioFault(`the RIFF chunk says ${riffBytes} bytes, and ${file.length - 8} follow`)
  const chunks = chunksOf(file)
  const format = chunks.get('fmt ')
  const bytes = chunks.get('data')
  if (format === undefined || bytes === undefined) throw new AudioFault('the chunks fmt and data are not both there')
  if (format.readUInt16LE(0) !== PCM_FORMAT || format.readUInt16LE(14) !== 16) throw new AudioFault('not 16-bit PCM')
  const channels = format.readUInt16LE(2)
  const sampleRateHz = format.readUInt32LE(4)
  if (format.readUInt16LE(12) !== 2 * channels || format.readUInt32LE(8) !== 2 * channels * sampleRateHz)
    throw new AudioFault('the fmt chunk contradicts itself')
  assertOneHeader(bytes)
  return { bytes, sampleRateHz, channels, warnings: [] }
}

/** Files joined carelessly leave the header of the second among the samples, where it is heard as a click. */
function assertOneHeader(samples: Buffer): void {
  const at = samples.indexOf('WAVEfmt ')
  if (at >= 0) throw new AudioFault(`a second header stands among the samples, at byte ${at}`)
}

function chunksOf(file: Buffer): ReadonlyMap<string, Buffer> {
  const chunks = new Map<string, Buffer>()
  for (let at = 12; at < file.length;) {
    if (at + 8 > file.length) throw new AudioFault(`the chunk at byte ${at} breaks off`)
    const name = file.toString('latin1', at, at + 4)
    const size = file.readUInt32LE(at + 4)
    const end = size === UNKNOWN_BYTES && name === 'data' ? file.length : at + 8 + size
    if (end > file.length) throw new AudioFault(`the chunk ${name} breaks off`)
    if (chunks.has(name)) throw new AudioFault(`there are two chunks ${name}: two files one after the other?`)
    chunks.set(name, file.subarray(at + 8, end))
    at = end + (end % 2)
  }
  return chunks
}

export interface DecodedAudio {
  readonly sampleRateHz: number
  readonly channels: number
  /** Per channel. */
  readonly samples: number
  /** The largest sample, 0 to 1. */
  readonly peak: number
  readonly seconds: number
  /** What a player survives and a careful writer avoids. */
  readonly warnings: readonly string[]
}

type Decoder = (bytes: Buffer) => Promise<Omit<DecodedAudio, 'seconds'>>

const DECODERS: Readonly<Record<string, Decoder>> = {
  'audio/mpeg': decodeMp3,
  'audio/opus': decodeOpus,
  'audio/flac': decodeFlac,
  'audio/aac': decodeAac,
  'audio/wav': (bytes) => Promise.resolve(rawAudio(riffSamples(bytes))),
  'audio/pcm': (bytes) => Promise.resolve(rawAudio(pcmOf(bytes))),
}

/**
 * Decodes what an answer of this Content-Type carries. Lenient where players are and no further: every byte must belong
 * to a frame. Throws an AudioFault for garbage, another format, and audio that breaks off inside a frame; a cut exactly
 * between two frames shows in Ogg alone, since no other streamed format says where it ends.
 */
export async function decode(contentType: string, bytes: Buffer): Promise<DecodedAudio> {
  const decoder = Object.hasOwn(DECODERS, contentType) ? DECODERS[contentType] : undefined
  if (decoder === undefined) throw new AudioFault(`nothing decodes ${contentType}`)
  const audio = await decoder(bytes)
  if (audio.samples <= 0) throw new AudioFault('there is not one sample in it')
  return { ...audio, seconds: audio.samples / audio.sampleRateHz }
}

async function decodeMp3(bytes: Buffer): Promise<Omit<DecodedAudio, 'seconds'>> {
  const framed = mp3Frames(bytes)
  const decoder = new MPEGDecoder({ enableGapless: false })
  await decoder.ready
  const { samplesDecoded, sampleRate, errors, channelData } = decoder.decode(Buffer.concat(framed.frames))
  decoder.free()
  assertDecoded(framed, { samplesDecoded, sampleRate, errors })
  return { ...countOf(framed), peak: peakOf(channelData) }
}

async function decodeFlac(bytes: Buffer): Promise<Omit<DecodedAudio, 'seconds'>> {
  const framed = flacFrames(bytes)
  const decoder = new FLACDecoder()
  await decoder.ready
  const { samplesDecoded, sampleRate, errors, channelData } = await decoder.decodeFrames([...framed.frames])
  decoder.free()
  assertDecoded(framed, { samplesDecoded, sampleRate, errors })
  return { ...countOf(framed), peak: peakOf(channelData) }
}

async function decodeOpus(bytes: Buffer): Promise<Omit<DecodedAudio, 'seconds'>> {
  const framed = oggOpusStream(bytes)
  const decoder = new OpusDecoder({ channels: framed.channels, preSkip: framed.preSkip })
  await decoder.ready
  const { samplesDecoded, sampleRate, errors, channelData } = decoder.decodeFrames([...framed.frames])
  decoder.free()
  // The last granule position may end the stream inside its last packet; it cannot promise more than was sent.
  if (samplesDecoded < framed.samples)
    throw new AudioFault(`${framed.samples} samples promised, ${samplesDecoded} sent`)
  assertDecoded({ ...framed, samples: samplesDecoded }, { samplesDecoded, sampleRate, errors })
  return { ...countOf(framed), peak: peakOf(channelData) }
}

async function decodeAac(bytes: Buffer): Promise<Omit<DecodedAudio, 'seconds'>> {
  const framed = adtsFrames(bytes)
  const decoder = await aacDecoder()
  const { sampleRate, channelData } = decoder.decode(Buffer.concat(framed.frames))
  decoder.free()
  // Low rates come out at twice their rate (implicit SBR), and the first frame only primes the decoder.
  const perSample = sampleRate / framed.sampleRateHz
  const samplesDecoded = (channelData[0]?.length ?? 0) / perSample
  const expected = framed.samples - framed.samples / framed.frames.length
  if (perSample !== 1 && perSample !== 2) throw new AudioFault(`${framed.sampleRateHz} Hz decode as ${sampleRate} Hz`)
  if (samplesDecoded !== expected) throw new AudioFault(`${expected} samples decode as ${samplesDecoded}`)
  return { ...countOf(framed), peak: peakOf(channelData) }
}

interface Decoded {
  readonly samplesDecoded: number
  readonly sampleRate: number
  readonly errors: readonly { readonly message: string }[]
}

function assertDecoded(framed: FramedAudio, { samplesDecoded, sampleRate, errors }: Decoded): void {
  if (errors.length > 0) throw new AudioFault(errors.map(({ message }) => message).join('; '))
  if (sampleRate !== framed.sampleRateHz) throw new AudioFault(`${framed.sampleRateHz} Hz decode as ${sampleRate} Hz`)
  if (samplesDecoded !== framed.samples) throw new AudioFault(`${framed.samples} samples decode as ${samplesDecoded}`)
}

const countOf = ({ sampleRateHz, channels, samples, warnings }: FramedAudio): Omit<FramedAudio, 'frames'> => ({
  sampleRateHz,
  channels,
  samples,
  warnings,
})

/** By index: an iterator over arrays of two kinds takes five times as long. */
function peakOf(channels: readonly (Float32Array | Int16Array)[]): number {
  let peak = 0
  for (const samples of channels) {
    for (let index = 0; index < samples.length; index += 1) peak = Math.max(peak, Math.abs(samples[index] ?? 0))
  }
  return peak
}

function rawAudio({ sampleRateHz, channels, bytes, warnings }: RawSamples): Omit<DecodedAudio, 'seconds'> {
  const blockBytes = 2 * channels
  if (bytes.length % blockBytes !== 0) throw new AudioFault('it breaks off inside a sample')
  const peak = peakOf([samplesOf(bytes)]) / 32_768
  return { sampleRateHz, channels, samples: bytes.length / blockBytes, peak, warnings }
}

/** Copied, because the bytes may begin at an odd place of their memory. */
const samplesOf = (bytes: Buffer): Int16Array => new Int16Array(Uint8Array.from(bytes).buffer)
