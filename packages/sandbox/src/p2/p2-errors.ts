import { numberWord } from '../server/generated-text.js'

export interface P2Failure {
  readonly code: number
  readonly text: string
}

export const GRANT_NOT_FOUND = 'authenticate request: load grant: requested grant not found'
export const WRONG_ENGINE = 'Fail to feed text, reason Init Engine Instance failed'

/** The upstream's own table; the words behind each code are what its documentation or its users report. */
const CODE_TEXTS: Readonly<Record<number, string>> = {
  3001: 'invalid request',
  3003: 'quota exceeded for types: concurrency',
  3005: 'backend service is busy',
  3006: 'request with the same reqid has been finished or failed',
  3010: 'text is too long',
  3011: 'illegal input text!',
  3030: 'processing timed out',
  3031: 'processing failed',
  3032: 'waiting for audio timed out',
  3040: 'backend link failed',
  3050: 'voice type not exist',
}

/** What is wrong while the speech is made; all other codes judge the request, so no acknowledgement precedes them. */
const BACKEND_CODES: readonly number[] = [3005, 3030, 3031, 3032, 3040]

export function failureOf(code: number): P2Failure {
  return { code, text: CODE_TEXTS[code] ?? `unknown error ${code}` }
}

export function isBackendFailure(failure: P2Failure): boolean {
  return BACKEND_CODES.includes(failure.code)
}

/** A request the upstream does not take. `isViolation` marks requests that a relay must not send for any caller's request. */
export class P2Rejection extends Error {
  constructor(
    readonly code: number,
    message = failureOf(code).text,
    readonly isViolation = false,
  ) {
    super(message)
  }
}

/** Throws what only a faulty relay can cause. */
export function violate(message: string, code = 3001): never {
  throw new P2Rejection(code, message, true)
}

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

/** The faults that a text selects. Words that are not in the table are ordinary text. */
export function readWish(text: string): P2Wish {
  const names = Array.from(text.matchAll(/(?:^|\s)#([a-z0-9]+)(?=\s|$)/g), (match) => match[1] ?? '')
  const words = new Set(P2_WORDS.filter((word) => names.includes(word)))
  return { words, failure: failureWished(names, words), bytes: numberWord(text, 'bytes') }
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
