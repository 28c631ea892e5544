import { SAMPLE_RATE } from '../audio/pcm-voice.js'
import { synthesizeSpeech, type SpeechFormat } from '../audio/speech-synthesizer.js'
import { streamedWavHeader } from '../audio/wav-writer.js'
import type { P2Encoding, P2Request } from './p2-request.js'

const FORMATS: Readonly<Record<P2Encoding, SpeechFormat>> = { pcm: 'pcm', wav: 'pcm', mp3: 'mp3', ogg_opus: 'opus' }
const FLAT_PIECE_BYTES = 16_384
const BYTES_PER_SAMPLE = 2
/** Opus of the synthesizer is at least that dense, so that a text of this length makes the bytes wished for. */
const OPUS_BYTES_PER_CHARACTER = 150

/** The audio of a request, about 120 ms at a time; the flat bytes of `#bytes=N` when N is given. */
export function* speak(request: P2Request, flatBytes: number | undefined): Generator<Buffer, void, undefined> {
  const { encoding, rate } = request
  if (flatBytes !== undefined && encoding !== 'ogg_opus') {
    yield* flatAudio(flatBytes)
    return
  }
  const text = flatBytes === undefined ? request.text : longText(flatBytes)
  if (encoding === 'wav') yield streamedWavHeader(rate)
  for (const chunk of synthesizeSpeech(text, { format: FORMATS[encoding], speed: request.speed })) {
    yield rate === SAMPLE_RATE ? chunk : resample(chunk, rate)
  }
}

/**
 * Takes the sample before each new instant. The voices have nothing above 4 kHz, so no filter is needed; chunks are whole
 * frames of 480 samples, so each can be taken alone.
 */
function resample(pcm: Buffer, rate: number): Buffer {
  const samples = Math.floor((pcm.length / BYTES_PER_SAMPLE) * (rate / SAMPLE_RATE))
  const resampled = Buffer.alloc(samples * BYTES_PER_SAMPLE)
  for (let index = 0; index < samples; index += 1) {
    const source = Math.floor((index * SAMPLE_RATE) / rate)
    resampled.writeInt16LE(pcm.readInt16LE(source * BYTES_PER_SAMPLE), index * BYTES_PER_SAMPLE)
  }
  return resampled
}

/** Exactly `total` bytes, byte i being i modulo 251. Flat in memory for any size. */
function* flatAudio(total: number): Generator<Buffer, void, undefined> {
  const period = 251
  const pattern = Buffer.from(Array.from({ length: FLAT_PIECE_BYTES + period }, (_, index) => index % period))
  for (let sent = 0; sent < total; sent += FLAT_PIECE_BYTES) {
    const start = sent % period
    yield pattern.subarray(start, start + Math.min(FLAT_PIECE_BYTES, total - sent))
  }
}

function longText(bytes: number): string {
  const sentence = 'sand box '
  return sentence.repeat(Math.ceil(bytes / OPUS_BYTES_PER_CHARACTER / sentence.length))
}
