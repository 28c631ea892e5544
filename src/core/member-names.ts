import { quoted } from './errors.js'
import type { FieldError } from './validation-rules.js'

/** A key may be as long as the body; what is said about it, and logged, is not. */
const MAXIMUM_SHOWN_CHARACTERS = 64

/** The start of a key, for messages. */
export const shownKey = (name: string): string => name.slice(0, MAXIMUM_SHOWN_CHARACTERS)

/** Of names that an upstream may take for one another. */
export const AMBIGUOUS_KEY = 'ambiguous_key'

const ASCII = /^\p{ASCII}*$/u

/**
 * Simple case folding of Unicode: two names fold to the same text if and only if a parser that ignores case takes one for the other,
 * as Go's `encoding/json` does ("ſtream", "Key" with the sign for Kelvin).
 */
export function foldCase(name: string): string {
  return ASCII.test(name) ? name.toLowerCase() : Array.from(name, foldCharacter).join('')
}

function foldCharacter(character: string): string {
  const candidates = [character.toUpperCase().toLowerCase(), character.toLowerCase()]
  // Some change to more than one character, or to one that a folding does not make of them (dotless i).
  return candidates.find((candidate) => new RegExp(`^${candidate}$`, 'iu').test(character)) ?? character
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
      if (this.known.has(name)) continue
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
