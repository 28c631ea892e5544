import { hash } from 'node:crypto'
import { FAULTED, type Schema } from './checks.js'
import type { AdminKey } from './settings.js'
import { keyHash, textAs } from './value-types.js'

/** What every key that the gateway issues begins with; no upstream's key does. */
export const ISSUED_PREFIX = 'sk-gw-'

/** What stands between everybody and every key: it must not be guessed, however many guesses are made. */
export const LEAST_ADMIN_KEY_BITS = 128

/** 122 of its bits are random at best, and the clock gives most of them in some versions. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const UUID_BITS = 122

/**
 * Letters as words have them: in one case, or with a capital, and five or more of them, or set off from the rest. English
 * has one to two bits in a letter.
 */
const WORDS = /[A-Z]?[a-z]{5,}|[A-Z]{5,}|(?<![A-Za-z0-9])(?:[A-Z]?[a-z]+|[A-Z]+)(?![A-Za-z0-9])/g
const BITS_OF_A_WORDS_LETTER = 2

/** So many characters that stood together before tell nothing new. */
const REPEAT_CHARACTERS = 4

/**
 * How many bits a guesser has to find at least, judged by the text alone: the logarithm of how many different characters
 * there are for each character; less for words, nothing for what is repeated or counts on (`abc`, `321`).
 */
export function guessingBits(text: string): number {
  if (UUID.test(text)) return UUID_BITS
  const bitsEach = Math.log2(new Set(text).size)
  const isWord = wordPositions(text)
  const known = new Set<string>()
  let bits = 0
  for (let position = 0; position < text.length; position++) {
    const end = text.slice(Math.max(0, position - REPEAT_CHARACTERS + 1), position + 1).toLowerCase()
    const isNew = end.length < REPEAT_CHARACTERS || !known.has(end)
    known.add(end)
    if (isNew && !countsOn(text, position))
      bits += isWord[position] === true ? Math.min(bitsEach, BITS_OF_A_WORDS_LETTER) : bitsEach
  }
  return bits
}

function wordPositions(text: string): boolean[] {
  const positions = new Array<boolean>(text.length).fill(false)
  for (const { 0: word, index } of text.matchAll(WORDS)) positions.fill(true, index, index + word.length)
  return positions
}

/** The same step as the one before, and no further than to a neighbour: `aaa`, `abc`, `321`. */
function countsOn(text: string, position: number): boolean {
  const step = text.charCodeAt(position) - text.charCodeAt(position - 1)
  return position >= 2 && Math.abs(step) <= 1 && step === text.charCodeAt(position - 1) - text.charCodeAt(position - 2)
}

const HASH = 'sha256:'

const anyKey = textAs(
  `must be 1 to 512 printable ASCII characters without spaces, or ${HASH} and 64 hex digits`,
  (text): AdminKey | undefined => {
    const sha256 = keyHash(text)
    return sha256 === undefined ? undefined : { sha256, isJudged: !text.startsWith(HASH) }
  },
)

/** The operator's own key. Only its hash is kept; what lies behind a hash cannot be judged. */
export const adminKey: Schema<AdminKey> = {
  read(value, at) {
    const key = anyKey.read(value, at)
    if (key === FAULTED || !key.isJudged || guessingBits(String(value)) >= LEAST_ADMIN_KEY_BITS) return key
    return at.fault(
      `is too easy to guess, ${LEAST_ADMIN_KEY_BITS} bits are needed: make one with npm run keys -- admin-key`,
    )
  },
}

const FINGERPRINT_DIGITS = 8

/** Tells admin keys apart in logs and in the audit log; nothing of the key or of its hash can be read from it. */
export const adminFingerprint = ({ sha256 }: AdminKey): string =>
  `admin-${hash('sha256', `fingerprint of ${sha256}`, 'hex').slice(0, FINGERPRINT_DIGITS)}`
