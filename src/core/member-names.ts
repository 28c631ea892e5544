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

/** Of characters beyond ASCII that have two cases, as they come; Unicode has some three thousand. */
const foldings = new Map<string, string>()

/** One character; itself where it has no case. */
function foldingOf(character: string): string {
  const known = foldings.get(character)
  if (known !== undefined) return known
  const lower = character.toLowerCase()
  const upper = character.toUpperCase()
  if (lower === character && upper === character) return character
  // Some change to more than one character, or to one that a folding does not make of them (dotless i).
  const candidates = [upper.toLowerCase(), lower]
  const folded = candidates.find((candidate) => new RegExp(`^${candidate}$`, 'iu').test(character)) ?? character
  foldings.set(character, folded)
  return folded
}

/**
 * Simple case folding of Unicode: two names fold to the same text if and only if a parser that ignores case takes one for the other,
 * as Go's `encoding/json` does ("ſtream", "Key" with the sign for Kelvin). Takes time in proportion to the name.
 */
export function foldCase(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase()
  let folded = ''
  for (const character of name) folded += character < '\u0080' ? character.toLowerCase() : foldingOf(character)
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
