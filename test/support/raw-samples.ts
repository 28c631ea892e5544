import { AudioFault } from './audio-fault.js'
import { readMp3Head } from './mp3-frames.js'

/** Signed 16-bit little-endian samples, the channels interleaved. */
export interface RawSamples {
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
export function pcmOf(bytes: Buffer): RawSamples {
  const word = MAGIC_WORDS.find((magic) => bytes.toString('latin1', 0, magic.length) === magic)
  if (word !== undefined) throw new AudioFault(`it begins with ${word}, not with a sample`)
  const first = readMp3Head(bytes, 0)
  if (first !== undefined && readMp3Head(bytes, first.bytes) !== undefined)
    throw new AudioFault('it consists of MP3 frames, not of samples')
  assertOneHeader(bytes)
  return { bytes, sampleRateHz: 24_000, channels: 1, warnings: [] }
}

/** The samples of a RIFF/WAVE file of 16-bit PCM; sizes that were not known yet reach to the end. Throws an AudioFault. */
export function riffSamples(file: Buffer): RawSamples {
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
