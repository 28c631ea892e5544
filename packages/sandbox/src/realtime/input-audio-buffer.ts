import { fieldOf, type JsonObject, textOf } from '../server/json-value.js'
import { type AudioFormat, AudioTally, bytesPerMs, loudness } from './audio-format.js'

/** Length of the pieces that are judged as loud or quiet. */
const VOICE_FRAME_MS = 20

/** Root mean square that counts as speech at threshold 0.5; -34 dB of full scale. */
const LOUD_AT_HALF = 0.02
/** A single loud frame is a click. */
const FRAMES_TO_START = 2
/**
 * The synthesizer's pauses between words reach 360 ms, and energy alone cannot tell them from the end of a sentence: a
 * shorter `silence_duration_ms` counts as this one.
 */
const SHORTEST_SILENCE_MS = 400
/** The real one guesses from the words whether a sentence is over; this one waits longer or shorter. */
const SEMANTIC_SILENCE_MS: Readonly<Record<string, number>> = { low: 2000, medium: 1000, auto: 1000, high: 500 }

/** Finds where speech begins and ends by its energy. */
class VoiceActivity {
  speaking = false
  #loudFrames = 0
  #quietMs = 0

  constructor(private readonly settings: JsonObject) {}

  get createsResponse(): boolean {
    return this.settings['create_response'] === true
  }

  get interruptsResponse(): boolean {
    return this.settings['interrupt_response'] === true
  }

  get prefixPaddingMs(): number {
    return Number(this.settings['prefix_padding_ms'] ?? 0)
  }

  /** Judges the next 20 ms by their loudness (0 to 1). */
  hear(loudness: number): 'started' | 'stopped' | undefined {
    const threshold = Number(this.settings['threshold'] ?? 0.5)
    const isLoud = loudness > 0 && loudness >= 2 * LOUD_AT_HALF * threshold
    this.#loudFrames = isLoud ? this.#loudFrames + 1 : 0
    this.#quietMs = isLoud ? 0 : this.#quietMs + VOICE_FRAME_MS
    if (!this.speaking && this.#loudFrames >= FRAMES_TO_START) {
      this.speaking = true
      return 'started'
    }
    if (!this.speaking || isLoud || this.#quietMs < this.#silenceMs) return undefined
    this.speaking = false
    return 'stopped'
  }

  get #silenceMs(): number {
    const silenceMs = fieldOf(this.settings, 'silence_duration_ms')
    if (typeof silenceMs === 'number') return Math.max(SHORTEST_SILENCE_MS, silenceMs)
    return SEMANTIC_SILENCE_MS[textOf(fieldOf(this.settings, 'eagerness'))] ?? 1000
  }
}

/** The start or end of speech, in milliseconds of audio received since the session began. */
export interface VoiceSignal {
  readonly kind: 'started' | 'stopped'
  readonly atMs: number
}

/** Audio that was committed to the conversation. */
export interface CommittedAudio {
  readonly bytes: number
  readonly durationMs: number
  readonly checksum: string
  readonly format: AudioFormat
}

/** The input buffer: a count and a checksum of what is in it, and 20 ms of samples for the detection of speech. */
export class InputAudio {
  #tally = new AudioTally()
  #receivedMs = 0
  #format: AudioFormat = 'pcm16'
  #frame = Buffer.alloc(0)
  #frameBytes = 0
  #detector: VoiceActivity | undefined
  #detection: JsonObject | null = null

  get detector(): VoiceActivity | undefined {
    return this.#detector
  }

  get durationMs(): number {
    return this.#tally.bytes / bytesPerMs(this.#format)
  }

  /** Takes the session's settings over; new ones begin with silence. */
  configure(format: AudioFormat, detection: JsonObject | null): void {
    const isSame = format === this.#format && detection === this.#detection
    if (isSame && this.#frame.length > 0) return
    this.#format = format
    this.#detection = detection
    this.#detector = detection === null ? undefined : new VoiceActivity(detection)
    this.#frame = Buffer.alloc(VOICE_FRAME_MS * bytesPerMs(format))
    this.#frameBytes = 0
  }

  /** Takes audio in; after each signal the buffer holds exactly the audio before it. */
  *append(audio: Buffer): Generator<VoiceSignal, void, undefined> {
    let offset = 0
    while (offset < audio.length) {
      const piece = audio.subarray(offset, offset + this.#frame.length - this.#frameBytes)
      offset += piece.length
      const signal = this.#take(piece)
      if (signal !== undefined) yield signal
    }
  }

  /** Empties the buffer and tells what was in it. */
  commit(): CommittedAudio {
    const { bytes, checksum } = this.#tally
    const committed = { bytes, checksum, durationMs: this.durationMs, format: this.#format }
    this.clear()
    return committed
  }

  clear(): void {
    this.#tally = new AudioTally()
    if (this.#detection !== null) this.#detector = new VoiceActivity(this.#detection)
  }

  #take(piece: Buffer): VoiceSignal | undefined {
    this.#tally.add(piece)
    this.#receivedMs += piece.length / bytesPerMs(this.#format)
    piece.copy(this.#frame, this.#frameBytes)
    this.#frameBytes += piece.length
    if (this.#frameBytes < this.#frame.length) return undefined
    this.#frameBytes = 0
    const kind = this.#detector?.hear(loudness(this.#frame, this.#format))
    if (kind === undefined) return undefined
    const prefixMs = kind === 'started' ? (this.#detector?.prefixPaddingMs ?? 0) : 0
    return { kind, atMs: Math.max(0, Math.round(this.#receivedMs - prefixMs)) }
  }
}
