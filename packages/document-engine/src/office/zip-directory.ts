import { EngineFault } from '../model/document.js'

/** APPNOTE 4.3 signatures, as little-endian numbers. */
const END_OF_DIRECTORY = 0x06054b50
const ZIP64_LOCATOR = 0x07064b50
const ZIP64_END = 0x06064b50
const DIRECTORY_ENTRY = 0x02014b50
const ZIP64_EXTRA = 0x0001
const LONGEST_COMMENT_BYTES = 0xffff
const IN_ZIP64 = 0xffffffff

/** Most entries; Office files have far fewer. */
const MOST_ENTRIES = 10_000

export interface ZipEntry {
  /** Name with `/` between segments and no leading `/`. */
  readonly path: string
  readonly isEncrypted: boolean
  /** 0 = stored, 8 = deflated. */
  readonly method: number
  readonly crc32: number
  readonly compressedBytes: number
  /** Declared size; the real size may differ. */
  readonly declaredBytes: number
  /** Offset of the local header. */
  readonly offset: number
}

interface Directory {
  readonly entries: number
  readonly offset: number
}

/**
 * The central directory by part names, without inflating anything. Of two entries with one name the last counts, as in other
 * readers; names with `..` are left out.
 *
 * @throws EngineFault `broken`, `too_large`
 */
export function zipEntries(bytes: Uint8Array): ReadonlyMap<string, ZipEntry> {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const directory = findDirectory(view)
  if (directory.entries > MOST_ENTRIES) {
    throw new EngineFault('too_large', `The file holds more than ${MOST_ENTRIES} parts.`)
  }
  const entries = new Map<string, ZipEntry>()
  let position = directory.offset
  for (let index = 0; index < directory.entries; index += 1) {
    const { entry, next } = readEntry(view, position)
    if (!entry.path.split('/').includes('..')) entries.set(partName(entry.path), entry)
    position = next
  }
  return entries
}

function findDirectory(view: Buffer): Directory {
  const lowest = Math.max(0, view.length - 22 - LONGEST_COMMENT_BYTES)
  for (let position = view.length - 22; position >= lowest; position -= 1) {
    if (view.readUInt32LE(position) !== END_OF_DIRECTORY) continue
    const directory = { entries: view.readUInt16LE(position + 10), offset: view.readUInt32LE(position + 16) }
    const isZip64 = directory.entries === 0xffff || directory.offset === IN_ZIP64
    return isZip64 ? (zip64Directory(view, position - 20) ?? directory) : directory
  }
  throw brokenZip()
}

function zip64Directory(view: Buffer, locator: number): Directory | undefined {
  if (locator < 0 || view.readUInt32LE(locator) !== ZIP64_LOCATOR) return undefined
  const position = uint64(view, locator + 8)
  if (position + 56 > view.length || view.readUInt32LE(position) !== ZIP64_END) throw brokenZip()
  return { entries: uint64(view, position + 32), offset: uint64(view, position + 48) }
}

function readEntry(view: Buffer, position: number): { entry: ZipEntry; next: number } {
  if (position + 46 > view.length || view.readUInt32LE(position) !== DIRECTORY_ENTRY) throw brokenZip()
  const extraStart = position + 46 + view.readUInt16LE(position + 28)
  const extraEnd = extraStart + view.readUInt16LE(position + 30)
  if (extraEnd > view.length) throw brokenZip()
  const [declaredBytes = 0, compressedBytes = 0, offset = 0] = widened(
    [view.readUInt32LE(position + 24), view.readUInt32LE(position + 20), view.readUInt32LE(position + 42)],
    view.subarray(extraStart, extraEnd),
  )
  const entry = {
    path: tidyPath(view.toString('utf8', position + 46, extraStart)),
    isEncrypted: (view.readUInt16LE(position + 8) & 1) === 1,
    method: view.readUInt16LE(position + 10),
    crc32: view.readUInt32LE(position + 16),
    compressedBytes,
    declaredBytes,
    offset,
  }
  return { entry, next: extraEnd + view.readUInt16LE(position + 32) }
}

/** APPNOTE 4.5.3: the extra field holds, in this order, exactly those numbers that did not fit. */
function widened(numbers: readonly number[], extra: Buffer): number[] {
  let position = zip64Extra(extra)
  return numbers.map((value) => {
    if (value !== IN_ZIP64 || position === undefined || position + 8 > extra.length) return value
    position += 8
    return uint64(extra, position - 8)
  })
}

function zip64Extra(extra: Buffer): number | undefined {
  for (let position = 0; position + 4 <= extra.length; position += 4 + extra.readUInt16LE(position + 2)) {
    if (extra.readUInt16LE(position) === ZIP64_EXTRA) return position + 4
  }
  return undefined
}

/** Reads 64 bits; values beyond 2^53 are inexact, and larger than any file. */
function uint64(view: Buffer, position: number): number {
  return Number(view.readBigUInt64LE(position))
}

/** OPC: part names are equal without regard to case. */
export function partName(path: string): string {
  return tidyPath(path).toLowerCase()
}

/** Some writers use `\\` or begin with `/`. */
function tidyPath(path: string): string {
  return path.replaceAll('\\', '/').replace(/^\/+/, '')
}

export function brokenZip(): EngineFault {
  return new EngineFault('broken', 'The file is damaged: its parts cannot be read.')
}
