import type { Handler, Reading, Style } from './element-handler.js'
import { attributeOf, classesOf, hasAttribute, type MarkupNode, tagOf, wholeText } from './markup-node.js'
import { delimitedTex, findMath, texOf, tidyTex } from './math-reader.js'

// The glyphs of one formula, which may stand before its MathML.
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
 * Reads a formula that KaTeX, MathJax or a converter of documents rendered, whose visible glyphs are of no use; says
 * whether the element was one.
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
