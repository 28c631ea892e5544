import { constants, deflateRawSync } from 'node:zlib'

const MEBIBYTE = 1_048_576
/** Of a zlib stream: deflate, window of 32 KiB, default level. */
const ZLIB_HEAD = Buffer.from([0x78, 0x9c])
/** The last block: stored, empty. */
const LAST_BLOCK = Buffer.from([0x01, 0x00, 0x00, 0xff, 0xff])

/** What inflates to `mebibytes` of one repeated byte, a thousandth of its size; made without ever being that large. */
export function rawDeflated(mebibytes: number, byte = ' '): Buffer {
  const block = deflateRawSync(Buffer.alloc(MEBIBYTE, byte), { level: 9, finishFlush: constants.Z_FULL_FLUSH })
  return Buffer.concat([...Array.from({ length: mebibytes }, () => block), LAST_BLOCK])
}

/** The same between a head and a tail that stay as they are. */
export function rawDeflatedBetween(head: string, mebibytes: number, tail: string): Buffer {
  const flushed = (text: string): Buffer => deflateRawSync(Buffer.from(text), { finishFlush: constants.Z_FULL_FLUSH })
  const bulk = rawDeflated(mebibytes).subarray(0, -LAST_BLOCK.length)
  return Buffer.concat([flushed(head), bulk, flushed(tail), LAST_BLOCK])
}

/** With the head of a zlib stream; the checksum is missing, because no reader gets that far. */
export const deflated = (mebibytes: number): Buffer => Buffer.concat([ZLIB_HEAD, rawDeflated(mebibytes)])

/** An object of a PDF: its dictionary or value as text, or that and a stream. */
export type PdfObject = string | { readonly dictionary: string; readonly stream: Uint8Array }

/** A whole file; object n of the list has the number n + 1, and the first is the catalogue. */
export function pdfFile(objects: readonly PdfObject[]): Buffer {
  const parts: Uint8Array[] = [Buffer.from('%PDF-1.7\n%\u00e2\u00e3\u00cf\u00d3\n', 'latin1')]
  let length = parts[0]?.length ?? 0
  const add = (part: Uint8Array): void => {
    parts.push(part)
    length += part.length
  }
  const offsets: string[] = []
  for (const [index, object] of objects.entries()) {
    offsets.push(`${String(length).padStart(10, '0')} 00000 n \n`)
    if (typeof object === 'string') add(Buffer.from(`${index + 1} 0 obj\n${object}\nendobj\n`, 'latin1'))
    else {
      add(Buffer.from(`${index + 1} 0 obj\n${object.dictionary}\nstream\n`, 'latin1'))
      add(object.stream)
      add(Buffer.from('\nendstream\nendobj\n', 'latin1'))
    }
  }
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join('')}`
  const trailer = `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${length}\n%%EOF\n`
  return Buffer.concat([...parts, Buffer.from(table + trailer, 'latin1')])
}

/** A stream with the length it has. */
export const streamOf = (stream: Uint8Array, dictionary = ''): PdfObject => ({
  dictionary: `<< /Length ${stream.length} ${dictionary} >>`,
  stream,
})

/** One page: objects 1 to 3 are catalogue, pages and page, 4 is its content, 5 its font; `others` are 6 and up. */
export function onePage(
  content: PdfObject,
  font = HELVETICA,
  others: readonly PdfObject[] = [],
  resources = '',
): Buffer {
  return pdfFile([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> ${resources} >> >>`,
    content,
    font,
    ...others,
  ])
}

export const HELVETICA = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>'

/** Content that shows one line. */
export const showing = (text: string): Buffer => Buffer.from(`BT /F 12 Tf 50 700 Td ${text} Tj ET`, 'latin1')

const LOCAL_HEADER = 0x04034b50
const CENTRAL_HEADER = 0x02014b50
const END_RECORD = 0x06054b50
const DEFLATED = 8

export interface ZipEntry {
  readonly name: string
  /** Deflated, without a frame. */
  readonly data: Uint8Array
  /** What the archive says it inflates to. */
  readonly claimedBytes: number
  /** Of the inflated content; left out if no reader gets that far. */
  readonly checksum?: number
}

/** An archive with any claims about its entries. */
export function zipFile(entries: readonly ZipEntry[]): Buffer {
  const files: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const entry of entries) {
    const name = Buffer.from(entry.name)
    const local = Buffer.alloc(30)
    local.writeUInt32LE(LOCAL_HEADER)
    writeSizes(local, 4, entry, name.length)
    files.push(local, name, Buffer.from(entry.data))
    const central = Buffer.alloc(46)
    central.writeUInt32LE(CENTRAL_HEADER)
    writeSizes(central, 6, entry, name.length)
    central.writeUInt32LE(offset, 42)
    directory.push(central, name)
    offset += local.length + name.length + entry.data.length
  }
  const central = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(END_RECORD)
  end.writeUInt16LE(entries.length, 8)
  end.writeUInt16LE(entries.length, 10)
  end.writeUInt32LE(central.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...files, central, end])
}

/** From "version needed" on, both kinds of header have the same fields. */
function writeSizes(
  header: Buffer,
  at: number,
  { data, claimedBytes, checksum = 0 }: ZipEntry,
  nameBytes: number,
): void {
  header.writeUInt16LE(20, at)
  header.writeUInt16LE(DEFLATED, at + 4)
  header.writeUInt32LE(checksum, at + 10)
  header.writeUInt32LE(data.length, at + 14)
  header.writeUInt32LE(claimedBytes, at + 18)
  header.writeUInt16LE(nameBytes, at + 22)
}
