import { readDefinitionList } from './block-handlers.js'
import { readBlockCode, readInlineCode } from './code-handlers.js'
import { BOLD, ITALIC, STRIKE } from './document-model.js'
import { type Handler, isTooNested, marked, nested, readBlock, type Style } from './element-handler.js'
import { readHeading, readSummary } from './heading-handlers.js'
import { readQuotation, readRuby, readSpan, readSubscript, readSuperscript } from './inline-handlers.js'
import { readLink } from './link-handler.js'
import { readList, readStrayItem } from './list-handlers.js'
import { attributeOf, hasAttribute } from './markup-node.js'
import { readFormula, readFormulaScript, readRenderedFormula } from './math-handlers.js'
import { readFrame, readMedia, readPicture } from './media-handlers.js'
import { readTable } from './table-handler.js'

const skip: Handler = () => undefined

const readRoledBlock: Handler = (element, reading, style) => {
  if (readRenderedFormula(element, reading, style)) return
  if (attributeOf(element, 'role') === 'heading') readHeading(element, reading, style)
  else readBlock(element, reading, style)
}

const readQuote: Handler = (element, reading, style) => {
  if (isTooNested(style)) {
    readBlock(element, reading, style)
    return
  }
  const blocks = reading.readBlocksWithin(element, nested(style))
  if (blocks.length > 0) reading.addBlock({ kind: 'quote', blocks })
}

const readRule: Handler = (_element, reading) => {
  reading.addBlock({ kind: 'rule' })
}

const readBreak: Handler = (_element, reading, style) => {
  reading.addPiece({ kind: 'break', marks: style.marks })
}

const readButton: Handler = (element, reading, style) => {
  if (style.isInHeading || hasAttribute(element, 'aria-expanded')) reading.readChildren(element, style)
}

const readInput: Handler = (element, reading, style) => {
  if (attributeOf(element, 'type').toLowerCase() !== 'checkbox') return
  reading.addPiece({ kind: 'task', isDone: hasAttribute(element, 'checked'), marks: style.marks })
}

function markedBy(mark: number): Handler {
  return (element, reading, style) => {
    // Some editors wrap whole documents in `<b style="font-weight:normal">`.
    const isUndone = /font-(?:weight|style)\s*:\s*(?:normal|400)/i.test(attributeOf(element, 'style'))
    const inner: Style = isUndone ? style : marked(style, mark)
    reading.readChildren(element, inner)
  }
}

const HANDLERS: readonly (readonly [tags: string, handler: Handler])[] = [
  ['head style template noscript svg canvas embed select option textarea datalist progress meter', skip],
  ['area base col colgroup link meta param source track rp', skip],
  ['address article aside body center dd dialog dir dt fieldset figcaption figure footer form frameset', readBlock],
  ['header hgroup html legend main nav noframes optgroup p search section tbody td tfoot th thead tr', readBlock],
  ['caption details', readBlock],
  ['div', readRoledBlock],
  ['h1 h2 h3 h4 h5 h6', readHeading],
  ['summary', readSummary],
  ['ul ol menu', readList],
  ['li', readStrayItem],
  ['dl', readDefinitionList],
  ['blockquote', readQuote],
  ['pre listing xmp plaintext', readBlockCode],
  ['code kbd samp tt', readInlineCode],
  ['table', readTable],
  ['hr', readRule],
  ['br', readBreak],
  ['b strong', markedBy(BOLD)],
  ['i em var cite', markedBy(ITALIC)],
  ['s del strike', markedBy(STRIKE)],
  ['span mjx-container', readSpan],
  ['sup', readSuperscript],
  ['sub', readSubscript],
  ['q', readQuotation],
  ['rt', readRuby],
  ['a', readLink],
  ['img', readPicture],
  ['iframe', readFrame],
  ['video audio', readMedia],
  ['math', readFormula],
  ['script', readFormulaScript],
  ['button', readButton],
  ['input', readInput],
]

/** How each element of HTML is read; one that is not here is read as what it holds. */
export const ELEMENT_HANDLERS: ReadonlyMap<string, Handler> = new Map(
  HANDLERS.flatMap(([tags, handler]) => tags.split(' ').map((tag) => [tag, handler] as const)),
)
