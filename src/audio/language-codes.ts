import { iso6393 } from 'iso-639-3'

/** Withdrawn from ISO 639-1, but the only code by which Whisper models know Javanese. */
const WHISPER_JAVANESE = 'jw'

const CODES: ReadonlySet<string> = new Set([
  ...iso6393.flatMap(({ iso6391, iso6393: threeLetters }) => (iso6391 ? [iso6391, threeLetters] : [threeLetters])),
  WHISPER_JAVANESE,
])

/** Whether the value is a code of ISO 639-1 (two letters) or ISO 639-3 (three letters), in either case. */
export function isLanguageCode(value: string): boolean {
  return CODES.has(value.toLowerCase())
}
