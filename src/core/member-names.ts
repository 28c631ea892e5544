import { type FieldError, quoted } from './errors.js'

/** A key may be as long as the body; what is said about it, and logged, is not. */
const MAXIMUM_SHOWN_CHARACTERS = 64

/** The start of a key, for messages. */
export const shownKey = (name: string): string => name.slice(0, MAXIMUM_SHOWN_CHARACTERS)

/** No parameter of any upstream is as long: what is longer is data that stands in the place of a name. */
const LONGEST_NAME_CHARACTERS = 1024

/** Of names that an upstream may take for one another. */
export const AMBIGUOUS_KEY = 'ambiguous_key'

const ASCII = /^\p{ASCII}*$/u

const LAST_CODE_POINT = 0x10ffff
const FIRST_BEYOND_ASCII = 0x80

let foldings: ReadonlyMap<string, string> | undefined

/** Of every character beyond ASCII that folds to another one; made with the first name that has one. */
function makeFoldings(): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (let codePoint = FIRST_BEYOND_ASCII; codePoint <= LAST_CODE_POINT; codePoint++) {
    const character = String.fromCodePoint(codePoint)
    const lower = character.toLowerCase()
    const upper = character.toUpperCase()
    if (lower === character && upper === character) continue
    // Some change to more than one character, or to one that a folding does not make of them (dotless i).
    const folded = [upper.toLowerCase(), lower].find((candidate) => new RegExp(`^${candidate}$`, 'iu').test(character))
    if (folded !== undefined && folded !== character) found.set(character, folded)
  }
  return found
}

/**
 * Simple case folding of Unicode: two names fold to the same text if and only if a parser that ignores case takes one for the other,
 * as Go's `encoding/json` does ("ſtream", "Key" with the sign for Kelvin). Takes time in proportion to the name.
 */
export function foldCase(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase()
  const known = (foldings ??= makeFoldings())
  let folded = ''
  for (const character of name) {
    folded += character < '\u0080' ? character.toLowerCase() : (known.get(character) ?? character)
  }
  return folded
}

/** The names that the gateway judges or writes in one kind of object. */
export class MemberNames {
  private readonly known: ReadonlySet<string>
  private readonly spellings: ReadonlyMap<string, string>

  constructor(names: readonly string[]) {
    this.known = new Set(names)
    this.spellings = new Map(names.map((name) => [foldCase(name), name]))
  }

  /**
   * The first member whose name differs only in case from a known one, or from another member's: what the gateway reads in one of
   * them the upstream may read in the other.
   */
  ambiguity(members: Readonly<Record<string, unknown>>, path: string): FieldError | undefined {
    let unknown: Map<string, string> | undefined
    for (const name in members) {
      if (this.known.has(name) || name.length > LONGEST_NAME_CHARACTERS) continue
      const folded = foldCase(name)
      const other = this.spellings.get(folded) ?? unknown?.get(folded)
      if (other !== undefined) return ambiguous(name, other, path)
      unknown ??= new Map()
      unknown.set(folded, name)
    }
    return undefined
  }
}

function ambiguous(name: string, other: string, path: string): FieldError {
  const found = path === '' ? shownKey(name) : `${path}.${shownKey(name)}`
  return {
    path: found,
    code: AMBIGUOUS_KEY,
    message: `Invalid key ${quoted(found)}: it differs from ${quoted(other)} only in case.`,
  }
}
