import { fields, type ValueRule, webAddress } from './value-rules.js'
import { rejectField } from './vidgen-errors.js'

const MOST_IMAGES = 4
const MOST_BYTES = 10 * 1024 * 1024
const LEAST_PIXELS = 300
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/
const PNG_HEADER = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')

/** Width and height in pixels. */
export interface ImageSize {
  readonly width: number
  readonly height: number
}

/** One to four images, each by address or as Base64 without a prefix. Addresses are not fetched. */
export const imageList: ValueRule = (value, field) => {
  if (!Array.isArray(value) || value.length < 1 || value.length > MOST_IMAGES) {
    rejectField(field, `must be an array of 1 to ${MOST_IMAGES} images`)
  }
  value.forEach((entry: unknown, index) => {
    fields({ image }, ['image'])(entry, `${field}[${index}]`)
  })
}

const image: ValueRule = (value, field) => {
  if (typeof value !== 'string' || value === '') rejectField(field, 'must be an address or Base64')
  if (/^https?:/i.test(value)) webAddress(value, field)
  else judgeBytes(bytesOf(value, field), field)
}

function bytesOf(value: string, field: string): Buffer {
  if (/^data:/i.test(value)) rejectField(field, 'must be Base64 without the prefix data:')
  if (value.length % 4 !== 0 || !BASE64.test(value)) rejectField(field, 'is not valid Base64')
  return Buffer.from(value, 'base64')
}

function judgeBytes(bytes: Buffer, field: string): void {
  if (bytes.length > MOST_BYTES) rejectField(field, 'must have at most 10 MB')
  const size = pngSize(bytes) ?? jpegSize(bytes)
  if (size === undefined) rejectField(field, 'must be a jpg, jpeg or png')
  const { width, height } = size
  if (width < LEAST_PIXELS || height < LEAST_PIXELS) {
    rejectField(field, `must be at least ${LEAST_PIXELS} pixels wide and high, got ${width} x ${height}`)
  }
  // Between 1:2.5 and 2.5:1, in whole numbers so that the bounds themselves are exact.
  if (width * 2 > height * 5 || height * 2 > width * 5) {
    rejectField(field, `must have a ratio between 1:2.5 and 2.5:1, got ${width} x ${height}`)
  }
}

export function pngSize(bytes: Buffer): ImageSize | undefined {
  if (bytes.length < 24 || !bytes.subarray(0, PNG_HEADER.length).equals(PNG_HEADER)) return undefined
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
}

/** From the frame header; undefined when the file ends before it. */
export function jpegSize(bytes: Buffer): ImageSize | undefined {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8) return undefined
  let at = 2
  while (at + 9 <= bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] ?? 0
    if (isFrameHeader(marker)) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
    // A fill byte before the marker stands alone; a segment tells its length.
    at += marker === 0xff ? 1 : 2 + bytes.readUInt16BE(at + 2)
  }
  return undefined
}

/** SOF0 to SOF15, without the tables that lie among them. */
function isFrameHeader(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
}
