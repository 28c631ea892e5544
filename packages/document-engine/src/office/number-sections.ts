/** A piece of a number format: letters of dates and places of digits have a kind of their own. */
export interface FormatToken {
  readonly kind:
    | 'literal'
    | 'digit'
    | 'point'
    | 'comma'
    | 'percent'
    | 'exponent'
    | 'slash'
    | 'date'
    | 'elapsed'
    | 'noon'
    | 'general'
    | 'text'
  /** As written; the text itself of a literal. */
  readonly text: string
}

export interface FormatSection {
  readonly tokens: readonly FormatToken[]
  /** Undefined without a condition of its own such as `[>=100]`. */
  readonly condition: ((value: number) => boolean) | undefined
  /** BCP 47 tag or number of Windows of the language of names; '' without one. */
  readonly language: string
  /** Whether the format leaves dates to the system. */
  readonly isOfSystem: boolean
}

/** Longest format that Excel accepts; hostile files have longer ones. */
const LONGEST_CODE = 255

/**
 * One token of a format (ECMA-376 part 1, 18.8.31): quoted text, an escaped character, room for a character and filling, brackets,
 * letters of dates, places of digits.
 */
const TOKEN =
  /"([^"]*)"?|\\(.?)|_.?|\*.?|\[([^\]]*)\]?|(general)|(am\/pm|a\/p)|(y+|m+|d+|h+|s+|e(?![+-])|g+|b+)|(e[+-])|([0#?])|(\.)|(,)|(%)|(\/)|(@)|([^])/giu

/** The sections of a format, one at least. Linear time. */
export function formatSections(code: string): readonly FormatSection[] {
  const sections: FormatSection[] = []
  let section = new SectionReader()
  for (const match of code.slice(0, LONGEST_CODE).matchAll(TOKEN)) {
    if (match[0] === ';') {
      sections.push(section.finish())
      section = new SectionReader()
    } else section.add(match)
  }
  return [...sections, section.finish()]
}

const KINDS: readonly FormatToken['kind'][] = [
  'general',
  'noon',
  'date',
  'exponent',
  'digit',
  'point',
  'comma',
  'percent',
  'slash',
  'text',
]
const FIRST_KIND_GROUP = 4
const LITERAL_GROUP = FIRST_KIND_GROUP + KINDS.length

class SectionReader {
  private readonly tokens: FormatToken[] = []
  private condition: FormatSection['condition']
  private language = ''
  private isOfSystem = false

  add(match: RegExpMatchArray): void {
    const literal = match[1] ?? match[2] ?? match[LITERAL_GROUP]
    if (literal !== undefined) this.addLiteral(literal)
    else if (match[3] !== undefined) this.addBracket(match[3])
    else {
      const kind = KINDS.find((_, index) => match[FIRST_KIND_GROUP + index] !== undefined)
      if (kind !== undefined) this.tokens.push({ kind, text: match[0] })
    }
  }

  finish(): FormatSection {
    const { tokens, condition, language, isOfSystem } = this
    return { tokens, condition, language, isOfSystem }
  }

  private addLiteral(text: string): void {
    if (text !== '') this.tokens.push({ kind: 'literal', text })
  }

  /** Elapsed time, a currency with its language, or a condition; colours and calendars are left out. */
  private addBracket(content: string): void {
    if (/^(?:h+|m+|s+)$/i.test(content)) {
      this.tokens.push({ kind: 'elapsed', text: content.toLowerCase() })
      return
    }
    const currency = /^\$([^-]*)(?:-(.*))?$/.exec(content)
    if (currency !== null) {
      this.addLiteral(currency[1] ?? '')
      this.language ||= currency[2] ?? ''
      this.isOfSystem ||= /^(?:f[48]00|x-sys)/i.test(currency[2] ?? '')
      return
    }
    this.condition ??= conditionOf(content)
  }
}

const COMPARISONS: ReadonlyMap<string, (value: number, limit: number) => boolean> = new Map([
  ['<', (value: number, limit: number) => value < limit],
  ['<=', (value: number, limit: number) => value <= limit],
  ['>', (value: number, limit: number) => value > limit],
  ['>=', (value: number, limit: number) => value >= limit],
  ['=', (value: number, limit: number) => value === limit],
  ['<>', (value: number, limit: number) => value !== limit],
])

function conditionOf(content: string): FormatSection['condition'] {
  const match = /^([<>=]{1,2})\s*(-?\d{1,30}(?:\.\d{1,30})?)$/.exec(content)
  const comparison = COMPARISONS.get(match?.[1] ?? '')
  return comparison && ((value) => comparison(value, Number(match?.[2])))
}
