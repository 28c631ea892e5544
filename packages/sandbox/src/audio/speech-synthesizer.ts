import { writeOggOpus } from './audio-containers.js'
import { loadEncodedFrames } from './encoded-syllables.js'
import { flacFrame, flacStreamHeader } from './flac-encoder.js'
import { encodeFlacSubframe } from './flac-subframe.js'
import { type FrameTable, scheduleFrames } from './frame-schedule.js'
import { PCM_FRAME_SAMPLES, renderPcmFrames, SAMPLE_RATE, toPcmBytes } from './pcm-voice.js'
import { checkSpeed } from './speech-plan.js'
import { streamedWavHeader } from './wav-writer.js'

export type SpeechFormat = 'mp3' | 'wav' | 'aac' | 'flac' | 'opus' | 'pcm'

/** Audio in one chunk; the nearest whole number of the format's frames is taken. */
const CHUNK_MS = 120

/**
 * Speaks a text as babble that can be heard: about 60 ms per character divided by the speed (300 ms at least), a short
 * vowel for every few letters, its pitch following them, and silence at spaces and punctuation.
 *
 * Yields the bytes of one mono 24 kHz stream (the header, then about 120 ms each time) and holds no more than one
 * chunk. `pcm` is signed 16-bit little-endian. Throws a RangeError for a speed that is not a positive finite number.
 */
export function synthesizeSpeech(text: string, options: { format: SpeechFormat; speed: number }): Iterable<Buffer> {
  const { format, speed } = options
  checkSpeed(speed)
  switch (format) {
    case 'pcm':
      return joinFrames(text, speed, pcmTable())
    case 'wav':
      return speakWav(text, speed)
    case 'flac':
      return speakFlac(text, speed)
    case 'opus':
      return speakOpus(text, speed)
    case 'mp3':
    case 'aac':
      return joinFrames(text, speed, encodedTable(format))
  }
}

function* speakWav(text: string, speed: number): Generator<Buffer, void, undefined> {
  yield streamedWavHeader(SAMPLE_RATE)
  yield* joinFrames(text, speed, pcmTable())
}

function* speakFlac(text: string, speed: number): Generator<Buffer, void, undefined> {
  const table = flacTable()
  yield flacStreamHeader(SAMPLE_RATE, PCM_FRAME_SAMPLES)
  yield* joinChunks(numberFlacFrames(scheduleFrames(text, speed, table)), table.frameMs)
}

function speakOpus(text: string, speed: number): Iterable<Buffer> {
  const table = encodedTable('opus')
  return writeOggOpus(prepend(table.silence, scheduleFrames(text, speed, table)), SAMPLE_RATE)
}

function* prepend<Frame>(first: Frame, rest: Iterable<Frame>): Generator<Frame, void, undefined> {
  yield first
  yield* rest
}

function* numberFlacFrames(subframes: Iterable<Buffer>): Generator<Buffer, void, undefined> {
  let frameNumber = 0
  for (const subframe of subframes) {
    yield flacFrame(frameNumber, PCM_FRAME_SAMPLES, subframe)
    frameNumber += 1
  }
}

function joinFrames(text: string, speed: number, table: FrameTable<Buffer>): Iterable<Buffer> {
  return joinChunks(scheduleFrames(text, speed, table), table.frameMs)
}

/** Copies every frame, so that a consumer who writes into a chunk cannot change the tables. */
function* joinChunks(frames: Iterable<Buffer>, frameMs: number): Generator<Buffer, void, undefined> {
  const framesPerChunk = Math.round(CHUNK_MS / frameMs)
  let waiting: Buffer[] = []
  for (const frame of frames) {
    waiting.push(frame)
    if (waiting.length < framesPerChunk) continue
    yield Buffer.concat(waiting)
    waiting = []
  }
  if (waiting.length > 0) yield Buffer.concat(waiting)
}

const pcmTable = once(() => mapPcmFrames(toPcmBytes))
const flacTable = once(() => mapPcmFrames(encodeFlacSubframe))
const encodedTables = {
  mp3: once(() => loadEncodedFrames('mp3')),
  aac: once(() => loadEncodedFrames('aac')),
  opus: once(() => loadEncodedFrames('opus')),
}

function encodedTable(format: keyof typeof encodedTables): FrameTable<Buffer> {
  return encodedTables[format]()
}

function mapPcmFrames(encode: (samples: Int16Array) => Buffer): FrameTable<Buffer> {
  const { silence, syllables } = renderPcmFrames()
  return {
    frameMs: (1000 * PCM_FRAME_SAMPLES) / SAMPLE_RATE,
    silence: encode(silence),
    syllables: syllables.map((frames) => frames.map(encode)),
  }
}

/** A table is made when it is first needed, and only once: a gateway outside sandbox mode never pays for it. */
function once<Value>(make: () => Value): () => Value {
  let made: Value | undefined
  return () => (made ??= make())
}
