import { firstCharacter, isBlank, isPunctuation, isWordCharacter, lastCharacter } from './characters.js'

/** What stands beside a text within its line: a blank at the ends of a block, otherwise any character of the neighbour. */
export interface Surroundings {
  readonly before: string
  readonly after: string
  /** Within `[…]` brackets end the text and bare URLs are no links. */
  readonly isLinkText: boolean
}

const BLOCK_ENDS: Surroundings = { before: ' ', after: ' ', isLinkText: false }

/**
 * Escapes a text that is to stand as prose in GitHub-flavoured Markdown: one block, possibly of several lines, each of
 * which is also kept from starting a list, heading, quote, table or rule. A `|` within a table cell is the caller's.
 */
export function escapeMarkdown(text: string): string {
  return text
    .split('\n')
    .map((line) => escapeLineStart(escapeInline(line, BLOCK_ENDS)))
    .join('\n')
}

// GFM takes a bare URL as a link with all that is in it, backslashes too; it leaves punctuation at its end outside.
const SPECIALS = /(?:https?:\/\/|www\.)[!-;=-_a-~]*[A-Za-z\d/=&#%+-]|`|\*+|_+|~+|\\|[[\]]|<|&/g
const LINK_TEXT_SPECIALS = /`|\*+|_+|~+|\\|[[\]]|<|&/g

/** Escapes what would be markup within a line; prose like `3 * 4`, `snake_case` and `a < b` stays as it is. */
export function escapeInline(text: string, surroundings: Surroundings): string {
  return text.replace(surroundings.isLinkText ? LINK_TEXT_SPECIALS : SPECIALS, (special, offset: number) => {
    const end = offset + special.length
    const before = offset > 0 ? lastCharacter(text, offset) : surroundings.before
    const after = end < text.length ? firstCharacter(text.slice(end, end + 2)) : surroundings.after
    switch (special.charAt(0)) {
      case '`':
        return '\\`'
      case '*':
        return isBlank(before) && isBlank(after) ? special : escapeEach(special)
      case '_':
        return isNoUnderline(before, after) ? special : escapeEach(special)
      case '~':
        return isNoStrike(special, before, after) ? special : escapeEach(special)
      case '\\':
        return end === text.length || /[!-/:-@[-`{-~]/.test(after) ? '\\\\' : special
      case '[':
        return surroundings.isLinkText ? '\\[' : special
      case ']':
        return surroundings.isLinkText || after === '(' ? '\\]' : special
      case '<':
        return /[a-z/!?]/i.test(after) ? '\\<' : special
      case '&':
        return isEntity(text, end) ? '\\&' : special
      default:
        return special
    }
  })
}

function escapeEach(run: string): string {
  return `\\${run.split('').join('\\')}`
}

function isNoUnderline(before: string, after: string): boolean {
  return (isWordCharacter(before) && isWordCharacter(after)) || (isBlank(before) && isBlank(after))
}

// One tilde strikes through on GitHub as well, but only a run that can close makes a pair of it.
function isNoStrike(run: string, before: string, after: string): boolean {
  if (isBlank(before) && isBlank(after)) return true
  if (run.length > 1 || before === '~' || after === '~') return false
  return isBlank(before) || (isPunctuation(before) && !isBlank(after) && !isPunctuation(after))
}

function isEntity(text: string, offset: number): boolean {
  return /^#?\w{1,32};/.test(text.slice(offset, offset + 40))
}

const LINE_STARTS: readonly RegExp[] = [
  /^#{1,6}(?=\s|$)/,
  /^>/,
  /^[-+*](?=\s|$)/,
  /^(?=[:| ]*-)[-:| ]+$/,
  /^=+\s*$/,
  /^_[_ ]*$/,
  /^\[[^\]]{1,999}\]:/,
]
const ORDERED_MARKER = /^(\d{1,9})([.)])(?=\s|$)/

/** Keeps a line of finished inline Markdown from being taken for the start of another block. */
export function escapeLineStart(line: string): string {
  if (LINE_STARTS.some((start) => start.test(line))) return `\\${line}`
  return line.replace(ORDERED_MARKER, '$1\\$2')
}
