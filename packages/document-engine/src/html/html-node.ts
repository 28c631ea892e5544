import { collapseSpaces } from '../markdown/escape-markdown.js'
import { descendantsOf, type MarkupNode } from '../markdown/markup-node.js'

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '))

/** Those of MathML at the end: they hold nothing, whether they close themselves or not. */
export const VOID_TAGS = words(
  'area base basefont br col embed frame hr img input link meta param source track wbr keygen mprescripts none mspace',
)

/** Elements that start a line of their own. */
export const BLOCK_TAGS = words(
  'address article aside blockquote body button caption center dd details dialog dir div dl dt fieldset figcaption ' +
    'figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html label legend li main menu nav ol p pre search ' +
    'section summary table tbody td tfoot th thead tr ul',
)

/** Elements without text of the page; the parser skips their content. */
export const SKIPPED_TAGS = words(
  'script style template svg canvas select datalist textarea noframes noembed applet map xmp',
)

/** Start tags that end a skipped element such as `svg` whose end tag is missing. */
export const FOREIGN_ENDS = words('body div p h1 h2 h3 h4 h5 h6 ul ol li table section article main footer nav header')

/** Metadata elements; collected apart, wherever they stand. */
export const HEAD_TAGS = words('base link meta title')

/** An unmatched end tag inside these closes nothing outside of them. */
export const SCOPE_TAGS = words('table td th caption html')

interface ImpliedEnd {
  /** Open elements that the tag closes … */
  readonly ended: ReadonlySet<string>
  /** … unless one of these was opened after them. */
  readonly within: ReadonlySet<string>
}

const PARAGRAPH_END: ImpliedEnd = { ended: words('p'), within: words('table td th caption button') }
const HEADINGS = words('h1 h2 h3 h4 h5 h6')
const NOT_IN_PARAGRAPHS = [...BLOCK_TAGS].filter(
  (tag) => !/^(?:button|label|body|html|td|th|tr|tbody|thead)$/.test(tag),
)

/** WHATWG HTML 13.2.6: what an opening tag closes, in the order of closing. */
export const IMPLIED_ENDS: ReadonlyMap<string, readonly ImpliedEnd[]> = impliedEnds()

function impliedEnds(): Map<string, ImpliedEnd[]> {
  const ends = new Map<string, ImpliedEnd[]>()
  const add = (tags: Iterable<string>, end: ImpliedEnd): void => {
    for (const tag of tags) ends.set(tag, [...(ends.get(tag) ?? []), end])
  }
  add(NOT_IN_PARAGRAPHS, PARAGRAPH_END)
  add(['li'], { ended: words('li'), within: words('ul ol menu dir table td th section article') })
  add(['dt', 'dd'], { ended: words('dt dd'), within: words('dl table td th ul ol') })
  add(HEADINGS, { ended: HEADINGS, within: new Set([...BLOCK_TAGS].filter((tag) => !HEADINGS.has(tag))) })
  add(['tr'], { ended: words('tr caption'), within: words('table') })
  add(['td', 'th'], { ended: words('td th'), within: words('table tr') })
  add(['tbody', 'thead', 'tfoot'], { ended: words('tbody thead tfoot caption'), within: words('table') })
  add(['a'], { ended: words('a'), within: words('table td th caption') })
  add(['rt', 'rp'], { ended: words('rt rp'), within: words('ruby') })
  return ends
}

/** Formatting elements: their end tag closes them even while blocks inside them stay open. */
export const FORMATTING_TAGS = words('a b big code em font i nobr s small strike strong tt u')

/** Attributes that the engine reads; others, event handlers included, never enter the tree. */
export const KEPT_ATTRIBUTES = words(
  'class id role itemprop hidden aria-hidden aria-modal aria-label aria-level aria-expanded style href src srcset alt ' +
    'title width height colspan rowspan align lang xml:lang epub:type dir type name property content rel start value checked datetime cite ' +
    'http-equiv display encoding alttext mathvariant linethickness bevelled notation close separators poster data-src data-srcset data-lazy-src data-lazy-srcset data-original data-lazy ' +
    'data-lang data-language data-line-number allow allowfullscreen open',
)

export type HtmlNode = HtmlElement | HtmlText

export class HtmlText implements MarkupNode {
  readonly nodeType = 3
  readonly firstChild = null
  parentNode: HtmlElement | null = null
  nextSibling: HtmlNode | null = null

  constructor(readonly data: string) {}
}

/** An element of a page, with as few fields as possible: a page may have 600,000. */
export class HtmlElement implements MarkupNode {
  readonly nodeType = 1
  parentNode: HtmlElement | null = null
  nextSibling: HtmlNode | null = null
  firstChild: HtmlNode | null = null
  lastChild: HtmlNode | null = null
  /** Set by the parser: a block element lies below this one. */
  holdsBlocks = false

  constructor(
    /** Lower case. */
    readonly localName: string,
    readonly attributes: ReadonlyMap<string, string>,
  ) {}

  /** Appends a node that has no parent yet. */
  append(node: HtmlNode): void {
    node.parentNode = this
    if (this.lastChild === null) this.firstChild = node
    else this.lastChild.nextSibling = node
    this.lastChild = node
  }

  /** '' when it is not there. */
  attribute(name: string): string {
    return this.attributes.get(name) ?? ''
  }

  getAttributeNode(name: string): { readonly value: string } | null {
    const value = this.attributes.get(name)
    return value === undefined ? null : { value }
  }
}

/** The characters below an element, blanks collapsed. */
export function textBelow(root: HtmlElement): string {
  const parts: string[] = []
  for (const node of descendantsOf(root)) if (node instanceof HtmlText) parts.push(node.data)
  return collapseBlanks(parts.join(''))
}

export const collapseBlanks = (text: string): string => collapseSpaces(text).trim()
