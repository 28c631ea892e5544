import { CHARACTER_MS } from '../audio/speech-synthesizer.js'

const PAUSE_TAG = /<#[^#<>]*#>/u
const PAUSE_SECONDS = /^<#(\d{1,2}(?:\.\d{1,2})?)#>$/u
const SPEAKABLE = /[\p{L}\p{N}]/u
const HAN = /\p{Script=Han}/u
const WORD = /\p{Script=Han}|[\p{L}\p{N}\p{M}'’]/u
const SENTENCE_END = /[.!?。！？\n]/u
/** Control, format, private and unassigned characters; the joiners are part of visible text, the line ends are layout. */
const INVISIBLE = /(?![\n\r\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}]/u

/** One character as spoken, or one pause (empty `text`). Places count code points of the text as sent. */
interface SpokenUnit {
  readonly text: string
  readonly begin: number
  readonly end: number
  readonly startMs: number
  readonly endMs: number
}

/** What is wrong with the pause tags (`<#1.50#>`, 0.01 to 99.99 s, between speakable text), if anything. */
export function pauseFault(text: string): string | undefined {
  if (!PAUSE_TAG.test(text)) return undefined
  const tags = text.match(new RegExp(PAUSE_TAG, 'gu')) ?? []
  const wrong = tags.find((tag) => pauseSeconds(tag) < 0.01)
  if (wrong !== undefined) return `text has a pause ${wrong} outside <#0.01#> to <#99.99#>`
  if (text.split(PAUSE_TAG).every((part) => SPEAKABLE.test(part))) return undefined
  return 'text has a pause that is not between speakable text'
}

/** The text in the order it is spoken, with times at that speed. A pause is a whole number of characters long. */
export function spokenUnits(text: string, speed: number): SpokenUnit[] {
  const characterMs = CHARACTER_MS / speed
  const units: SpokenUnit[] = []
  let begin = 0
  let startMs = 0
  const push = (unit: string, characters: number, lengthMs: number): void => {
    units.push({ text: unit, begin, end: begin + characters, startMs, endMs: startMs + lengthMs })
    begin += characters
    startMs += lengthMs
  }
  for (const part of text.split(new RegExp(`(${PAUSE_TAG.source})`, 'u'))) {
    if (PAUSE_TAG.test(part)) push('', Array.from(part).length, pauseCharacters(part, characterMs) * characterMs)
    else for (const character of part) push(character, 1, characterMs)
  }
  return units
}

/** The text for a synthesizer that knows no pause tags: a pause becomes as many spaces as last that long. */
export function spokenText(text: string, speed: number): string {
  return text.replace(new RegExp(PAUSE_TAG, 'gu'), (tag) => ' '.repeat(pauseCharacters(tag, CHARACTER_MS / speed)))
}

/** The stretches of units that form a word; a Han character is a word by itself. */
export function wordsOf(units: readonly SpokenUnit[]): SpokenUnit[][] {
  const words: SpokenUnit[][] = []
  let open = false
  for (const unit of units) {
    const inWord = WORD.test(unit.text)
    const alone = HAN.test(unit.text)
    if (inWord && (alone || !open)) words.push([unit])
    else if (inWord) words.at(-1)?.push(unit)
    open = inWord && !alone
  }
  return words
}

/** The stretches of units that form a sentence, its closing marks included; blank ones are left out. */
function sentencesOf(units: readonly SpokenUnit[]): SpokenUnit[][] {
  const sentences: SpokenUnit[][] = [[]]
  let ending = false
  for (const unit of units) {
    const isEnd = SENTENCE_END.test(unit.text)
    if (ending && !isEnd) sentences.push([])
    ending = isEnd
    const sentence = sentences.at(-1)
    // Blanks before a sentence belong to none.
    if (sentence !== undefined && (sentence.length > 0 || unit.text.trim() !== '')) sentence.push(unit)
  }
  return sentences.filter((sentence) => sentence.length > 0)
}

/** Billed characters: a Han character counts two, a pause tag none. */
export function usageCharacters(units: readonly SpokenUnit[]): number {
  return units.reduce((sum, { text }) => sum + (text === '' ? 0 : HAN.test(text) ? 2 : 1), 0)
}

/** Share of invisible characters, 0 to 1. */
export function invisibleRatio(text: string): number {
  const characters = Array.from(text)
  return characters.filter((character) => INVISIBLE.test(character)).length / Math.max(1, characters.length)
}

function pauseCharacters(tag: string, characterMs: number): number {
  return Math.max(1, Math.round((pauseSeconds(tag) * 1000) / characterMs))
}

/** 0 for a tag that is malformed. */
function pauseSeconds(tag: string): number {
  return Number(PAUSE_SECONDS.exec(tag)?.[1] ?? 0)
}

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
