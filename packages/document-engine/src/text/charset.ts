import { charsetOf, decodeAs } from './charset-names.js'
import { detectCharset, utf16ByZeros, utf8Standing } from './charset-detection.js'

/** WHATWG HTML: how far a declaration inside the page may stand from its beginning. */
const DECLARATION_BYTES = 1024
/** So many well-formed characters are no chance in a text of another charset of several bytes. */
const CERTAIN_UTF8_CHARACTERS = 8

interface DecodeOptions {
  /** Looks for a `<meta>` that names the charset as well. */
  readonly htmlMeta?: boolean
}

/**
 * The text of a document: byte order mark, else `Content-Type`, else its own declaration (XML's, and HTML's where asked
 * for), else what the bytes look like, else UTF-8. A claim that the bytes refute is not followed. The mark is taken off;
 * never throws, linear.
 */
export function decodeText(bytes: Uint8Array, contentType: string, options: DecodeOptions = {}): string {
  const marked = charsetOfMark(bytes)
  if (marked !== undefined) return decodeAs(bytes, marked)
  const claimed = charsetOfContentType(contentType) ?? declaredCharset(bytes, options)
  return decodeAs(bytes, claimed === undefined ? detectCharset(bytes) : believableCharset(bytes, claimed))
}

function charsetOfMark(bytes: Uint8Array): string | undefined {
  const [first, second, third, fourth] = bytes
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8'
  if (first === 0xff && second === 0xfe) return third === 0 && fourth === 0 ? 'utf-32le' : 'utf-16le'
  if (first === 0xfe && second === 0xff) return 'utf-16be'
  return first === 0 && second === 0 && third === 0xfe && fourth === 0xff ? 'utf-32be' : undefined
}

function charsetOfContentType(contentType: string): string | undefined {
  const label = /;\s{0,9}charset\s{0,9}=\s{0,9}["']?([^"';,\s]{1,40})/i.exec(contentType)?.[1]
  return label === undefined ? undefined : charsetOf(label)
}

/** A declaration that can be read byte by byte cannot stand in UTF-16: whoever claims that means UTF-8. */
function declaredCharset(bytes: Uint8Array, options: DecodeOptions): string | undefined {
  const head = decodeAs(bytes.subarray(0, DECLARATION_BYTES), 'windows-1252')
  const inXml = /^\s*<\?xml\s[^>]*?encoding\s*=\s*["']([^"']{1,40})["']/i.exec(head)?.[1]
  const label = inXml ?? (options.htmlMeta === true ? metaLabel(head) : undefined)
  const charset = label === undefined ? undefined : charsetOf(label)
  return charset?.startsWith('utf-') === true ? 'utf-8' : charset
}

function metaLabel(head: string): string | undefined {
  const uncommented = head.replace(/<!--.*?(?:-->|$)/gs, '')
  for (const [tag] of uncommented.matchAll(/<meta[\s/][^>]*/gi)) {
    const label = /charset\s*=\s*["']?\s*([^"'>;\s/]{1,40})/i.exec(tag)?.[1]
    if (label !== undefined && charsetOf(label) !== undefined) return label
  }
  return undefined
}

function believableCharset(bytes: Uint8Array, claimed: string): string {
  if (claimed.startsWith('utf-16')) return believableUtf16(bytes, claimed)
  if (claimed.startsWith('utf-32')) return claimed
  const { good, bad } = utf8Standing(bytes)
  if (claimed === 'utf-8') return bad > good ? detectCharset(bytes) : claimed
  const least = isSingleByte(claimed) ? 1 : CERTAIN_UTF8_CHARACTERS
  return bad === 0 && good >= least ? 'utf-8' : claimed
}

function believableUtf16(bytes: Uint8Array, claimed: string): string {
  const found = utf16ByZeros(bytes)
  if (found !== undefined) return found
  return utf8Standing(bytes).bad === 0 ? 'utf-8' : claimed
}

function isSingleByte(charset: string): boolean {
  return !/^(?:gb18030|big5|euc-|shift_jis|iso-2022-)/.test(charset)
}
