import { Tokenizer, type TokenizerCallbacks } from 'htmlparser2'
import { EngineFault } from '../model/document.js'
import {
  BLOCK_TAGS,
  FOREIGN_ENDS,
  FORMATTING_TAGS,
  HEAD_TAGS,
  HtmlElement,
  HtmlText,
  IMPLIED_ENDS,
  KEPT_ATTRIBUTES,
  SCOPE_TAGS,
  SKIPPED_TAGS,
  VOID_TAGS,
} from './html-node.js'

/** Most levels: a deeper element is left out and its content kept, so that later steps may use recursion. */
export const DEEPEST_LEVEL = 128
export const MOST_NODES = 600_000

/** Builds the body of a page from its tags as browsers do, in linear time and with bounded depth. */
class TreeBuilder {
  readonly body = new HtmlElement('body', new Map())
  private readonly open: HtmlElement[] = [this.body]
  private readonly openByName = new Map<string, number>()
  /** Open elements that were left out for their depth, by name. */
  private readonly leftOutByName = new Map<string, number>()
  private nodes = 0

  /** @throws EngineFault too_large */
  openElement(name: string, attributes: ReadonlyMap<string, string>, isEmpty = false): void {
    this.endImplied(name)
    const isVoid = isEmpty || VOID_TAGS.has(name)
    if (this.open.length >= DEEPEST_LEVEL && !isVoid) {
      count(this.leftOutByName, name, 1)
      // Keeps its text on a line of its own.
      if (BLOCK_TAGS.has(name)) this.place(new HtmlElement('br', NO_ATTRIBUTES))
      return
    }
    const element = new HtmlElement(name, attributes)
    this.place(element)
    if (BLOCK_TAGS.has(name)) this.tellAncestors()
    if (isVoid) return
    this.open.push(element)
    count(this.openByName, name, 1)
  }

  closeElement(name: string): void {
    if ((this.leftOutByName.get(name) ?? 0) > 0) {
      count(this.leftOutByName, name, -1)
      return
    }
    if (name === 'br' || (name === 'p' && !this.isOpen('p'))) this.openElement(name, NO_ATTRIBUTES)
    if (!this.isOpen(name)) return
    const level = this.levelOf(name)
    if (level === undefined) return
    if (FORMATTING_TAGS.has(name) && this.holdsOpenBlock(level)) this.takeOut(level)
    else if (BLOCK_TAGS.has(name) || !this.holdsOpenBlock(level)) this.closeDownTo(level)
  }

  /** @throws EngineFault too_large */
  addText(data: string): void {
    if (data !== '') this.place(new HtmlText(data))
  }

  private place(node: HtmlElement | HtmlText): void {
    this.nodes += 1
    if (this.nodes > MOST_NODES) throw new EngineFault('too_large', 'The page has too many elements.')
    this.top.append(node)
  }

  private get top(): HtmlElement {
    return this.open.at(-1) ?? this.body
  }

  private isOpen(name: string): boolean {
    return (this.openByName.get(name) ?? 0) > 0
  }

  private endImplied(name: string): void {
    for (const { ended, within } of IMPLIED_ENDS.get(name) ?? []) {
      if (![...ended].some((tag) => this.isOpen(tag))) continue
      for (let level = this.open.length - 1; level > 0; level -= 1) {
        const tag = this.open[level]?.localName ?? ''
        if (ended.has(tag)) {
          this.closeDownTo(level)
          break
        }
        if (within.has(tag)) break
      }
    }
  }

  /** Level of the innermost open element of that name that an end tag may close. */
  private levelOf(name: string): number | undefined {
    for (let level = this.open.length - 1; level > 0; level -= 1) {
      const tag = this.open[level]?.localName ?? ''
      if (tag === name) return level
      if (SCOPE_TAGS.has(tag) && !TABLE_PARTS.has(name)) return undefined
    }
    return undefined
  }

  private holdsOpenBlock(level: number): boolean {
    for (let inner = level + 1; inner < this.open.length; inner += 1) {
      if (BLOCK_TAGS.has(this.open[inner]?.localName ?? '')) return true
    }
    return false
  }

  private closeDownTo(level: number): void {
    while (this.open.length > level) count(this.openByName, this.open.pop()?.localName ?? '', -1)
  }

  private takeOut(level: number): void {
    for (const element of this.open.splice(level, 1)) count(this.openByName, element.localName, -1)
  }

  private tellAncestors(): void {
    for (let level = this.open.length - 1; level >= 0; level -= 1) {
      const element = this.open[level]
      if (element === undefined || element.holdsBlocks) return
      element.holdsBlocks = true
    }
  }
}

const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map()
const TABLE_PARTS: ReadonlySet<string> = new Set(['table', 'tbody', 'thead', 'tfoot', 'tr', 'td', 'th', 'caption'])

function count(counts: Map<string, number>, name: string, by: number): void {
  counts.set(name, (counts.get(name) ?? 0) + by)
}

export interface HtmlTree {
  readonly body: HtmlElement
  /** `title`, `meta`, `link` and `base`, wherever they stood. */
  readonly head: readonly HtmlElement[]
  /** The texts of JSON-LD scripts. */
  readonly jsonLd: readonly string[]
  /** The texts of other scripts that are JSON. */
  readonly state: readonly string[]
  readonly hasScripts: boolean
  /** `lang` of the root; '' without one. */
  readonly language: string
}

const LONGEST_ATTRIBUTE = 16_384
const DATA_PICTURE = /^\s*data:image/i
const LONGEST_DATA = 1024
/** MathJax keeps formulas in `script` elements. */
const FORMULA_TYPE = /^\s*math\/(?:tex|asciimath|mml)/i
/** Beginning of a document that says that it is XML: there `<a id="x"/>` is an empty element. */
const XHTML_START = /^\s*(?:<!--[^>]{0,999}-->\s*)?(?:<\?xml\b|<!doctype\s[^>]{0,200}\bXHTML\b)/i
const JSON_LD_TYPE = /^\s*application\/ld\+json/i
const JSON_TYPE = /^\s*application\/(?:ld\+)?json/i

/**
 * Reads markup, however broken, into a tree without scripts, styles and handlers. Linear in time and memory.
 *
 * @throws EngineFault too_large when it holds too many elements
 */
export function readTree(html: string, isXml = XHTML_START.test(html)): HtmlTree {
  // HTML reads `<![CDATA[` as a comment up to the next `>`; the tokenizer would look for `]]>`, as in XML.
  const text = html.replaceAll('<![CDATA[', '<!CDATA ')
  const reader = new TreeReader(text, isXml)
  const tokenizer = new Tokenizer({ xmlMode: false, decodeEntities: true }, reader)
  tokenizer.write(text)
  tokenizer.end()
  const { builder, head, jsonLd, state, hasScripts, language } = reader
  return { body: builder.body, head, jsonLd, state, hasScripts, language }
}

class TreeReader implements TokenizerCallbacks {
  readonly builder = new TreeBuilder()
  readonly head: HtmlElement[] = []
  readonly jsonLd: string[] = []
  readonly state: string[] = []
  hasScripts = false
  language = ''
  private text: string[] = []
  private tag = ''
  private attributes = new Map<string, string>()
  private attributeName = ''
  private attributeValue = ''
  /** Name of the skipped element, and the number of open elements of that name. */
  private skipped = ''
  private skippedLevel = 0
  private title: HtmlElement | undefined

  constructor(
    private readonly html: string,
    private readonly isXml: boolean,
  ) {}

  ontext(start: number, end: number): void {
    if (this.isHeard()) this.text.push(this.html.slice(start, end))
  }

  ontextentity(codepoint: number): void {
    if (this.isHeard()) this.text.push(String.fromCodePoint(codepoint))
  }

  onopentagname(start: number, end: number): void {
    this.tag = this.html.slice(start, end).toLowerCase()
    this.attributes = new Map()
  }

  onattribname(start: number, end: number): void {
    this.attributeName = this.html.slice(start, end).toLowerCase()
    this.attributeValue = ''
  }

  onattribdata(start: number, end: number): void {
    if (this.attributeValue.length <= LONGEST_ATTRIBUTE) this.attributeValue += this.html.slice(start, end)
  }

  onattribentity(codepoint: number): void {
    if (this.attributeValue.length <= LONGEST_ATTRIBUTE) this.attributeValue += String.fromCodePoint(codepoint)
  }

  onattribend(): void {
    const { attributeName: name, attributeValue: value } = this
    if (!KEPT_ATTRIBUTES.has(name) || this.attributes.has(name)) return
    // Of a picture within the page only its size matters.
    const isData = name === 'src' && DATA_PICTURE.test(value)
    if (isData || value.length <= LONGEST_ATTRIBUTE)
      this.attributes.set(name, isData ? value.slice(0, LONGEST_DATA) : value)
  }

  onopentagend(): void {
    if (this.skipped === '') this.openTag(false)
    else if (this.tag === this.skipped) this.skippedLevel += 1
    else if (this.skipped !== 'script' && FOREIGN_ENDS.has(this.tag)) this.endSkipped(true)
  }

  onselfclosingtag(): void {
    if (this.skipped === '') this.openTag(true)
    else if (FOREIGN_ENDS.has(this.tag)) this.onopentagend()
  }

  onclosetag(start: number, end: number): void {
    const name = this.html.slice(start, end).toLowerCase()
    if (this.skipped !== '') {
      if (name === this.skipped) this.endSkipped(false)
      return
    }
    this.flushText()
    if (name === 'title') this.title = undefined
    else this.builder.closeElement(name)
  }

  onend(): void {
    this.flushText()
  }

  oncomment(): void {}
  oncdata(): void {}
  ondeclaration(): void {}
  onprocessinginstruction(): void {}

  private openTag(isClosed: boolean): void {
    this.flushText()
    const { tag, attributes } = this
    const isFormula = tag === 'script' && FORMULA_TYPE.test(attributes.get('type') ?? '')
    if (SKIPPED_TAGS.has(tag) && !isFormula) {
      // `<svg/>` is complete; `<script/>` is not, except in XHTML.
      if (isClosed && (tag === 'svg' || this.isXml)) return
      this.skipped = tag
      this.skippedLevel = 1
    } else if (HEAD_TAGS.has(tag)) this.openHeadTag(tag, attributes, isClosed)
    else if (tag === 'html') this.language ||= attributes.get('lang') ?? attributes.get('xml:lang') ?? ''
    else if (tag !== 'head' && tag !== 'body') {
      // HTML reads a self-closed anchor as an open one; as a target without text it is meant to be empty.
      const isEmpty = isClosed && (this.isXml || (tag === 'a' && !attributes.has('href')))
      this.builder.openElement(tag, attributes, isEmpty)
    }
  }

  private openHeadTag(tag: string, attributes: ReadonlyMap<string, string>, isClosed: boolean): void {
    const element = new HtmlElement(tag, attributes)
    this.head.push(element)
    if (!VOID_TAGS.has(tag) && !(isClosed && this.isXml)) this.title = element
  }

  private isHeard(): boolean {
    return this.skipped === '' || (this.skipped === 'script' && JSON_TYPE.test(this.attributes.get('type') ?? ''))
  }

  private endSkipped(isBrokenOff: boolean): void {
    this.skippedLevel -= 1
    if (this.skippedLevel > 0 && !isBrokenOff) return
    if (this.skipped === 'script') this.endScript()
    this.text = []
    this.skipped = ''
    if (isBrokenOff) this.openTag(false)
  }

  private endScript(): void {
    this.hasScripts = true
    if (this.text.length === 0) return
    const isLinkedData = JSON_LD_TYPE.test(this.attributes.get('type') ?? '')
    const scripts = isLinkedData ? this.jsonLd : this.state
    scripts.push(this.text.join(''))
  }

  private flushText(): void {
    if (this.text.length === 0) return
    const data = this.text.join('')
    this.text = []
    if (this.title === undefined) this.builder.addText(data)
    else this.title.append(new HtmlText(data))
  }
}
