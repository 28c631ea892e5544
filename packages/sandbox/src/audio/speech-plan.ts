/** How long one character (Unicode code point) is spoken at speed 1. */
export const CHARACTER_MS = 60

/** The shortest speech there is, whatever the text and the speed. */
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
export function checkSpeed(speed: number): void {
  if (!(speed > 0 && Number.isFinite(speed))) throw new RangeError(`speed must be a positive number, got ${speed}`)
}

function characterDurationMs(speed: number): number {
  checkSpeed(speed)
  return CHARACTER_MS / speed
}
