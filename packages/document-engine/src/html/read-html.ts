import { htmlToMarkdown } from '../markdown/html-to-markdown.js'
import { descendantsOf } from '../markdown/markup-node.js'
import {
  type EngineInput,
  type EngineLimits,
  type EngineMetadata,
  type EngineOutput,
  type EngineWarning,
  languageTag,
  mediaTypeOf,
} from '../model/document.js'
import { decodeText } from '../text/charset.js'
import { contentLosses } from './content-losses.js'
import { collapseBlanks, HtmlElement, textBelow } from './html-node.js'
import { type HtmlTree, readTree } from './html-parser.js'
import { writeHtml } from './html-writer.js'
import { mainContent } from './main-content.js'

/** Longest metadata text, in UTF-8. */
const LONGEST_BYTES = 2048
const MOST_META_TAGS = 5000

/** URL that relative addresses are resolved against: the page's `base`, else its own; '' when neither is known. */
export function pageBaseUrl(tree: HtmlTree, documentUrl: string): string {
  const declared = tree.head.find((element) => element.localName === 'base' && element.attributes.has('href'))
  const base = absoluteUrl(declared?.attribute('href') ?? '', documentUrl)
  return base !== '' && /^https?:/i.test(base) ? base : documentUrl
}

/** Metadata of a page; '' for what it lacks. `baseUrl` may be ''. */
export function pageMetadata(tree: HtmlTree, documentUrl: string, baseUrl: string): EngineMetadata {
  const meta = metaValues(tree.head)
  const all = (name: string, separator: string): string => [...new Set(meta.get(name) ?? [])].join(separator)
  const first = (name: string): string => meta.get(name)?.[0] ?? ''
  const title = tree.head.find((element) => element.localName === 'title')
  return {
    title: shortened((title === undefined ? '' : textBelow(title)) || first('og:title') || firstHeading(tree.body)),
    description: shortened(all('description', ', ') || all('og:description', ', ') || all('twitter:description', ', ')),
    keywords: shortened(all('keywords', ',') || all('article:tag', ',')),
    siteName: shortened(
      first('og:site_name') ||
        first('application-name') ||
        first('apple-mobile-web-app-title') ||
        first('twitter:site').replace(/^@/, ''),
    ),
    favicon: shortened(favicon(tree.head, documentUrl, baseUrl)),
    language: languageTag(tree.language) || languageTag(first('content-language')) || languageTag(first('og:locale')),
    warnings: [],
  }
}

/** Contents of `meta` tags by name in lower case; pages use `name` and `property` alike. */
function metaValues(head: readonly HtmlElement[]): ReadonlyMap<string, readonly string[]> {
  const values = new Map<string, string[]>()
  for (const element of head.slice(0, MOST_META_TAGS)) {
    if (element.localName !== 'meta') continue
    const content = collapseBlanks(element.attribute('content'))
    if (content === '') continue
    const names = ['name', 'property', 'http-equiv'].map((attribute) => normalName(element.attribute(attribute)))
    for (const name of new Set(names)) {
      if (name !== '') values.set(name, [...(values.get(name) ?? []), content])
    }
  }
  return values
}

function normalName(name: string): string {
  return name.trim().toLowerCase()
}

function firstHeading(body: HtmlElement): string {
  for (const node of descendantsOf(body)) {
    if (node instanceof HtmlElement && node.localName === 'h1') {
      const text = textBelow(node)
      if (text !== '') return text
    }
  }
  return ''
}

function favicon(head: readonly HtmlElement[], documentUrl: string, baseUrl: string): string {
  const icons: string[] = []
  const others: string[] = []
  for (const element of head) {
    if (element.localName !== 'link') continue
    const href = element.attribute('href').trim()
    const rel = element.attribute('rel').toLowerCase()
    if (href === '' || !rel.includes('icon') || /^data:/i.test(href)) continue
    const url = absoluteUrl(href, baseUrl)
    if (!/^https?:/i.test(url)) continue
    if (rel.split(/\s+/).includes('icon')) icons.push(url)
    else others.push(url)
  }
  return icons[0] ?? others[0] ?? absoluteUrl('/favicon.ico', documentUrl)
}

/** '' when it cannot be made absolute. */
function absoluteUrl(reference: string, base: string): string {
  try {
    return new URL(reference, base === '' ? undefined : base).href
  } catch {
    return ''
  }
}

function shortened(text: string): string {
  if (text.length * 3 <= LONGEST_BYTES) return text
  const bytes = Buffer.from(text)
  if (bytes.length <= LONGEST_BYTES) return text
  let end = LONGEST_BYTES
  // Not inside a character.
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return bytes.subarray(0, end).toString()
}

const SCRIPTS_NEEDED: EngineWarning = {
  code: 'scripts_needed',
  message: 'A script would fill this page, and scripts are not run: the answer has its title and description.',
}

/**
 * Reads a page: its metadata, and its main content as cleaned HTML and as Markdown, which begins with the title of the
 * page; both are '' when the page has no text.
 *
 * @throws EngineFault too_large
 */
export function readHtml(input: EngineInput, _limits: EngineLimits): EngineOutput {
  const isXml = mediaTypeOf(input.contentType) === 'application/xhtml+xml' || undefined
  const tree = readTree(decodeText(input.bytes, input.contentType, { htmlMeta: true }), isXml)
  const baseUrl = pageBaseUrl(tree, input.baseUrl)
  const metadata = pageMetadata(tree, input.baseUrl, baseUrl)
  const { title, body, needsScripts } = mainContent(tree, metadata)
  const html = writeHtml(body, baseUrl)
  const whole = new HtmlElement('main', new Map())
  whole.append(title)
  whole.append(body)
  return {
    kind: 'html',
    metadata: { ...metadata, warnings: needsScripts ? [SCRIPTS_NEEDED] : contentLosses(body) },
    html,
    markdown: htmlToMarkdown(whole, { baseUrl }),
    pages: 1,
  }
}
