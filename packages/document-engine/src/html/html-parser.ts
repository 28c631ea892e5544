import { Tokenizer, type TokenizerCallbacks } from 'htmlparser2'
import { HtmlElement, HtmlText } from './html-node.js'
import { FOREIGN_ENDS, HEAD_TAGS, KEPT_ATTRIBUTES, SKIPPED_TAGS, VOID_TAGS } from './tag-rules.js'
import { TreeBuilder } from './tree-builder.js'

export interface HtmlTree {
  readonly body: HtmlElement
  /** `title`, `meta`, `link` and `base`, wherever they stood. */
  readonly head: readonly HtmlElement[]
  /** The texts of JSON-LD scripts. */
  readonly jsonLd: readonly string[]
}

const LONGEST_ATTRIBUTE = 16_384
/** Formulas stand in scripts that are none. */
const FORMULA_TYPE = /^\s*math\/(?:tex|asciimath|mml)/i
const JSON_LD_TYPE = /^\s*application\/ld\+json/i

/**
 * Reads markup, however broken, into a tree without scripts, styles and handlers. Linear in time and memory.
 *
 * @throws EngineFault too_large when it holds too many elements
 */
export function readTree(html: string): HtmlTree {
  // In HTML this opens a comment up to the next `>`; the tokenizer would look for the end that XML has.
  const text = html.replaceAll('<![CDATA[', '<!CDATA ')
  const reader = new TreeReader(text)
  const tokenizer = new Tokenizer({ xmlMode: false, decodeEntities: true }, reader)
  tokenizer.write(text)
  tokenizer.end()
  return { body: reader.builder.body, head: reader.head, jsonLd: reader.jsonLd }
}

class TreeReader implements TokenizerCallbacks {
  readonly builder = new TreeBuilder()
  readonly head: HtmlElement[] = []
  readonly jsonLd: string[] = []
  private text: string[] = []
  private tag = ''
  private attributes = new Map<string, string>()
  private attributeName = ''
  private attributeValue = ''
  /** Name of the element that is passed over, and how many of that name are open inside. */
  private skipped = ''
  private skippedLevel = 0
  private title: HtmlElement | undefined

  constructor(private readonly html: string) {}

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
    if (!KEPT_ATTRIBUTES.has(name) || this.attributes.has(name) || value.length > LONGEST_ATTRIBUTE) return
    this.attributes.set(name, value)
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
      // `<svg/>` is complete; `<script/>` is not.
      if (isClosed && tag === 'svg') return
      this.skipped = tag
      this.skippedLevel = 1
    } else if (HEAD_TAGS.has(tag)) this.openHeadTag(tag, attributes)
    else if (tag !== 'html' && tag !== 'head' && tag !== 'body') this.builder.openElement(tag, attributes)
  }

  private openHeadTag(tag: string, attributes: ReadonlyMap<string, string>): void {
    const element = new HtmlElement(tag, attributes)
    this.head.push(element)
    if (!VOID_TAGS.has(tag)) this.title = element
  }

  private isHeard(): boolean {
    return this.skipped === '' || (this.skipped === 'script' && JSON_LD_TYPE.test(this.attributes.get('type') ?? ''))
  }

  private endSkipped(isBrokenOff: boolean): void {
    this.skippedLevel -= 1
    if (this.skippedLevel > 0 && !isBrokenOff) return
    if (this.skipped === 'script' && this.text.length > 0) this.jsonLd.push(this.text.join(''))
    this.text = []
    this.skipped = ''
    if (isBrokenOff) this.openTag(false)
  }

  private flushText(): void {
    if (this.text.length === 0) return
    const data = this.text.join('')
    this.text = []
    if (this.title === undefined) this.builder.addText(data)
    else this.title.append(new HtmlText(data))
  }
}
