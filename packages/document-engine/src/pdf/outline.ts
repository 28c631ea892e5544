import type { OutlineEntry } from './layout/pdf-page.js'
import { cleanText } from './pdf-metadata.js'

const MAX_LEVELS = 10
const MAX_ENTRIES = 5000
const MAX_TITLE_LENGTH = 500

interface OutlineNode {
  readonly title: string
  readonly items: readonly OutlineNode[]
}

/** The document's own table of contents in the order of reading; empty when it has none. */
export function outlineEntries(nodes: readonly OutlineNode[] | null, level = 1): OutlineEntry[] {
  if (nodes === null || level > MAX_LEVELS) return []
  const entries: OutlineEntry[] = []
  for (const node of nodes) {
    if (entries.length >= MAX_ENTRIES) break
    const title = cleanText(node.title, MAX_TITLE_LENGTH)
    if (title !== '') entries.push({ title, level })
    entries.push(...outlineEntries(node.items, level + 1))
  }
  return entries.slice(0, MAX_ENTRIES)
}
