import { chooseContent } from './content-choice.js'
import { contentTree } from './content-tree.js'
import { HtmlElement, HtmlText, textBelow } from './html-node.js'
import { type HtmlTree, readTree } from './html-parser.js'
import { pageTraits } from './page-traits.js'
import { structuredText } from './structured-text.js'
import { textBlocks } from './text-blocks.js'

/** The data of a page stands in for a content that is so much shorter … */
const LEAST_SHARE = 0.3
/** … when it is long enough to be one. */
const SHORTEST_DATA = 200
const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map()

interface MainContent {
  /** Holds the heading above the content; empty when there is none. */
  readonly title: HtmlElement
  /** Empty when the page holds no text. */
  readonly body: HtmlElement
}

/** What a page is there for, as trees of their own. */
export function mainContent(tree: HtmlTree): MainContent {
  const page = textBlocks(tree.body)
  const data = structuredText(tree.jsonLd)
  if (page.blocks.length === 0) {
    // What is left is for browsers without scripts, and for us.
    return { title: emptyBody(), body: data === '' ? paragraphsOf(textBelow(tree.body)) : contentOfData(data) }
  }
  const { chosen, title } = chooseContent(pageTraits(tree, page))
  const body = contentTree(page, chosen)
  const isBodyElsewhere = data.length >= SHORTEST_DATA && textBelow(body).length < data.length * LEAST_SHARE
  return {
    title:
      title === undefined
        ? emptyBody()
        : contentTree(
            { ...page, media: [] },
            chosen.map((_, at) => at === title),
          ),
    body: isBodyElsewhere ? contentOfData(data) : body,
  }
}

/** Data of this kind holds markup as often as plain text. */
function contentOfData(data: string): HtmlElement {
  return /<\/?[a-z]/i.test(data) ? readTree(data).body : paragraphsOf(data)
}

function paragraphsOf(text: string): HtmlElement {
  const body = emptyBody()
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    const paragraph = new HtmlElement('p', NO_ATTRIBUTES)
    paragraph.append(new HtmlText(line.trim()))
    body.append(paragraph)
    body.holdsBlocks = true
  }
  return body
}

function emptyBody(): HtmlElement {
  return new HtmlElement('body', NO_ATTRIBUTES)
}
