import { wordsOf } from '../scores/words.mjs'

const RUN_LENGTH = 4
/** A short line that is somewhere in the truth, but not a line of its own there, may be there by chance. */
const CHANCE = 0.6

/** Tells of a block of text how much of it is in the labelled content: { share (0 to 1), words }. */
export function labeller(truth) {
  const words = wordsOf(truth.toLowerCase())
  const runs = new Set()
  for (let length = 1; length <= RUN_LENGTH; length++) {
    for (let at = 0; at + length <= words.length; at++) runs.add(words.slice(at, at + length).join(' '))
  }
  const lines = new Set(truth.split('\n').map((line) => wordsOf(line.toLowerCase()).join(' ')))
  return (text) => {
    const own = wordsOf(text.toLowerCase())
    if (own.length < RUN_LENGTH) {
      const whole = own.join(' ')
      return { share: lines.has(whole) ? 1 : runs.has(whole) ? CHANCE : 0, words: own.length }
    }
    const count = own.length - RUN_LENGTH + 1
    let found = 0
    for (let at = 0; at < count; at++) if (runs.has(own.slice(at, at + RUN_LENGTH).join(' '))) found++
    return { share: found / count, words: own.length }
  }
}
