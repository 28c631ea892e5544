import { fieldOf, type JsonObject, textOf } from '../server/json-value.js'

/** Length of the pieces that are judged as loud or quiet. */
export const VOICE_FRAME_MS = 20

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
export class VoiceActivity {
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
