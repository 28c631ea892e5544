/** Deeper, nothing is looked for; data of this kind is flat. */
const DEEPEST_LEVEL = 12
const MOST_VALUES = 20_000
const LONGEST_SCRIPT = 4_000_000
const BODY_NAMES: ReadonlySet<string> = new Set(['articleBody', 'text', 'description'])

/**
 * The longest text in the JSON-LD of a page, where some pages keep what a script would show; '' when there is none.
 * Paragraphs are parted by line feeds or tags, as the author had them.
 */
export function structuredText(scripts: readonly string[]): string {
  let longest = ''
  for (const script of scripts) {
    if (script.length > LONGEST_SCRIPT) continue
    for (const text of textsIn(parsed(script))) if (text.length > longest.length) longest = text
  }
  return longest
}

function parsed(script: string): unknown {
  try {
    return JSON.parse(script)
  } catch {
    return undefined
  }
}

function textsIn(root: unknown): string[] {
  const texts: string[] = []
  const waiting = [{ value: root, level: 0 }]
  for (let visited = 0; visited < MOST_VALUES; visited += 1) {
    const next = waiting.pop()
    if (next === undefined) break
    if (typeof next.value !== 'object' || next.value === null || next.level >= DEEPEST_LEVEL) continue
    for (const [name, value] of Object.entries(next.value)) {
      if (typeof value === 'string' && BODY_NAMES.has(name)) texts.push(value)
      else waiting.push({ value, level: next.level + 1 })
    }
  }
  return texts
}
