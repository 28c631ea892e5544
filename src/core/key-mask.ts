/** Tells a key of the gateway's own. */
export type KeyTest = (text: string) => boolean

/** Stands for a key. */
export const KEY_MASK = '[key]'

/** As vendors and this gateway issue secrets, wherever in a text one begins (`Bearer sk-…`, `key=sk-…`). */
const SECRET = /(?:^|[^A-Za-z0-9])(?:sk|rk_live|rk_test|whsec)[-_][A-Za-z0-9*_-]{8,}/i
const SHORTEST_KEY_CHARACTERS = 8
/** The guard takes no longer key. */
const LONGEST_KEY_CHARACTERS = 512

/** What stands between a key and what it was typed beside: not `.`, `_` and `-`, of which keys and names are made. */
const SEPARATORS = /[\s!-,/:-@[-^`{-~]+/
/** In the place of a member, or the name of a model, dots as well. */
const NAME_SEPARATORS = /[\s!-,./:-@[-^`{-~]+/

/** Each takes two microseconds, of a request that need not have a caller; a text of more pieces is taken for one with a key. */
const MOST_DIGESTS = 16

const ESCAPE = /%([\da-f]{2})/gi

/** Whether a text that a client chose has a key, typed where none belongs, as it is or percent-encoded. */
export function hasKey(text: string, isKey: KeyTest, separators = SEPARATORS): boolean {
  if (text.length < SHORTEST_KEY_CHARACTERS) return false
  // Escape by escape: a malformed one must not hide the others. Keys are ASCII.
  const decoded = text.replace(ESCAPE, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  if (SECRET.test(decoded)) return true
  // A key may have what separates others, but no blank.
  const pieces = new Set([decoded, ...decoded.split(/\s+/), ...decoded.split(separators)])
  const candidates = [...pieces].filter(
    ({ length }) => length >= SHORTEST_KEY_CHARACTERS && length <= LONGEST_KEY_CHARACTERS,
  )
  return candidates.length > MOST_DIGESTS || candidates.some(isKey)
}

/** Characters of a path in a line of the log; a key that begins in them is looked at whole. */
const SHOWN_CHARACTERS = 128

/** As much of a model's name as the log, a trace or a usage record shows. */
const LONGEST_NAME_CHARACTERS = 256

/**
 * The path as a log may show it: cut, and without the segments that have a key. A key may have slashes: then nothing of it
 * is shown.
 */
export function maskedPath(path: string, isKey: KeyTest): string {
  const start = path.slice(0, SHOWN_CHARACTERS + LONGEST_KEY_CHARACTERS)
  const isMasked = new Map<string, boolean>()
  for (const segment of start.split('/')) if (!isMasked.has(segment)) isMasked.set(segment, hasKey(segment, isKey))
  const hasSegment = [...isMasked.values()].includes(true)
  if (!hasSegment && hasKey(start.slice(1), isKey)) return `/${KEY_MASK}`
  const shown = start.split('/').map((segment) => (isMasked.get(segment) === true ? KEY_MASK : segment))
  return shown.join('/').slice(0, SHOWN_CHARACTERS)
}

/** A model, or the place of a member of a body (`messages[0].name`), as records may show it: nothing of it where it has a key. */
export function maskedName(name: string, isKey: KeyTest): string {
  const start = name.slice(0, LONGEST_NAME_CHARACTERS + LONGEST_KEY_CHARACTERS)
  return hasKey(start, isKey) || hasKey(start, isKey, NAME_SEPARATORS) ? KEY_MASK : name
}
