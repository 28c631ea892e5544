import { readDefinitionList, readHeading, readList, readStrayItem, readSummary } from './block-handlers.js'
import { writeBlocks } from './block-writer.js'
import { readBlockCode, readInlineCode } from './code-handlers.js'
import { type Block, BOLD, type Inline, ITALIC, type ListBlock, STRIKE, tidyParagraphs } from './document-model.js'
import { type Content, type Handler, marked, nesting, readBlock, type Reading, type Style } from './element-handler.js'
import { collapseBlanks } from './escape-markdown.js'
import { readLink, readQuotation, readRuby, readSpan, readSubscript, readSuperscript } from './inline-handlers.js'
import { attributeOf, childrenOf, hasAttribute, type MarkupNode, tagOf, textOf, wholeText } from './markup-node.js'
import { readFormula, readFormulaScript, readRenderedFormula } from './math-handlers.js'
import { readFrame, readMedia, readPicture } from './media-handlers.js'
import { readTable } from './table-handler.js'

const skip: Handler = () => undefined

const readRoledBlock: Handler = (element, reading, style) => {
  if (readRenderedFormula(element, reading, style)) return
  if (attributeOf(element, 'role') === 'heading') readHeading(element, reading, style)
  else readBlock(element, reading, style)
}

const readQuote = nesting((element, reading, style) => {
  const blocks = reading.readBlocksWithin(element, style)
  if (blocks.length > 0) reading.addBlock({ kind: 'quote', blocks })
})

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

/** Handler of each element; of other elements only the content is read. */
const ELEMENT_HANDLERS: ReadonlyMap<string, Handler> = new Map(
  HANDLERS.flatMap(([tags, handler]) => tags.split(' ').map((tag) => [tag, handler] as const)),
)

// Most levels: deeper elements lose their markup, not their text. Trees of pages have fewer levels.
const DEEPEST = 520
const PLAIN: Style = { marks: 0, isInLink: false, isInHeading: false, isInScript: false, nesting: 0 }

/** Reads a tree of HTML into blocks; relative addresses are resolved against `baseUrl`. */
export function readMarkup(root: MarkupNode, baseUrl: string): readonly Block[] {
  const reader = new MarkupReader(baseUrl)
  if (tagOf(root) === '') reader.readChildren(root, PLAIN)
  else reader.readNode(root, PLAIN)
  return reader.finish()
}

class MarkupReader implements Reading {
  private blocks: Block[] = []
  private line: Inline[] = []
  /** Number of block boundaries so far. */
  private blockEnds = 0
  private depth = 0

  constructor(readonly baseUrl: string) {}

  finish(): readonly Block[] {
    this.endParagraph()
    return this.blocks
  }

  addText(text: string, style: Style): void {
    if (text !== '') this.line.push({ kind: 'text', text: collapseBlanks(text), marks: style.marks })
  }

  addPiece(piece: Inline): void {
    this.line.push(piece)
  }

  addBlock(block: Block): void {
    this.endParagraph()
    const last = this.blocks.at(-1)
    if (block.kind === 'list' && last?.kind === 'list' && continues(block, last))
      for (const item of block.items) last.items.push(item)
    else this.blocks.push(block)
  }

  endParagraph(): void {
    this.blockEnds += 1
    if (this.line.length === 0) return
    for (const content of tidyParagraphs(this.line)) this.blocks.push({ kind: 'paragraph', content })
    this.line = []
  }

  readNode(node: MarkupNode, style: Style): void {
    const text = textOf(node)
    if (text !== undefined) {
      this.addText(text, style)
      return
    }
    const tag = tagOf(node)
    if (tag === '') return
    if (this.depth >= DEEPEST) {
      this.addText(wholeText(node), style)
      return
    }
    this.depth += 1
    const handler = ELEMENT_HANDLERS.get(tag)
    if (handler) handler(node, this, style)
    else this.readChildren(node, style)
    this.depth -= 1
  }

  readChildren(node: MarkupNode, style: Style): void {
    for (const child of childrenOf(node)) this.readNode(child, style)
  }

  readApart(read: () => void): Content {
    const outer = { blocks: this.blocks, line: this.line, blockEnds: this.blockEnds }
    this.blocks = []
    this.line = []
    read()
    const isInline = this.blockEnds === outer.blockEnds
    if (!isInline) this.endParagraph()
    const content: Content = isInline ? { isInline, pieces: this.line } : { isInline, blocks: this.blocks }
    this.blocks = outer.blocks
    this.line = outer.line
    return content
  }

  readBlocksOf(node: MarkupNode, style: Style): Block[] {
    return this.blocksOf(() => {
      this.readNode(node, style)
    })
  }

  readBlocksWithin(element: MarkupNode, style: Style): Block[] {
    return this.blocksOf(() => {
      this.readChildren(element, style)
    })
  }

  private blocksOf(read: () => void): Block[] {
    const content = this.readApart(read)
    if (!content.isInline) return content.blocks
    return tidyParagraphs(content.pieces).map((pieces) => ({ kind: 'paragraph', content: pieces }))
  }
}

// Adjacent lists are one in Markdown; numbered ones only if the numbers continue.
function continues(list: ListBlock, last: ListBlock): boolean {
  if (list.isOrdered !== last.isOrdered) return false
  return !list.isOrdered || list.start === last.start + last.items.length
}

interface MarkdownOptions {
  /** Absolute URL that relative links and pictures are resolved against; '' leaves them relative. */
  readonly baseUrl: string
}

/**
 * Writes a document, an element or a fragment as GitHub-flavoured Markdown. Navigation and other
 * surroundings must be removed before. The tree is not changed; the time is linear in its size.
 *
 * @returns Markdown that ends with one line feed, or '' when there is nothing to show. Never throws.
 */
export function htmlToMarkdown(root: MarkupNode, options: MarkdownOptions): string {
  return writeBlocks(readMarkup(root, options.baseUrl))
}
