import { BOLD, type Inline, ITALIC, STRIKE } from './document-model.js'
import { type Handler, readChildrenApart, type Reading, type Style } from './element-handler.js'
import { attributeOf, beginningOf, type MarkupNode } from './markup-node.js'
import { readRenderedFormula } from './math-handlers.js'

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

/** The reading aid of East Asian text stands behind its base, in parentheses. */
export const readRuby: Handler = (element, reading, style) => {
  if (beginningOf(element).trim() === '') return
  reading.addText('(', style)
  reading.readChildren(element, style)
  reading.addText(')', style)
}

const SUPERSCRIPTS = lettersTo('0123456789+-−=ni', '⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼ⁿⁱ')
const SUBSCRIPTS = lettersTo('0123456789+-−=aeijoruvx', '₀₁₂₃₄₅₆₇₈₉₊₋₋₌ₐₑᵢⱼₒᵣᵤᵥₓ')
// Raised by custom only: ordinals, abbreviations, marks of trade, references in brackets, asterisks and daggers.
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
    // Tags of this kind pass through Markdown; longer text is a note or a label rather than a script.
    const isTagged = text !== '' && text.length <= LONGEST_SCRIPT && !/\s/.test(text) && !script.plain.test(text)
    if (isTagged) reading.addPiece({ kind: 'raw', text: `<${script.tag}>`, marks: style.marks })
    for (const piece of content.pieces) reading.addPiece(piece)
    if (isTagged) reading.addPiece({ kind: 'raw', text: `</${script.tag}>`, marks: style.marks })
  }
}

/** The text of a few pieces of text; '' when there is more than a script holds, or anything else. */
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
