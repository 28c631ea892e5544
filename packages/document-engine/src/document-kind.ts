import { foreignFormat } from './foreign-formats.js'
import { type DocumentKind, EngineFault, type EngineInput, mediaTypeOf } from './model/document.js'
import { oleFault, zipKind } from './office-kind.js'
import { utf16ByZeros, utf8Standing } from './text/charset-detection.js'
import { extensionOf, textKind } from './text/text-kind.js'

/** PDF 32000-1, annex H 3.4.1: readers accept a header anywhere in the first 1,024 bytes. */
const PDF_HEADER_BYTES = 1024
const PDF_TYPE = 'application/pdf'
const BINARY_SAMPLE_BYTES = 65_536
/** Bytes of noise hold one control byte in nine; a text, however short, may have a stray one. */
const MOST_CONTROL_SHARE = 0.005

/**
 * What a document is by its bytes. Where they cannot tell, among kinds of text, its claim and the extension of its name
 * decide.
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
  // Behind something else: a text that only speaks of the header holds no objects, and one that explains the format is
  // a text all the same, where nobody calls it a PDF.
  if (!view.includes('endobj')) return false
  return mediaTypeOf(contentType) === PDF_TYPE || extensionOf(name) === 'pdf' || !isText(bytes)
}

const isText = (bytes: Uint8Array): boolean => !isBinary(bytes) && utf8Standing(bytes).bad === 0

/** By a byte order mark, which only texts have. */
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
