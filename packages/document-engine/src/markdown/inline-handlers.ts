import { type Block, BOLD, type Inline, isVisible, ITALIC, type ListItem, STRIKE, tidyLine } from './document-model.js'
import { type Handler, readChildrenApart, type Reading, type Style } from './element-handler.js'
import { attributeOf, beginningOf, type MarkupNode } from './markup-node.js'
import { readRenderedFormula } from './math-handlers.js'
import { linkTarget } from './media-handlers.js'

// Labels of links back from a footnote and of permalinks behind headings.
const HANDLE = /^(?:[\s#¶§↩↑⤴^∞]|🔗|⚓|\ufe0e|\ufe0f)*$/u

export const readLink: Handler = (element, reading, style) => {
  const reference = attributeOf(element, 'href')
  const url = style.isInLink ? undefined : linkTarget(reference, reading.baseUrl)
  if (url === undefined) {
    // Style sheets of books raise references to notes.
    if (isNoteReference(element)) readSuperscript(element, reading, style)
    else if (style.isInLink || !isHandle(element)) reading.readChildren(element, style)
    return
  }
  const content = readChildrenApart(element, reading, { ...style, marks: 0, isInLink: true })
  if (content.isInline) {
    reading.addPiece({ kind: 'link', url, content: content.pieces, marks: style.marks })
    return
  }
  for (const block of linkBlocks(content.blocks, url)) reading.addBlock(block)
}

const isNoteReference = (link: MarkupNode): boolean =>
  /\bnoteref\b/.test(`${attributeOf(link, 'epub:type')} ${attributeOf(link, 'role')}`)

/** A link to the element it stands in, or back from a footnote. */
export function isHandle(link: MarkupNode): boolean {
  return attributeOf(link, 'href').includes('#') && HANDLE.test(beginningOf(link))
}

/** A link around blocks: moved to its heading, else to its first line with words, else to its first picture. */
function linkBlocks(blocks: readonly Block[], url: string): readonly Block[] {
  return (
    linkFirst(blocks, url, (block) => block.kind === 'heading') ??
    linkFirst(blocks, url, (block) => block.kind === 'paragraph' && block.content.some(isWording)) ??
    linkFirst(blocks, url, (block) => block.kind === 'paragraph') ??
    blocks
  )
}

type Test = (block: Block) => boolean

function linkFirst(blocks: readonly Block[], url: string, isTarget: Test): Block[] | undefined {
  for (const [index, block] of blocks.entries()) {
    const linked = linkWithin(block, url, isTarget)
    if (linked !== undefined) return [...blocks.slice(0, index), linked, ...blocks.slice(index + 1)]
  }
  return undefined
}

function linkWithin(block: Block, url: string, isTarget: Test): Block | undefined {
  if ((block.kind === 'heading' || block.kind === 'paragraph') && isTarget(block))
    return { ...block, content: [{ kind: 'link', url, content: tidyLine(block.content), marks: 0 }] }
  if (block.kind === 'quote') {
    const inner = linkFirst(block.blocks, url, isTarget)
    return inner && { kind: 'quote', blocks: inner }
  }
  if (block.kind !== 'list') return undefined
  for (const [index, item] of block.items.entries()) {
    const inner = linkFirst(item.blocks, url, isTarget)
    if (inner !== undefined) return { ...block, items: replaced(block.items, index, { ...item, blocks: inner }) }
  }
  return undefined
}

function replaced(items: readonly ListItem[], index: number, item: ListItem): ListItem[] {
  return [...items.slice(0, index), item, ...items.slice(index + 1)]
}

function isWording(piece: Inline): boolean {
  return piece.kind !== 'image' && isVisible(piece)
}

export const readSpan: Handler = (element, reading, style) => {
  if (readRenderedFormula(element, reading, style)) return
  const css = attributeOf(element, 'style')
  let { marks } = style
  if (/font-weight\s*:\s*(?:bold|[6-9]00)/i.test(css)) marks |= BOLD
  if (/font-style\s*:\s*italic/i.test(css)) marks |= ITALIC
  if (/text-decoration[a-z-]{0,9}\s{0,9}:[^;]{0,99}line-through/i.test(css)) marks |= STRIKE
  reading.readChildren(element, { ...style, marks })
}

export const readQuotation: Handler = (element, reading, style) => {
  reading.addText('“', style)
  reading.readChildren(element, style)
  reading.addText('”', style)
}

/** Ruby annotation: written behind its base text, in parentheses. */
export const readRuby: Handler = (element, reading, style) => {
  if (beginningOf(element).trim() === '') return
  reading.addText('(', style)
  reading.readChildren(element, style)
  reading.addText(')', style)
}

const SUPERSCRIPTS = lettersTo('0123456789+-−=ni', '⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼ⁿⁱ')
const SUBSCRIPTS = lettersTo('0123456789+-−=aeijoruvx', '₀₁₂₃₄₅₆₇₈₉₊₋₋₌ₐₑᵢⱼₒᵣᵤᵥₓ')
// Superscripts without meaning: ordinals, abbreviations, trade marks, references in brackets, asterisks and daggers.
const PLAIN_WHEN_RAISED = /^(?:st|nd|rd|th|er|re|ère|e|ème|eme|o|a|os|as|mes?|r|tm|sm|®|[[(].*[\])]|[\p{P}\p{S}]+)$/iu
const LONGEST_SCRIPT = 30

export const readSuperscript: Handler = (element, reading, style) => {
  readScript(element, reading, style, { tag: 'sup', letters: SUPERSCRIPTS, plain: PLAIN_WHEN_RAISED })
}

export const readSubscript: Handler = (element, reading, style) => {
  readScript(element, reading, style, { tag: 'sub', letters: SUBSCRIPTS, plain: /^[[(].*[\])]$/ })
}

interface Script {
  readonly tag: 'sup' | 'sub'
  readonly letters: ReadonlyMap<string, string>
  readonly plain: RegExp
}

function readScript(element: MarkupNode, reading: Reading, style: Style, script: Script): void {
  if (style.isInScript) {
    reading.readChildren(element, style)
    return
  }
  const content = readChildrenApart(element, reading, { ...style, isInScript: true })
  if (!content.isInline) {
    for (const block of content.blocks) reading.addBlock(block)
    return
  }
  const text = shortText(content.pieces)
  const letters = Array.from(text, (letter) => script.letters.get(letter))
  if (text !== '' && letters.every((letter) => letter !== undefined)) reading.addText(letters.join(''), style)
  else if (text.toLowerCase() === 'tm' && script.tag === 'sup') reading.addText('™', style)
  else {
    // Markdown allows these tags; longer text is a note or a label, not a subscript or superscript.
    const isTagged = text !== '' && text.length <= LONGEST_SCRIPT && !/\s/.test(text) && !script.plain.test(text)
    if (isTagged) reading.addPiece({ kind: 'raw', text: `<${script.tag}>`, marks: style.marks })
    for (const piece of content.pieces) reading.addPiece(piece)
    if (isTagged) reading.addPiece({ kind: 'raw', text: `</${script.tag}>`, marks: style.marks })
  }
}

/** The text of a few text pieces; '' when it is too long for a subscript, or when there are other pieces. */
function shortText(pieces: readonly Inline[]): string {
  let text = ''
  for (const piece of pieces) {
    if (piece.kind !== 'text' || text.length + piece.text.length > 2 * LONGEST_SCRIPT) return ''
    text += piece.text
  }
  return text.trim()
}

function lettersTo(letters: string, replacements: string): ReadonlyMap<string, string> {
  const targets = Array.from(replacements)
  return new Map(Array.from(letters, (letter, index) => [letter, targets[index] ?? letter]))
}
