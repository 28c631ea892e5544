import { randomInt } from 'node:crypto'
import { ISSUED_PREFIX } from '../config/issued-prefix.js'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 256 bits. */
const CHARACTERS = 43
/** 24 bits: enough to tell one's own keys apart, nothing to somebody who guesses the rest. */
const HINT_CHARACTERS = 4

/** A new key: the prefix and 256 random bits. Its only copy. */
export function newKey(prefix = ISSUED_PREFIX): string {
  let key = prefix
  for (let count = 0; count < CHARACTERS; count++) key += ALPHABET.charAt(randomInt(ALPHABET.length))
  return key
}

/** How a key that was issued begins. */
export const hintOf = (key: string): string => key.slice(0, ISSUED_PREFIX.length + HINT_CHARACTERS)
