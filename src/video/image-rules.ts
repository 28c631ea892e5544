import type { ByteReader } from './byte-reader.js'

/** In pixels, as the header says; a rotation in the metadata is not applied. */
export interface ImageSize {
  readonly width: number
  readonly height: number
}

const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const JPEG_SIGNATURE = Buffer.from([0xff, 0xd8, 0xff])

/** What the specification allows, by the first bytes; the name and type a client gave it are not known. */
export type ImageFormat = 'png' | 'jpeg'

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
