import { sentencesOf, type SpokenUnit, wordsOf } from './p3-text.js'

/**
 * The content of `subtitle_file`: one entry per sentence with its times (ms, within `lengthMs`) and its place in the
 * text (code points), and on wish its words.
 */
export function subtitlesOf(units: readonly SpokenUnit[], lengthMs: number, withWords: boolean): object[] {
  const within = (timeMs: number): number => Math.min(Math.round(timeMs), lengthMs)
  return sentencesOf(units).map((sentence) => {
    const { text, begin, end, startMs, endMs } = spanOf(sentence)
    const entry = {
      text,
      time_begin: within(startMs),
      time_end: within(endMs),
      text_begin: begin,
      text_end: end,
    }
    if (!withWords) return entry
    const timestamped_words = wordsOf(sentence).map((word) => {
      const span = spanOf(word)
      return {
        word: span.text,
        time_begin: within(span.startMs),
        time_end: within(span.endMs),
        word_begin: span.begin,
        word_end: span.end,
      }
    })
    return { ...entry, timestamped_words }
  })
}

function spanOf(units: readonly SpokenUnit[]): SpokenUnit {
  const first = units[0]
  const last = units.at(-1)
  return {
    text: units.map((unit) => unit.text).join(''),
    begin: first?.begin ?? 0,
    end: last?.end ?? 0,
    startMs: first?.startMs ?? 0,
    endMs: last?.endMs ?? 0,
  }
}
