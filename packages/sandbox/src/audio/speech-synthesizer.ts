import { streamedWavHeader, writeOggOpus } from './audio-containers.js'
import { encodeFlacSubframe, flacFrame, flacStreamHeader } from './flac-encoder.js'
import { PCM_FRAME_SAMPLES, renderPcmFrames, SAMPLE_RATE, toPcmBytes } from './pcm-voice.js'
import { ENCODED_SYLLABLES, type EncodedFormat } from './syllables.table.js'

/** How long one character (Unicode code point) is spoken at speed 1. */
export const CHARACTER_MS = 60

/** The shortest speech, for any text and speed. */
export const MINIMUM_SPEECH_MS = 300

/** A run of letters at least this long (four at speed 1) is closed and becomes one syllable. */
const SYLLABLE_SLOT_MS = 240

const SILENT_CHARACTER = /[\p{P}\p{Z}\p{C}]/u

/** One stretch of the speech: a syllable whose pitch follows its first character, or a pause. */
export type SpeechSegment =
  | { readonly kind: 'syllable'; readonly pitch: number; readonly durationMs: number }
  | { readonly kind: 'silence'; readonly durationMs: number }

/**
 * Length of the speech in milliseconds: 60 per code point divided by the speed, 300 at least.
 *
 * Throws a RangeError for a speed that is not a positive finite number.
 */
export function speechDurationMs(text: string, speed: number): number {
  let durationMs = 0
  for (const segment of planSpeech(text, speed)) durationMs += segment.durationMs
  return Math.max(MINIMUM_SPEECH_MS, durationMs)
}

/**
 * Splits a text into syllables (runs of letters, digits and symbols) and pauses (spaces, punctuation, control
 * characters), in order and one at a time; the durations add up to 60 ms per code point divided by the speed.
 *
 * Throws a RangeError for a speed that is not a positive finite number.
 */
export function* planSpeech(text: string, speed: number): Generator<SpeechSegment, void, undefined> {
  const characterMs = characterDurationMs(speed)
  let pitch = 0
  let letters = 0
  let pauses = 0
  for (const character of text) {
    const silent = SILENT_CHARACTER.test(character)
    if (letters > 0 && (silent || letters * characterMs >= SYLLABLE_SLOT_MS)) {
      yield { kind: 'syllable', pitch, durationMs: letters * characterMs }
      letters = 0
    }
    if (silent) {
      pauses += 1
      continue
    }
    if (pauses > 0) yield { kind: 'silence', durationMs: pauses * characterMs }
    pauses = 0
    if (letters === 0) pitch = character.codePointAt(0) ?? 0
    letters += 1
  }
  if (letters > 0) yield { kind: 'syllable', pitch, durationMs: letters * characterMs }
  if (pauses > 0) yield { kind: 'silence', durationMs: pauses * characterMs }
}

/** Throws a RangeError for a speed that is not a positive finite number. */
function checkSpeed(speed: number): void {
  if (!(speed > 0 && Number.isFinite(speed))) throw new RangeError(`speed must be a positive number, got ${speed}`)
}

function characterDurationMs(speed: number): number {
  checkSpeed(speed)
  return CHARACTER_MS / speed
}

/**
 * The sound of one format, cut into frames of equal length. Every syllable has the same number of frames, and begins and
 * ends in silence, so that syllables and silent frames follow one another in any order.
 */
export interface FrameTable<Frame> {
  readonly frameMs: number
  readonly silence: Frame
  readonly syllables: readonly (readonly Frame[])[]
}

/** How many frames of `frameMs` the speech has: its duration to the nearest frame. */
export function countSpeechFrames(text: string, speed: number, frameMs: number): number {
  return Math.round(speechDurationMs(text, speed) / frameMs)
}

/**
 * The frames of a text in order, one at a time.
 *
 * Frames have a fixed length and characters have not, so a syllable is laid on the nearest frame; one that would start
 * before the last one ended is left out (fast speech), and the last one moves forward to end with the speech. The
 * length of the whole is therefore exact to half a frame.
 */
export function* scheduleFrames<Frame>(
  text: string,
  speed: number,
  table: FrameTable<Frame>,
): Generator<Frame, void, undefined> {
  const totalFrames = countSpeechFrames(text, speed, table.frameMs)
  let laidFrames = 0
  let elapsedMs = 0
  for (const segment of planSpeech(text, speed)) {
    const startMs = elapsedMs
    elapsedMs += segment.durationMs
    if (segment.kind === 'silence') continue
    const syllable = table.syllables[segment.pitch % table.syllables.length] ?? []
    const startFrame = Math.min(Math.round(startMs / table.frameMs), totalFrames - syllable.length)
    if (startFrame < laidFrames) continue
    for (; laidFrames < startFrame; laidFrames += 1) yield table.silence
    yield* syllable
    laidFrames += syllable.length
  }
  for (; laidFrames < totalFrames; laidFrames += 1) yield table.silence
}

/** Samples of one frame and their rate, as the format's specification fixes them. */
const FRAME_MS: Readonly<Record<EncodedFormat, number>> = {
  mp3: (1000 * 576) / 24_000,
  aac: (1000 * 1024) / 24_000,
  opus: 20,
}

/** The frames of a lossy format, unpacked from the table that scripts/make-sandbox-syllables.mjs wrote. */
export function loadEncodedFrames(format: EncodedFormat): FrameTable<Buffer> {
  const { silence, syllables } = ENCODED_SYLLABLES[format]
  return {
    frameMs: FRAME_MS[format],
    silence: Buffer.from(silence, 'base64'),
    syllables: syllables.map((frames) => frames.split(' ').map((frame) => Buffer.from(frame, 'base64'))),
  }
}

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
