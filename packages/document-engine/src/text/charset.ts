import { isUtf8 } from 'node:buffer'
import chardet from 'chardet'
import iconv from 'iconv-lite'

/**
 * Labels in use that the WHATWG list lacks, and labels read as a superset: files labelled gb2312 and gbk may hold characters
 * of gb18030, and latin-1 is windows-1252 in practice.
 */
const ALIASES: ReadonlyMap<string, string> = new Map<string, string>(
  Object.entries({
    gbk: 'gb18030',
    cp936: 'gb18030',
    ms936: 'gb18030',
    'windows-936': 'gb18030',
    cp949: 'euc-kr',
    ms949: 'euc-kr',
    uhc: 'euc-kr',
    cp932: 'shift_jis',
    ms932: 'shift_jis',
    cp950: 'big5',
    'utf-8-sig': 'utf-8',
    utf8mb4: 'utf-8',
    utf16: 'utf-16le',
    latin9: 'iso-8859-15',
    'x-user-defined': 'windows-1252',
    cp437: 'cp437',
    ibm437: 'cp437',
    cp850: 'cp850',
    ibm850: 'cp850',
    cp852: 'cp852',
    ibm852: 'cp852',
  }),
)

/**
 * What the decoder of Node 20 lacks or gets wrong: its euc-kr has no UHC, its big5 gives private-use characters for the
 * extensions of Hong Kong, and it knows no UTF-32 and no code pages of DOS.
 */
const ICONV_NAMES: ReadonlyMap<string, string> = new Map<string, string>(
  Object.entries({
    big5: 'big5',
    'euc-kr': 'cp949',
    'iso-8859-16': 'iso-8859-16',
    'utf-32le': 'utf-32le',
    'utf-32be': 'utf-32be',
    cp437: 'cp437',
    cp850: 'cp850',
    cp852: 'cp852',
  }),
)

/** WHATWG: windows-1252, bytes 0x80 to 0x9F. */
const WINDOWS_1252_HIGH = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ'

/** The name for `decodeAs` of a label in a header or a page; undefined for an unknown charset. */
function charsetOf(label: string): string | undefined {
  const name = label.trim().toLowerCase()
  if (!/^[a-z0-9][a-z0-9_:.()+-]{0,39}$/.test(name)) return undefined
  const alias = ALIASES.get(name)
  if (alias !== undefined) return alias
  if (ICONV_NAMES.has(name)) return name
  try {
    const standard = new TextDecoder(name).encoding
    return ALIASES.get(standard) ?? standard
  } catch {
    return undefined
  }
}

/** Decodes with a name from `charsetOf`. Invalid bytes become U+FFFD; a byte order mark is removed. */
function decodeAs(bytes: Uint8Array, charset: string): string {
  const text = decodeRaw(bytes, charset)
  return text.startsWith('\ufeff') ? text.slice(1) : text
}

function decodeRaw(bytes: Uint8Array, charset: string): string {
  const iconvName = ICONV_NAMES.get(charset)
  if (iconvName !== undefined) return iconv.decode(bytes, iconvName, { stripBOM: false })
  if (charset === 'windows-1252') return decodeWindows1252(bytes)
  return new TextDecoder(charset, { ignoreBOM: true }).decode(bytes)
}

/** Node 20 decodes windows-1252 as ISO 8859-1, which turns typographic quotes and the euro into control characters. */
function decodeWindows1252(bytes: Uint8Array): string {
  const latin1 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  return latin1.replace(/[\u0080-\u009f]/g, (character) => WINDOWS_1252_HIGH[character.charCodeAt(0) - 0x80] ?? '')
}

/** Most bytes that the statistics read. */
const SAMPLE_BYTES = 65_536
/** Least confidence of chardet: below it, it lists every multi-byte charset in a fixed order. */
const GUESS_CONFIDENCE = 20
const MARKUP_OPEN = 0x3c
const MARKUP_CLOSE = 0x3e

type Utf16 = 'utf-16le' | 'utf-16be'

interface Utf8Standing {
  /** Well-formed sequences of more than one byte. */
  readonly good: number
  /** Number of invalid sequences. */
  readonly bad: number
}

/** Counts valid and invalid UTF-8 sequences. Linear time. */
export function utf8Standing(bytes: Uint8Array): Utf8Standing {
  let leads = 0
  for (const byte of bytes) if (byte >= 0xc0) leads += 1
  if (isUtf8(bytes)) return { good: leads, bad: 0 }
  let good = 0
  let bad = 0
  const text = decodeAs(bytes, 'utf-8')
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index)
    if (unit === 0xfffd) bad += 1
    else if (unit >= 0x80) good += 1
  }
  return { good, bad }
}

/**
 * UTF-16 without a byte order mark, known by the zero bytes of its Latin letters, digits and blanks; undefined for
 * anything else, such as a Chinese text without a single one of these.
 */
export function utf16ByZeros(bytes: Uint8Array): Utf16 | undefined {
  const length = Math.min(bytes.length, SAMPLE_BYTES) & ~1
  if (length < 4) return undefined
  const zeros: [even: number, odd: number] = [0, 0]
  for (let index = 0; index < length; index += 1) if (bytes[index] === 0) zeros[index % 2 === 0 ? 0 : 1] += 1
  const [even, odd] = zeros
  const many = Math.max(1, length / 10)
  if (odd > many && even * 10 < odd) return 'utf-16le'
  if (even > many && odd * 10 < even) return 'utf-16be'
  return undefined
}

/** The charset detected from the bytes, for documents that declare none or a wrong one. */
function detectCharset(bytes: Uint8Array): string {
  const utf16 = utf16ByZeros(bytes)
  if (utf16 !== undefined) return utf16
  const { good, bad } = utf8Standing(bytes)
  if (bad === 0) return good === 0 && hasJisEscape(bytes) ? 'iso-2022-jp' : 'utf-8'
  return good > bad ? 'utf-8' : statisticalCharset(bytes)
}

function hasJisEscape(bytes: Uint8Array): boolean {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, SAMPLE_BYTES))
  return head.includes('\x1b$B') || head.includes('\x1b$@')
}

function statisticalCharset(bytes: Uint8Array): string {
  const sample = proseSample(bytes)
  const matches = chardet.analyse(sample)
  if ((matches[0]?.confidence ?? 0) < GUESS_CONFIDENCE && isMostlyCommonChinese(sample)) return 'gb18030'
  for (const match of matches) {
    const charset = charsetOf(match.name)
    if (charset === undefined || charset.startsWith('utf-')) continue
    if (faultShare(decodeAs(sample, charset)) < 0.02) return charset
  }
  return 'windows-1252'
}

/**
 * Detects short Chinese texts, such as a price list, which have too few characters for the statistics of pairs. They consist
 * of pairs of high bytes, nearly all among the commonest 3,755 characters (rows 0xB0 to 0xD7 of GB 2312). Accents between
 * Latin letters and Cyrillic words do not.
 */
function isMostlyCommonChinese(sample: Uint8Array): boolean {
  let pairs = 0
  let common = 0
  for (let index = 0; index < sample.length; index += 1) {
    const lead = sample[index] ?? 0
    if (lead < 0x80) continue
    index += 1
    if ((sample[index] ?? 0) < 0xa1) return false
    pairs += 1
    if (lead >= 0xb0 && lead <= 0xd7) common += 1
  }
  return pairs >= 2 && common >= pairs * 0.8
}

function faultShare(text: string): number {
  let faults = 0
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) === 0xfffd) faults += 1
  return faults / Math.max(1, text.length)
}

/**
 * The bytes from the first non-ASCII one on, without text in angle brackets: the English markup would distort the
 * statistics. No charset in question uses the bytes of `<` and `>` inside a character.
 */
function proseSample(bytes: Uint8Array): Uint8Array {
  const start = bytes.findIndex((byte) => byte >= 0x80)
  const sample = new Uint8Array(SAMPLE_BYTES)
  let length = 0
  let isMarkup = false
  for (let index = Math.max(0, start); index < bytes.length && length < SAMPLE_BYTES; index += 1) {
    const byte = bytes[index] ?? 0
    if (byte === MARKUP_OPEN) isMarkup = true
    if (!isMarkup) sample[length++] = byte
    if (byte === MARKUP_CLOSE) isMarkup = false
  }
  return sample.subarray(0, length)
}

/** WHATWG HTML: bytes in which a page may declare its charset. */
const DECLARATION_BYTES = 1024
/** Number of valid UTF-8 characters that do not occur by chance in another multi-byte charset. */
const CERTAIN_UTF8_CHARACTERS = 8

interface DecodeOptions {
  /** Whether a `<meta>` may declare the charset. */
  readonly htmlMeta?: boolean
}

/**
 * Decodes a document. The charset comes from the byte order mark, else `Content-Type`, else a declaration in the document
 * (XML, and HTML if asked for), else detection, else UTF-8. A declaration that the bytes contradict is ignored. The byte
 * order mark is removed. Never throws; linear time.
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

/** A declaration found byte by byte cannot be in UTF-16; one that names UTF-16 is read as UTF-8, as WHATWG requires. */
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
