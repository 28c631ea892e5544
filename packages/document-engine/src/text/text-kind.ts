import { type DocumentKind, EngineFault, type EngineInput, mediaTypeOf } from '../model/document.js'
import { decodeText } from './charset.js'

/** How far a licence in a comment may push the first tag down. */
const SNIFFED_BYTES = 65_536

const MARKDOWN_TYPES: ReadonlySet<string> = new Set(['text/markdown', 'text/x-markdown'])
const CSV_TYPES: ReadonlySet<string> = new Set([
  'text/csv',
  'application/csv',
  'text/x-csv',
  'text/tab-separated-values',
])
const HTML_TYPES: ReadonlySet<string> = new Set(['text/html', 'application/xhtml+xml'])
/** Claims that say nothing. */
const NO_TYPES: ReadonlySet<string> = new Set([
  '',
  'application/octet-stream',
  'binary/octet-stream',
  'unknown/unknown',
])

const EXTENSIONS: ReadonlyMap<string, DocumentKind> = new Map<string, DocumentKind>(
  Object.entries({
    md: 'markdown',
    markdown: 'markdown',
    mdown: 'markdown',
    mkd: 'markdown',
    csv: 'csv',
    tsv: 'csv',
    html: 'html',
    htm: 'html',
    xhtml: 'html',
  }),
)

/** Tags that make a page of whatever begins with them. */
const PAGE = /^<(?:!doctype\s+html|html|head|body)[\s>/]/i
/** Tags that begin a piece of HTML, but a Markdown file or an XML document of one's own just as well. */
const PIECE =
  /^<(?:title|meta|link|script|style|base|div|p|h[1-6]|table|ul|ol|dl|section|article|main|header|nav|span|a|b|br|font|center|img|form|iframe|pre|blockquote)[\s>/]/i

/**
 * Which kind of text it is.
 *
 * @throws EngineFault `unsupported` for pictures that are text (SVG)
 */
export function textKind(input: EngineInput): DocumentKind {
  const head = decodeText(input.bytes.subarray(0, SNIFFED_BYTES), input.contentType)
  const start = afterPreamble(head)
  if (PAGE.test(start)) return 'html'
  if (/^<(?:!doctype\s+)?svg[\s>]/i.test(start)) {
    throw new EngineFault('unsupported', 'The document looks like an SVG picture, which cannot be read.')
  }
  const claimed = claimedKind(input)
  if (claimed !== undefined) return claimed
  return PIECE.test(start) && isUnclaimed(input) ? 'html' : 'text'
}

/** Extension of a file name in lower case; '' without one. */
export function extensionOf(name: string): string {
  return /\.([a-z0-9]{1,12})$/i.exec(name)?.[1]?.toLowerCase() ?? ''
}

function claimedKind({ contentType, name }: EngineInput): DocumentKind | undefined {
  const type = mediaTypeOf(contentType)
  if (HTML_TYPES.has(type)) return 'html'
  if (MARKDOWN_TYPES.has(type)) return 'markdown'
  if (CSV_TYPES.has(type)) return 'csv'
  return EXTENSIONS.get(extensionOf(name))
}

function isUnclaimed({ contentType, name }: EngineInput): boolean {
  return NO_TYPES.has(mediaTypeOf(contentType)) && extensionOf(name) === ''
}

/** What follows blanks, comments and processing instructions. Linear. */
function afterPreamble(head: string): string {
  let position = 0
  for (;;) {
    while (/\s/.test(head.charAt(position))) position += 1
    const end = preambleEnd(head, position)
    if (end === undefined) return head.slice(position, position + 64)
    position = end
  }
}

function preambleEnd(head: string, position: number): number | undefined {
  const closing = head.startsWith('<!--', position) ? '-->' : head.startsWith('<?', position) ? '>' : undefined
  if (closing === undefined) return undefined
  const end = head.indexOf(closing, position + 2)
  return end === -1 ? head.length : end + closing.length
}
