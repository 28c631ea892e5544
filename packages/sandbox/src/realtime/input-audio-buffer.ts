import type { JsonObject } from '../server/json-value.js'
import { type AudioFormat, bytesPerMs, loudness } from './audio-format.js'
import { AudioTally } from './audio-tally.js'
import { VOICE_FRAME_MS, VoiceActivity } from './voice-activity.js'

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
