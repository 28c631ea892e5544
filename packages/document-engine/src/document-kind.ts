import { type DocumentKind, EngineFault, type EngineInput, extensionOf, mediaTypeOf } from './model/document.js'
import { OfficePackage } from './office/office-package.js'
import { zipEntries } from './office/zip-directory.js'
import { decodeText, utf16ByZeros, utf8Standing } from './text/charset.js'

interface Signature {
  /** Latin-1. */
  readonly bytes: string
  readonly offset?: number
  readonly format: string
}

/** Signatures that no text begins with. */
const SIGNATURES: readonly Signature[] = [
  { bytes: '\x89PNG\r\n', format: 'a PNG picture' },
  { bytes: '\xff\xd8\xff', format: 'a JPEG picture' },
  { bytes: 'GIF87a', format: 'a GIF picture' },
  { bytes: 'GIF89a', format: 'a GIF picture' },
  { bytes: 'II*\0', format: 'a TIFF picture' },
  { bytes: 'MM\0*', format: 'a TIFF picture' },
  { bytes: '\0\0\x01\0', format: 'an icon' },
  { bytes: '8BPS\0', format: 'a Photoshop picture' },
  { bytes: 'AT&TFORM', format: 'a DjVu file' },
  { bytes: '\xff\xfb', format: 'an audio file' },
  { bytes: '\xff\xf3', format: 'an audio file' },
  { bytes: 'fLaC\0', format: 'an audio file' },
  { bytes: 'OggS\0', format: 'an audio or video file' },
  { bytes: 'MThd\0', format: 'an audio file' },
  { bytes: '\x1aE\xdf\xa3', format: 'a video file' },
  { bytes: 'FLV\x01', format: 'a video file' },
  { bytes: '\0\0\x01\xba', format: 'a video file' },
  { bytes: '\0\0\x01\xb3', format: 'a video file' },
  { bytes: '\x1f\x8b\x08', format: 'a gzip archive' },
  { bytes: 'BZh91AY', format: 'a bzip2 archive' },
  { bytes: '\xfd7zXZ\0', format: 'an xz archive' },
  { bytes: '7z\xbc\xaf\x27\x1c', format: 'a 7-Zip archive' },
  { bytes: 'Rar!\x1a\x07', format: 'a RAR archive' },
  { bytes: '\x28\xb5\x2f\xfd', format: 'a Zstandard archive' },
  { bytes: 'MSCF\0', format: 'a cabinet archive' },
  { bytes: '\x7fELF', format: 'a program' },
  { bytes: '\xfe\xed\xfa', format: 'a program' },
  { bytes: '\xce\xfa\xed\xfe', format: 'a program' },
  { bytes: '\xcf\xfa\xed\xfe', format: 'a program' },
  { bytes: '\xca\xfe\xba\xbe', format: 'a program' },
  { bytes: '\0asm', format: 'a program' },
  { bytes: 'SQLite format 3\0', format: 'a database' },
  { bytes: 'wOFF\0', format: 'a font' },
  { bytes: 'wOF2\0', format: 'a font' },
  { bytes: 'OTTO\0', format: 'a font' },
  { bytes: '\0\x01\0\0\0', format: 'a font' },
  { bytes: '%!PS', format: 'a PostScript file' },
]

/** Signatures of letters: a text may begin with them, but holds no zero byte, and all of these files do early on. */
const LETTER_SIGNATURES: readonly Signature[] = [
  { bytes: 'MZ', format: 'a program' },
  { bytes: 'BM', format: 'a bitmap picture' },
  { bytes: 'WEBP', offset: 8, format: 'a WebP picture' },
  { bytes: 'ftypheic', offset: 4, format: 'a HEIC picture' },
  { bytes: 'ftypmif1', offset: 4, format: 'a HEIF picture' },
  { bytes: 'ftypavif', offset: 4, format: 'an AVIF picture' },
  { bytes: 'ftypM4A', offset: 4, format: 'an audio file' },
  { bytes: 'ftyp', offset: 4, format: 'a video file' },
  { bytes: 'WAVE', offset: 8, format: 'an audio file' },
  { bytes: 'ID3', format: 'an audio file' },
  { bytes: 'AVI ', offset: 8, format: 'a video file' },
  { bytes: 'ustar', offset: 257, format: 'a tar archive' },
]

const HEAD_BYTES = 512

/** Name of a foreign format, with its article; undefined when the first bytes match no signature. */
function foreignFormat(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, HEAD_BYTES)).toString('latin1')
  const isMet = (signature: Signature): boolean => head.startsWith(signature.bytes, signature.offset ?? 0)
  const found = SIGNATURES.find(isMet) ?? (head.includes('\0') ? LETTER_SIGNATURES.find(isMet) : undefined)
  return found?.format
}

/** Folders that hold the parts of each kind (ECMA-376 leaves them to the writer, but all writers agree). */
const FOLDERS: readonly (readonly [folder: string, kind: DocumentKind])[] = [
  ['word/', 'docx'],
  ['xl/', 'xlsx'],
  ['ppt/', 'pptx'],
]

/** Streams of the old binary formats (MS-DOC, MS-XLS, MS-PPT, MS-OXMSG). */
const OLE_STREAMS: readonly (readonly [stream: string, words: string])[] = [
  ['WordDocument', 'in the old binary Word format (.doc); save it as .docx'],
  ['Workbook', 'in the old binary Excel format (.xls); save it as .xlsx'],
  ['PowerPoint Document', 'in the old binary PowerPoint format (.ppt); save it as .pptx'],
  ['__properties_version1.0', 'an Outlook message (.msg), which cannot be read'],
]

/** Types in the part `mimetype` of packages; those of templates continue them (ODF 1.3 part 2, 3.3; OCF 3.3, 4.3). */
const PACKAGE_KINDS: readonly (readonly [type: string, kind: DocumentKind])[] = [
  ['application/epub+zip', 'epub'],
  ['application/vnd.oasis.opendocument.text', 'odt'],
  ['application/vnd.oasis.opendocument.spreadsheet', 'ods'],
  ['application/vnd.oasis.opendocument.presentation', 'odp'],
]
const LONGEST_TYPE = 1024

function packageType(bytes: Uint8Array): string {
  const type = new OfficePackage(bytes, { pages: 1, decodedBytes: LONGEST_TYPE }).read('mimetype') ?? new Uint8Array()
  return Buffer.from(type).toString('latin1').trim()
}

/** @throws EngineFault `unsupported` for other archives, `broken`, `too_large` */
function zipKind(bytes: Uint8Array): DocumentKind {
  const names = [...zipEntries(bytes).keys()]
  if (names.includes('xl/workbook.bin')) {
    throw new EngineFault('unsupported', 'The document is a binary Excel workbook (.xlsb); save it as .xlsx.')
  }
  if (names.includes('[content_types].xml')) {
    for (const [folder, kind] of FOLDERS) if (names.some((name) => name.startsWith(folder))) return kind
  }
  const declared = names.includes('mimetype') ? packageType(bytes) : ''
  const kind = PACKAGE_KINDS.find(([type]) => declared.startsWith(type))?.[1]
  if (kind !== undefined) return kind
  if (names.includes('meta-inf/container.xml')) return 'epub'
  const format = declared.includes('opendocument') ? 'an OpenDocument file of a kind' : 'a ZIP archive,'
  throw new EngineFault('unsupported', `The document looks like ${format} which cannot be read.`)
}

/** Office 97 to 2003 files are OLE containers, and so are newer ones that a password protects. */
function oleFault(bytes: Uint8Array): EngineFault {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const holds = (stream: string): boolean => view.includes(Buffer.from(stream, 'utf16le'))
  if (holds('EncryptedPackage')) return new EngineFault('encrypted', 'The file is protected by a password.')
  const words = OLE_STREAMS.find(([stream]) => holds(stream))?.[1]
  return new EngineFault('unsupported', `The document is ${words ?? 'in an old binary format that cannot be read'}.`)
}

/** `{\rtf` */
const RTF_START = [0x7b, 0x5c, 0x72, 0x74, 0x66]

/** PDF 32000-1, annex H 3.4.1: readers accept a header anywhere in the first 1,024 bytes. */
const PDF_HEADER_BYTES = 1024
const PDF_TYPE = 'application/pdf'
const BINARY_SAMPLE_BYTES = 65_536
/** Random bytes have one control byte in nine; even a short text may have a single one. */
const MOST_CONTROL_SHARE = 0.005

/**
 * The kind of a document, by its bytes. Among kinds of text, which have no signature, the declared type and then the
 * extension of the name decide.
 *
 * @throws EngineFault `unsupported` naming what it looks like, `encrypted` for a protected Office file, `no_text` when it
 * is empty, `broken` for a damaged container
 */
export function documentKind(input: EngineInput): DocumentKind {
  const { bytes } = input
  if (bytes.length === 0) throw new EngineFault('no_text', 'The document is empty.')
  if (isPdf(input)) return 'pdf'
  if (startsWith(bytes, [0x50, 0x4b, 0x03, 0x04]) || startsWith(bytes, [0x50, 0x4b, 0x05, 0x06])) return zipKind(bytes)
  if (startsWith(bytes, [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1])) throw oleFault(bytes)
  if (startsWith(bytes, RTF_START)) return 'rtf'
  if (!isMarked(bytes)) {
    const format = foreignFormat(bytes)
    if (format !== undefined)
      throw new EngineFault('unsupported', `The document looks like ${format}, which cannot be read.`)
    if (isBinary(bytes)) throw new EngineFault('unsupported', 'The document is a binary file of an unknown format.')
  }
  return textKind(input)
}

function isPdf({ bytes, contentType, name }: EngineInput): boolean {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const position = view.subarray(0, PDF_HEADER_BYTES).indexOf('%PDF-')
  if (position === -1) return false
  if (view.toString('latin1', 0, position).trim() === '') return true
  // The header stands behind other bytes: a text that mentions it has no objects, and a text about the format, which may
  // have them, has neither the type nor the extension of a PDF.
  if (!view.includes('endobj')) return false
  return mediaTypeOf(contentType) === PDF_TYPE || extensionOf(name) === 'pdf' || !isText(bytes)
}

const isText = (bytes: Uint8Array): boolean => !isBinary(bytes) && utf8Standing(bytes).bad === 0

/** Whether a byte order mark comes first; only texts have one. */
function isMarked(bytes: Uint8Array): boolean {
  return (
    startsWith(bytes, [0xef, 0xbb, 0xbf]) ||
    startsWith(bytes, [0xff, 0xfe]) ||
    startsWith(bytes, [0xfe, 0xff]) ||
    startsWith(bytes, [0x00, 0x00, 0xfe, 0xff])
  )
}

function isBinary(bytes: Uint8Array): boolean {
  const sample = bytes.subarray(0, BINARY_SAMPLE_BYTES)
  if (utf16ByZeros(sample) !== undefined) return false
  let controls = 0
  for (const byte of sample) if (isControl(byte)) controls += 1
  return controls > Math.max(1, sample.length * MOST_CONTROL_SHARE)
}

/** WHATWG MIME Sniffing: binary data byte. Tabs, line ends, form feeds and the escapes of ISO 2022 are text. */
function isControl(byte: number): boolean {
  return byte <= 0x08 || byte === 0x0b || (byte >= 0x0e && byte <= 0x1a) || (byte >= 0x1c && byte <= 0x1f)
}

function startsWith(bytes: Uint8Array, signature: readonly number[]): boolean {
  return signature.every((byte, index) => bytes[index] === byte)
}

/** Bytes in which the first tag is looked for; a comment with a licence may stand before it. */
const SNIFFED_BYTES = 65_536

const MARKDOWN_TYPES: ReadonlySet<string> = new Set(['text/markdown', 'text/x-markdown'])
const CSV_TYPES: ReadonlySet<string> = new Set([
  'text/csv',
  'application/csv',
  'text/x-csv',
  'text/tab-separated-values',
])
const HTML_TYPES: ReadonlySet<string> = new Set(['text/html', 'application/xhtml+xml'])
/** Declared types that name no format. */
const NO_TYPES: ReadonlySet<string> = new Set([
  '',
  'application/octet-stream',
  'binary/octet-stream',
  'unknown/unknown',
])

const EXTENSIONS: ReadonlyMap<string, DocumentKind> = new Map<string, DocumentKind>([
  ...['md', 'markdown', 'mdown', 'mkd'].map((extension) => [extension, 'markdown'] as const),
  ...['csv', 'tsv'].map((extension) => [extension, 'csv'] as const),
  ...['html', 'htm', 'xhtml'].map((extension) => [extension, 'html'] as const),
])

/** First tags of a page. */
const PAGE = /^<(?:!doctype\s+html|html|head|body)[\s>/]/i
/** First tags of a piece of HTML, but also of Markdown files and of XML documents. */
const PIECE =
  /^<(?:title|meta|link|script|style|base|div|p|h[1-6]|table|ul|ol|dl|section|article|main|header|nav|span|a|b|br|font|center|img|form|iframe|pre|blockquote)[\s>/]/i

/**
 * Which kind of text it is.
 *
 * @throws EngineFault `unsupported` for pictures that are text (SVG)
 */
function textKind(input: EngineInput): DocumentKind {
  const head = decodeText(input.bytes.subarray(0, SNIFFED_BYTES), input.contentType)
  const start = afterPreamble(head)
  if (PAGE.test(start)) return 'html'
  if (/^<(?:!doctype\s+)?svg[\s>]/i.test(start)) {
    throw new EngineFault('unsupported', 'The document looks like an SVG picture, which cannot be read.')
  }
  if (isNotebook(start, input)) return 'notebook'
  if (isEmail(head, input)) return 'email'
  const claimed = claimedKind(input)
  if (claimed !== undefined) return claimed
  return PIECE.test(start) && isUnclaimed(input) ? 'html' : 'text'
}

/** A Jupyter notebook is JSON with cells and the version of its format. */
function isNotebook(start: string, { bytes }: EngineInput): boolean {
  if (!start.startsWith('{')) return false
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return (
    view.includes('"nbformat"') &&
    view.includes('"cell_type"') &&
    /^\{\s*"(?:cells|metadata|nbformat|worksheets)/.test(start)
  )
}

/** Header fields that only mail programs write. */
const MAIL_FIELDS = /^(?:message-id|mime-version|received|return-path|dkim-signature|delivered-to)$/
const MAIL_EXTENSIONS: ReadonlySet<string> = new Set(['eml', 'mht', 'mhtml'])
const MOST_MAIL_LINES = 2000

/** Whether a text begins with the header of a message: fields up to a blank line, its author among them. */
function isEmail(head: string, { contentType, name }: EngineInput): boolean {
  const isClaimed = mediaTypeOf(contentType) === 'message/rfc822' || MAIL_EXTENSIONS.has(extensionOf(name))
  const names = new Set<string>()
  for (const line of head.replace(/^From [^\n]{0,1000}\n/, '').split('\n', MOST_MAIL_LINES)) {
    if (line.trim() === '') break
    const field = /^([!-9;-~]{1,80})[ \t]*:/.exec(line)?.[1]
    if (field !== undefined) names.add(field.toLowerCase())
    else if (!/^[ \t]/.test(line) || names.size === 0) return false
  }
  if (!names.has('from')) return isClaimed && names.size > 0
  return isClaimed || [...names].some((field) => MAIL_FIELDS.test(field))
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

/** The text behind leading blanks, comments and processing instructions. Linear time. */
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
