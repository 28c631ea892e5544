import { isUtf8 } from 'node:buffer'
import chardet from 'chardet'
import { charsetOf, decodeAs } from './charset-names.js'

/** Bytes that the statistics look at. */
const SAMPLE_BYTES = 65_536
/** Below it chardet says of every charset of several bytes that it might be it, in a fixed order. */
const GUESS_CONFIDENCE = 20
const MARKUP_OPEN = 0x3c
const MARKUP_CLOSE = 0x3e

type Utf16 = 'utf-16le' | 'utf-16be'

interface Utf8Standing {
  /** Well-formed sequences of more than one byte. */
  readonly good: number
  /** Places where the bytes are no UTF-8. */
  readonly bad: number
}

/** How much of the bytes reads as UTF-8. Linear. */
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

/** The charset that the bytes themselves speak for, when nobody said or what was said cannot be true. */
export function detectCharset(bytes: Uint8Array): string {
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
 * A price list or a name in Chinese holds too few characters for the statistics of pairs. Such a text is made of pairs
 * of high bytes throughout, nearly all of them among the commonest 3,755 characters (rows 0xB0 to 0xD7 of GB 2312);
 * accents between Latin letters and words in Cyrillic are not.
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
 * From the first byte that says anything on, without what stands in angle brackets: the English of the markup would
 * outvote the words. No charset in question has these two bytes inside a character.
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
