import { collapseSpaces } from '../markdown/escape-markdown.js'
import { childrenOf } from '../markdown/markup-node.js'
import { codeLanguage } from '../markdown/code-handlers.js'
import { isHandle } from '../markdown/inline-handlers.js'
import { isBesideMath, linkTarget, mediaTarget, readImage } from '../markdown/media-handlers.js'
import { BLOCK_TAGS, HtmlElement, type HtmlNode, HtmlText, VOID_TAGS } from './html-node.js'

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '))

const WRITTEN_TAGS = words(
  'a abbr article b bdi bdo blockquote br caption cite code col colgroup dd del details dfn dl dt em figcaption figure ' +
    'h1 h2 h3 h4 h5 h6 hr i img ins kbd li main mark math ol p pre q rp rt ruby s samp section small strong sub summary ' +
    'sup table tbody td tfoot th thead time tr u ul var',
)
/** Elements of MathML, written unchanged: they have neither addresses nor event handlers. */
const MATH_TAGS = words(
  'annotation menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mroot mrow ms mspace msqrt mstyle msub msubsup ' +
    'msup mtable mtd mtext mtr munder munderover semantics',
)
const WRITTEN_ATTRIBUTES = words('title lang dir colspan rowspan start value datetime cite encoding display alttext')
const PLAYER_TAGS = words('video audio')

/** HTML of the content of an element, without scripts, styles and classes; addresses are absolute where there is a base. */
export function writeHtml(root: HtmlElement, baseUrl: string): string {
  const writer = new HtmlWriter(baseUrl)
  writer.writeChildren(root)
  return writer.parts.join('').trim()
}

class HtmlWriter {
  readonly parts: string[] = []
  private preformatted = 0

  constructor(private readonly baseUrl: string) {}

  writeChildren(element: HtmlElement): void {
    for (let child = element.firstChild; child !== null; child = child.nextSibling) {
      if (child instanceof HtmlElement) this.writeElement(child)
      else this.parts.push(escapeText(this.preformatted > 0 ? child.data : collapseSpaces(child.data)))
    }
  }

  private writeElement(element: HtmlElement): void {
    const tag = element.localName
    if (tag === 'a') this.writeLink(element)
    else if (tag === 'img') this.parts.push(isBesideMath(element) ? '' : imageTag(element, this.baseUrl))
    else if (PLAYER_TAGS.has(tag)) this.parts.push(playerTag(element, this.baseUrl))
    else if (tag === 'pre') this.writeProgram(element)
    else if (isRepeatedFormula(element)) return
    else if (VOID_TAGS.has(tag)) this.parts.push(WRITTEN_TAGS.has(tag) ? `<${tag}>` : '')
    else if (WRITTEN_TAGS.has(tag) || MATH_TAGS.has(tag)) this.writeAs(tag, element)
    else if (tag !== 'iframe') this.writePlain(element)
  }

  /** A program keeps its language as HTML has it: in a class of its `code`. */
  private writeProgram(element: HtmlElement): void {
    const language = codeLanguage(element)
    this.preformatted += 1
    if (language === '') this.writeAs('pre', element)
    else {
      this.parts.push(`<pre${attributesOf(element)}><code class="language-${escapeAttribute(language)}">`)
      this.writeChildren(onlyCode(element) ?? element)
      this.parts.push('</code></pre>')
    }
    this.preformatted -= 1
  }

  private writeAs(tag: string, element: HtmlElement): void {
    this.parts.push(`<${tag}${attributesOf(element)}>`)
    this.writeChildren(element)
    this.parts.push(`</${tag}>`)
  }

  /** Writes a block as `div` unless it only holds one other block; of other elements only their content. */
  private writePlain(element: HtmlElement): void {
    const isBlock = BLOCK_TAGS.has(element.localName) || element.holdsBlocks
    if (isBlock && !holdsOneBlock(element)) this.writeAs('div', element)
    else this.writeChildren(element)
  }

  private writeLink(element: HtmlElement): void {
    const target = linkTarget(element.attribute('href').trim(), this.baseUrl)
    if (target === undefined) {
      if (!isHandle(element)) this.writePlain(element)
      return
    }
    this.parts.push(`<a href="${escapeAddress(target)}"${attributesOf(element)}>`)
    this.writeChildren(element)
    this.parts.push('</a>')
  }
}

/** MathML says in an annotation what it has said in elements, and renderers draw it again for the eye. */
function isRepeatedFormula(element: HtmlElement): boolean {
  if (element.localName.startsWith('annotation')) return element.parentNode?.localName === 'semantics'
  return element.localName === 'span' && /(?:^|\s)katex-html(?:\s|$)/.test(element.attribute('class'))
}

/** The `code` that is all of a program. */
function onlyCode(pre: HtmlElement): HtmlElement | undefined {
  const [first, second] = [...childrenOf<HtmlNode>(pre)].filter(
    (node) => node instanceof HtmlElement || node.data.trim() !== '',
  )
  return first instanceof HtmlElement && first.localName === 'code' && second === undefined ? first : undefined
}

function imageTag(element: HtmlElement, baseUrl: string): string {
  const image = readImage(element, baseUrl, 0)
  if (image?.kind !== 'image') return ''
  const sizes = ['width', 'height'].map((name) => sizeOf(element, name))
  return `<img src="${escapeAddress(image.url)}" alt="${escapeAttribute(image.alt)}"${sizes.join('')}>`
}

function sizeOf(element: HtmlElement, name: string): string {
  const value = element.attribute(name)
  return /^\d{1,5}$/.test(value) ? ` ${name}="${value}"` : ''
}

function playerTag(element: HtmlElement, baseUrl: string): string {
  const sources = [element, ...childrenOf(element)].map((node) =>
    node instanceof HtmlElement ? node.attribute('src') : '',
  )
  const source = mediaTarget(sources.find((reference) => reference !== '')?.trim() ?? '', baseUrl)
  const tag = element.localName
  return source === undefined ? '' : `<${tag} src="${escapeAddress(source)}" controls></${tag}>`
}

function attributesOf(element: HtmlElement): string {
  let written = ''
  for (const [name, value] of element.attributes) {
    if (WRITTEN_ATTRIBUTES.has(name)) written += ` ${name}="${escapeAttribute(value)}"`
  }
  return written
}

function holdsOneBlock(element: HtmlElement): boolean {
  let only: HtmlNode | undefined
  for (let child = element.firstChild; child !== null; child = child.nextSibling) {
    if (child instanceof HtmlText && child.data.trim() === '') continue
    if (only !== undefined) return false
    only = child
  }
  return only instanceof HtmlElement && (BLOCK_TAGS.has(only.localName) || only.holdsBlocks)
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function escapeAttribute(text: string): string {
  return escapeText(text).replaceAll('"', '&quot;')
}

/** Addresses made for Markdown have those ampersands escaped that would begin an entity. */
function escapeAddress(address: string): string {
  return escapeAttribute(address.replaceAll('&amp;', '&'))
}
