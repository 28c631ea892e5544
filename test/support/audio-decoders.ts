import { decoder as aacDecoder } from '@audio/decode-aac'
import { FLACDecoder } from '@wasm-audio-decoders/flac'
import { MPEGDecoder } from 'mpg123-decoder'
import { OpusDecoder } from 'opus-decoder'
import { adtsFrames } from './adts-frames.js'
import { AudioFault, type FramedAudio } from './audio-fault.js'
import { flacFrames } from './audio-frames.js'
import { mp3Frames } from './mp3-frames.js'
import { oggOpusStream } from './ogg-opus-stream.js'
import { pcmOf, type RawSamples, riffSamples } from './raw-samples.js'

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

/** Without `Math`: jest looks globals up anew each time, which is most of the work of millions of samples. */
function peakOf(channels: readonly (Float32Array | Int16Array)[]): number {
  let peak = 0
  for (const samples of channels) {
    for (const sample of samples) {
      const size = sample < 0 ? -sample : sample
      if (size > peak) peak = size
    }
  }
  return peak
}

function rawAudio({ sampleRateHz, channels, bytes, warnings }: RawSamples): Omit<DecodedAudio, 'seconds'> {
  const blockBytes = 2 * channels
  if (bytes.length % blockBytes !== 0) throw new AudioFault('it breaks off inside a sample')
  const peak = peakOf([samplesOf(bytes)]) / 32_768
  return { sampleRateHz, channels, samples: bytes.length / blockBytes, peak, warnings }
}

function samplesOf(bytes: Buffer): Int16Array {
  const samples = new Int16Array(bytes.length / 2)
  for (let index = 0; index < samples.length; index += 1) samples[index] = bytes.readInt16LE(2 * index)
  return samples
}
