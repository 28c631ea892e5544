import { magicNumber } from '../server/magic-text.js'
import { failureOf, GRANT_NOT_FOUND, type P2Failure, WRONG_ENGINE } from './p2-codes.js'

/**
 * Magic words, anywhere in the text of a request or queued with `queueFault('#slow #flag2')`. They can be combined.
 *
 * | Word | What the client sees |
 * |---|---|
 * | `#err<code>` | an error frame with this code; codes of the backend come after the ACK, all others before it |
 * | `#errgrant` `#errquota` `#errconcurrency` `#erraccess` `#errengine` | the same with a text known from the real one |
 * | `#errmid` | an error frame after two audio frames: 3031, or what another `#err` word says |
 * | `#gziperr` | the text of the error frame is compressed; alone it is an error 3031 |
 * | `#jsonerr` | the text of the error frame is a JSON object; alone it is an error 3031 |
 * | `#slow` | silence of `gapMs` after the first audio frame |
 * | `#cut` | the connection is destroyed after two audio frames |
 * | `#closeearly` | the same with a proper close (1000) |
 * | `#hang` | no answer ever, not even the ACK |
 * | `#noack` `#bareack` | no ACK; an ACK of four bytes without a size |
 * | `#garbage` `#textframe` | a frame that cannot be decoded, a text message, before the first audio frame |
 * | `#flag2` `#flag2bare` | the last frame has flags 0x2, with or without its negative sequence |
 * | `#merge` | all audio in the last frame |
 * | `#emptylast` | the last frame holds no audio |
 * | `#bytes=N` | N bytes instead of speech: byte i is i modulo 251 (ogg_opus: real pages, N bytes at least) |
 */
const P2_WORDS = [
  'errmid',
  'gziperr',
  'jsonerr',
  'slow',
  'cut',
  'closeearly',
  'hang',
  'noack',
  'bareack',
  'garbage',
  'textframe',
  'flag2',
  'flag2bare',
  'merge',
  'emptylast',
] as const

/** Codes in these texts are not documented but for 3031, which users report. */
const KNOWN_FAILURES: Readonly<Record<string, P2Failure>> = {
  errgrant: { code: 3001, text: GRANT_NOT_FOUND },
  errquota: { code: 3001, text: 'quota exceeded for types: text_words_lifetime' },
  errconcurrency: { code: 3003, text: 'quota exceeded for types: concurrency' },
  erraccess: { code: 3001, text: 'extract request resource id: get resource id: access denied' },
  errengine: { code: 3031, text: WRONG_ENGINE },
}

export type P2Word = (typeof P2_WORDS)[number]

export interface P2Wish {
  readonly words: ReadonlySet<P2Word>
  readonly failure: P2Failure | undefined
  readonly bytes: number | undefined
}

/** What a text asks for. Words that are none of the table are ordinary text. */
export function readWish(text: string): P2Wish {
  const names = Array.from(text.matchAll(/(?:^|\s)#([a-z0-9]+)(?=\s|$)/g), (match) => match[1] ?? '')
  const words = new Set(P2_WORDS.filter((word) => names.includes(word)))
  return { words, failure: failureWished(names, words), bytes: magicNumber(text, 'bytes') }
}

/** The words of a queued fault that mean nothing: a slip of the test. */
export function unknownWords(text: string): readonly string[] {
  const isKnown = (word: string): boolean =>
    P2_WORDS.some((known) => `#${known}` === word) ||
    Object.keys(KNOWN_FAILURES).some((known) => `#${known}` === word) ||
    /^#(err\d+|bytes=\d{1,12})$/.test(word)
  return text.split(/\s+/).filter((word) => word !== '' && !isKnown(word))
}

function failureWished(names: readonly string[], words: ReadonlySet<P2Word>): P2Failure | undefined {
  const digits = names.map((name) => /^err(\d{1,9})$/.exec(name)?.[1]).find((code) => code !== undefined)
  const coded = digits === undefined ? undefined : failureOf(Number(digits))
  const known = names.map((name) => KNOWN_FAILURES[name]).find((failure) => failure !== undefined)
  if (known !== undefined) return { ...known, ...(coded === undefined ? {} : { code: coded.code }) }
  const needsOne = words.has('errmid') || words.has('gziperr') || words.has('jsonerr')
  return coded ?? (needsOne ? failureOf(3031) : undefined)
}
