import type { Handler, Reading, Style } from './element-handler.js'
import { collapseBlanks } from './escape-markdown.js'
import {
  attributeOf,
  classesOf,
  descendantsOf,
  hasAttribute,
  type MarkupNode,
  tagOf,
  wholeText,
} from './markup-node.js'
import { mathmlTex } from './mathml-tex.js'

/** TeX of a formula: the author's source if the page has it, otherwise converted from the MathML. */
function texOf(math: MarkupNode): string {
  for (const node of descendantsOf(math))
    if (tagOf(node) === 'annotation' && attributeOf(node, 'encoding').includes('tex')) return tidyTex(wholeText(node))
  return tidyTex(attributeOf(math, 'alttext') || mathmlTex(math))
}

/**
 * One line, without the wrapper that some renderers add. Where Markdown is rendered without formulas, TeX is read as text: a
 * blank, which TeX ignores, keeps `<` from starting a tag and `](` from being a link. A dollar, or a backslash at the end, would
 * end the formula elsewhere; a backtick, in TeX a quotation mark, would begin code.
 */
export function tidyTex(tex: string): string {
  const line = collapseBlanks(tex).trim()
  const wrapped = /^\{\\(?:displaystyle|textstyle)\s?(.*)\}$/.exec(line)
  return (wrapped?.[1] ?? line)
    .trim()
    .replace(/<(?=[a-z/!?])/gi, '< ')
    .replaceAll('](', '] (')
    .replaceAll('`', '‘')
    .replace(/\\[^]|[$\\]/g, (sign) => (sign === '$' ? '\\$' : sign === '\\' ? '' : sign))
}

/** TeX between `\(…\)`, `\[…\]` or dollars; '' for other text. */
export function delimitedTex(text: string): string {
  const match = /^\s*(?:\\\(([^]*)\\\)|\\\[([^]*)\\\]|\$\$([^]*)\$\$|\$([^]*)\$)\s*$/.exec(text)
  return tidyTex(match?.slice(1).join('') ?? '')
}

/** The MathML among the first `mostNodes` below a node. */
export function findMath(root: MarkupNode, mostNodes: number): MarkupNode | undefined {
  let nodes = 0
  for (const node of descendantsOf(root)) {
    if (tagOf(node) === 'math') return node
    nodes += 1
    if (nodes >= mostNodes) return undefined
  }
  return undefined
}

// Most nodes of a rendered formula, which may stand before its MathML.
const MOST_GLYPHS = 20_000

export const readFormula: Handler = (element, reading, style) => {
  addFormula(texOf(element), attributeOf(element, 'display') === 'block', reading, style)
}

/** MathJax 2 leaves its source in a script. */
export const readFormulaScript: Handler = (element, reading, style) => {
  const type = attributeOf(element, 'type').toLowerCase()
  if (!type.startsWith('math/tex')) return
  addFormula(tidyTex(wholeText(element)), type.includes('mode=display'), reading, style)
}

/**
 * Reads a formula that KaTeX, MathJax or a document converter rendered, and ignores its visible glyphs. Returns whether the
 * element was a formula.
 */
export function readRenderedFormula(element: MarkupNode, reading: Reading, style: Style): boolean {
  if (tagOf(element) === 'mjx-container') {
    return addFound(element, hasAttribute(element, 'display'), reading, style)
  }
  const classes = classesOf(element)
  if (classes.length === 0) return false
  if (classes.includes('katex-display')) return addFound(element, true, reading, style)
  if (classes.includes('katex')) return addFound(element, false, reading, style)
  if (classes.includes('katex-html') || classes.includes('MathJax_Preview')) return true
  if (classes.some((name) => /^MathJax(?:_Display|_SVG|_CHTML)?$/.test(name)))
    return isFollowedByScript(element) || addFound(element, classes.includes('MathJax_Display'), reading, style)
  if (!classes.includes('math')) return false
  const tex = delimitedTex(wholeText(element))
  if (tex !== '') addFormula(tex, classes.includes('display'), reading, style)
  return tex !== ''
}

function addFound(element: MarkupNode, isDisplay: boolean, reading: Reading, style: Style): boolean {
  const math = findMath(element, MOST_GLYPHS)
  if (math === undefined) return false
  addFormula(texOf(math), isDisplay || attributeOf(math, 'display') === 'block', reading, style)
  return true
}

function isFollowedByScript(element: MarkupNode): boolean {
  const next = element.nextSibling
  return next !== null && attributeOf(next, 'type').startsWith('math/tex')
}

export function addFormula(tex: string, isDisplay: boolean, reading: Reading, style: Style): void {
  if (tex === '') return
  if (isDisplay && !style.isInLink && !style.isInHeading) reading.addBlock({ kind: 'math', tex })
  else reading.addPiece({ kind: 'raw', text: `$${tex}$`, marks: style.marks })
}
