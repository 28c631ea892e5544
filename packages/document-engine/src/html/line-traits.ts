import type { TextBlock } from './page-blocks.js'
import { isProse } from './text-blocks.js'

/** What the characters of a block tell, whatever the language. */
export interface LineTraits {
  readonly length: number
  readonly words: number
  readonly linkedShare: number
  /** Of the letters. */
  readonly upperShare: number
  /** Of the words. */
  readonly capitalizedShare: number
  readonly sentences: number
  readonly endsSentence: boolean
  readonly isProse: boolean
  /** 0 for what is no heading. */
  readonly headingLevel: number
}

const LETTER = /\p{L}/gu
const UPPER = /\p{Lu}/gu
const CAPITALIZED = /(?:^|\s)\p{Lu}/gu
const SENTENCE_END = /[.!?](?=\s|$|["'”’)])|[。！？]/g
const LAST_SENTENCE_END = /[.!?。！？…]["'”’)]?$/
const HEADING = /^h([1-6])$/

export function lineTraits(block: TextBlock): LineTraits {
  const { text } = block
  const words = countOf(text, / /g) + 1
  const letters = countOf(text, LETTER)
  return {
    length: text.length,
    words,
    linkedShare: block.linkedLength / text.length,
    upperShare: letters === 0 ? 0 : countOf(text, UPPER) / letters,
    capitalizedShare: countOf(text, CAPITALIZED) / words,
    sentences: countOf(text, SENTENCE_END),
    endsSentence: LAST_SENTENCE_END.test(text.slice(-3)),
    isProse: isProse(block),
    headingLevel: headingLevel(block),
  }
}

function countOf(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0
}

/** A heading may hold a block of its own. */
function headingLevel({ container }: TextBlock): number {
  for (const element of [container.element, container.parent?.element]) {
    const level = HEADING.exec(element?.localName ?? '')?.[1]
    if (level !== undefined) return Number(level)
  }
  return 0
}
