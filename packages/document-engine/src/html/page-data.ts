/** Most levels of data that are searched: JSON-LD is flat, the state of an application holds trees of rich text. */
const DEEPEST_LEVEL = 24
const MOST_VALUES = 20_000
const LONGEST_SCRIPT = 4_000_000
/** A name of megabytes would be part of every path below it. */
const LONGEST_NAME = 40
const BODY_NAMES: ReadonlySet<string> = new Set(['articleBody', 'text', 'description'])

/**
 * The longest text in the JSON-LD of a page, where some pages keep what a script would show; '' when there is none.
 * Paragraphs are parted by line feeds or tags, as the author had them.
 */
export function structuredText(scripts: readonly string[]): string {
  let longest = ''
  for (const { text, path } of textsIn(scripts)) {
    if (BODY_NAMES.has(path.split('.').at(-1) ?? '') && text.length > longest.length) longest = text
  }
  return longest
}

const SHORTEST_PROSE = 80
/** An address, a name or a key begins with more letters in a row than a text. */
const UNBROKEN = /^[\x21-\x3b\x3d-\x7e]{40}/
const SENTENCE = /\p{L}[^.!?。！？]{20,}[.!?。！？]/u

/**
 * The prose in the state that a page hands to its script (`__NEXT_DATA__` and the like): the texts of one path, say the
 * paragraphs of one list, that are longest in all; '' when there is none.
 */
export function stateText(scripts: readonly string[]): string {
  const groups = new Map<string, string[]>()
  for (const { text, path } of textsIn(scripts)) {
    if (text.length < SHORTEST_PROSE || UNBROKEN.test(text) || !SENTENCE.test(text.slice(0, 1000))) continue
    const group = groups.get(path)
    if (group === undefined) groups.set(path, [text])
    else group.push(text)
  }
  let longest = ''
  for (const group of groups.values()) {
    const text = [...new Set(group)].join('\n')
    if (text.length > longest.length) longest = text
  }
  return longest
}

interface DataText {
  readonly text: string
  /** Names of the members down to the text, without the places in lists. */
  readonly path: string
}

/** The texts in the data of scripts, in the order of the document. */
function* textsIn(scripts: readonly string[]): Generator<DataText> {
  for (const script of scripts) {
    if (script.length > LONGEST_SCRIPT) continue
    const waiting = [{ value: parsed(script), path: '', level: 0 }]
    for (let visited = 0; visited < MOST_VALUES; visited += 1) {
      const next = waiting.pop()
      if (next === undefined) break
      const { value, path, level } = next
      if (typeof value === 'string') yield { text: value, path }
      if (typeof value !== 'object' || value === null || level >= DEEPEST_LEVEL) continue
      const isList = Array.isArray(value)
      // The last one waiting is the next one read.
      for (const [name, member] of Object.entries(value).slice(0, MOST_VALUES).reverse()) {
        waiting.push({
          value: member as unknown,
          path: isList ? path : `${path}.${name.slice(0, LONGEST_NAME)}`,
          level: level + 1,
        })
      }
    }
  }
}

function parsed(script: string): unknown {
  try {
    return JSON.parse(script)
  } catch {
    return undefined
  }
}
