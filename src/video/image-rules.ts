import { decodedLength, isStrictBase64, type Text } from '../core/base64.js'
import type { FieldError } from '../core/errors.js'
import { described } from '../core/json-schema.js'
import { longTextOf } from '../core/long-strings.js'
import { fieldError, isRecord, memberPath, readable, record, required, shown, text } from '../core/validation-rules.js'

/** Reads parts of a long payload, in memory or on disk. */
export interface ByteReader {
  /** Up to `length` bytes from `position`; fewer at the end. */
  read(position: number, length: number): Buffer
}

const GROUP_CHARACTERS = 4
const GROUP_BYTES = 3

/** Base64 text that is never decoded as a whole: its length is computed, and only requested parts are read. */
export class Base64Payload implements ByteReader {
  constructor(private readonly text: Text) {}

  /** Computed from length and padding. */
  get byteLength(): number {
    return decodedLength(this.text)
  }

  read(position: number, length: number): Buffer {
    const firstGroup = Math.floor(position / GROUP_BYTES)
    const endGroup = Math.ceil((position + length) / GROUP_BYTES)
    const window = this.text.slice(firstGroup * GROUP_CHARACTERS, endGroup * GROUP_CHARACTERS)
    const start = position - firstGroup * GROUP_BYTES
    return Buffer.from(window, 'base64').subarray(start, start + length)
  }

  isStrict(): boolean {
    return isStrictBase64(this.text)
  }
}

/** In pixels, as the header says; a rotation in the metadata is not applied. */
export interface ImageSize {
  readonly width: number
  readonly height: number
}

const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const JPEG_SIGNATURE = Buffer.from([0xff, 0xd8, 0xff])

/** What the specification allows, by the first bytes; the name and type a client gave it are not known. */
type ImageFormat = 'png' | 'jpeg'

export function formatOf(image: ByteReader): ImageFormat | undefined {
  const head = image.read(0, PNG_SIGNATURE.length)
  if (head.equals(PNG_SIGNATURE)) return 'png'
  return head.subarray(0, JPEG_SIGNATURE.length).equals(JPEG_SIGNATURE) ? 'jpeg' : undefined
}

/** Width and height from the header, undefined when it is cut off or garbled. Reads some dozen bytes, whatever the size. */
export const sizeOf = (image: ByteReader, format: ImageFormat): ImageSize | undefined =>
  format === 'png' ? pngSize(image) : jpegSize(image)

const IHDR_POSITION = 8
const IHDR_BYTES = 25
const IHDR_BEGINNING = Buffer.from([0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52])
const PNG_MAXIMUM_PIXELS = 0x7fff_ffff

/** ISO 15948: the first chunk is IHDR, of 13 bytes, between its length and type and its check sum. */
function pngSize(image: ByteReader): ImageSize | undefined {
  const chunk = image.read(IHDR_POSITION, IHDR_BYTES)
  if (chunk.length < IHDR_BYTES || !chunk.subarray(0, IHDR_BEGINNING.length).equals(IHDR_BEGINNING)) return undefined
  const size = { width: chunk.readUInt32BE(8), height: chunk.readUInt32BE(12) }
  return size.width <= PNG_MAXIMUM_PIXELS && size.height <= PNG_MAXIMUM_PIXELS ? existing(size) : undefined
}

/** Enough of a segment for its marker, its length and, in a frame header, precision, height and width. */
const SEGMENT_HEAD_BYTES = 9

/** Long metadata is spread over many segments of 64 KiB: a colour profile alone may take 255. */
const MAXIMUM_STEPS = 1_024

const MARKER = 0xff

/** ITU T.81 annex B: segments follow each other up to the frame header (SOF), which has the size. */
function jpegSize(image: ByteReader): ImageSize | undefined {
  let position = 2
  for (let step = 0; step < MAXIMUM_STEPS; step++) {
    const head = image.read(position, SEGMENT_HEAD_BYTES)
    const code = head[1] ?? 0
    if (head.length < 4 || head[0] !== MARKER) return undefined
    // Any number of fill bytes may stand before a marker's code.
    if (code === MARKER) {
      position += 1
      continue
    }
    if (isWithoutLength(code) || code === START_OF_SCAN) return undefined
    if (isFrameHeader(code)) {
      if (head.length < SEGMENT_HEAD_BYTES) return undefined
      return existing({ width: head.readUInt16BE(7), height: head.readUInt16BE(5) })
    }
    // A length below 2, which cannot be, leads back into itself, where no marker stands.
    position += 2 + head.readUInt16BE(2)
  }
  return undefined
}

const START_OF_SCAN = 0xda

/** Markers between SOF0 and SOF15 that are none: DHT, JPG, DAC. */
const NOT_FRAMES: ReadonlySet<number> = new Set([0xc4, 0xc8, 0xcc])

const isFrameHeader = (code: number): boolean => code >= 0xc0 && code <= 0xcf && !NOT_FRAMES.has(code)

/** TEM, RST0 to RST7, SOI, EOI: none of them can stand before the frame header. */
const isWithoutLength = (code: number): boolean => code <= 0x01 || (code >= 0xd0 && code <= 0xd9)

const existing = (size: ImageSize): ImageSize | undefined => (size.width > 0 && size.height > 0 ? size : undefined)

/** Specification: Image rules. MB are counted as everywhere in the gateway: 1,048,576 bytes. */
export const MAXIMUM_IMAGE_BYTES = 10 * 1024 * 1024
export const MINIMUM_IMAGE_PIXELS = 300
/** The longer side is at most 5/2 of the shorter one; in whole numbers, so that the bound itself is exact. */
export const MAXIMUM_IMAGE_RATIO = { longer: 5, shorter: 2 } as const

const MAXIMUM_URL_CHARACTERS = 2_048

const notEmpty = text({ allowBlank: false })

const IMAGE = described('A public URL, or raw Base64 without a data: prefix', notEmpty.schema)

/** `image`: a public URL, passed on unfetched, or raw Base64, judged by its length and its first bytes. */
export const image = shown(IMAGE, (value, path) => {
  const shape = notEmpty(value, path)
  if (shape !== undefined || typeof value !== 'string') return shape
  return /^https?:\/\//i.test(value.slice(0, 8)) ? urlError(value, path) : base64Error(value, path)
})

const reference = record({ image: required(image) })
const names = readable('image')

/** An object with an `image`. A long one is judged in the bytes of the request: no string is made of it. */
export const referenceImage = shown(reference.schema ?? {}, (value, path) => {
  const text = isRecord(value) ? longTextOf(value, 'image') : undefined
  return text === undefined
    ? reference(value, path)
    : (names(value, path) ?? base64Error(text, memberPath(path, 'image')))
})

const invalid = (path: string, what: string, code = 'invalid_image'): FieldError =>
  fieldError(path, code, `Invalid '${path}': ${what}.`)

function urlError(value: string, path: string): FieldError | undefined {
  if (value.length > MAXIMUM_URL_CHARACTERS) {
    return invalid(path, `expected a URL with at most ${MAXIMUM_URL_CHARACTERS} characters`, 'invalid_url')
  }
  // The parser removes white space in silence; the upstream would get it.
  if (/\s/.test(value) || !URL.canParse(value)) return invalid(path, 'expected a well-formed URL', 'invalid_url')
  const { username, password } = new URL(value)
  if (username === '' && password === '') return undefined
  return invalid(path, 'the URL must not hold a user or a password', 'invalid_url')
}

function base64Error(value: Text, path: string): FieldError | undefined {
  if (/^data:/i.test(value.slice(0, 5))) return invalid(path, 'expected raw Base64 without a data: prefix')
  const payload = new Base64Payload(value)
  if (payload.byteLength > MAXIMUM_IMAGE_BYTES) {
    return invalid(path, `the image is larger than ${MAXIMUM_IMAGE_BYTES} bytes`, 'image_too_large')
  }
  if (!payload.isStrict()) return invalid(path, 'expected an http or https URL or raw Base64')
  const format = formatOf(payload)
  if (format === undefined) return invalid(path, 'supported formats are jpg, jpeg and png', 'unsupported_format')
  const size = sizeOf(payload, format)
  if (size === undefined) return invalid(path, `the ${format} header is broken or cut off`)
  return sizeError(size.width, size.height, path)
}

function sizeError(width: number, height: number, path: string): FieldError | undefined {
  const shorter = Math.min(width, height)
  const longer = Math.max(width, height)
  const found = `but it has ${width} x ${height}`
  if (shorter < MINIMUM_IMAGE_PIXELS) {
    return invalid(path, `both sides must have at least ${MINIMUM_IMAGE_PIXELS} pixels, ${found}`)
  }
  if (longer * MAXIMUM_IMAGE_RATIO.shorter <= shorter * MAXIMUM_IMAGE_RATIO.longer) return undefined
  return invalid(path, `the aspect ratio must lie between 1:2.5 and 2.5:1, ${found}`)
}
