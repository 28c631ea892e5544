import { crc32, inflateRawSync } from 'node:zlib'
import { EngineFault, type EngineLimits } from '../model/document.js'
import { brokenZip, partName, zipEntries, type ZipEntry } from './zip-directory.js'

const LOCAL_HEADER = 0x04034b50
const STORED = 0
const DEFLATED = 8

/**
 * The parts of a DOCX, XLSX or PPTX. A part is inflated when it is asked for, never beyond what is left of the limit for
 * all of them together, whatever sizes the directory declares; pictures and embedded files are never inflated.
 */
export class OfficePackage {
  private readonly entries: ReadonlyMap<string, ZipEntry>
  private leftBytes: number

  /** @throws EngineFault `broken`, `too_large` */
  constructor(
    private readonly bytes: Uint8Array,
    limits: EngineLimits,
  ) {
    this.entries = zipEntries(bytes)
    this.leftBytes = limits.decodedBytes
  }

  /** Name of a part as it is written in the package; undefined when there is no such part. */
  pathOf(name: string): string | undefined {
    return this.entries.get(partName(name))?.path
  }

  /**
   * Undefined when there is no such part.
   *
   * @throws EngineFault `broken`, `too_large`, `encrypted`
   */
  read(name: string): Uint8Array | undefined {
    const entry = this.entries.get(partName(name))
    if (entry === undefined) return undefined
    if (entry.isEncrypted) throw new EngineFault('encrypted', 'The file is protected by a password.')
    if (entry.declaredBytes > this.leftBytes) throw tooLarge()
    const content = this.content(entry)
    if (crc32(content) !== entry.crc32) throw brokenZip()
    this.leftBytes -= content.byteLength
    return content
  }

  private content(entry: ZipEntry): Uint8Array {
    const packed = this.packed(entry)
    if (entry.method === STORED) {
      if (packed.byteLength > this.leftBytes) throw tooLarge()
      return packed
    }
    if (entry.method !== DEFLATED) throw brokenZip()
    try {
      return inflateRawSync(packed, { maxOutputLength: Math.max(1, this.leftBytes) })
    } catch (error) {
      throw isOverflow(error) ? tooLarge() : brokenZip()
    }
  }

  private packed(entry: ZipEntry): Uint8Array {
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength)
    if (entry.offset + 30 > view.byteLength || view.getUint32(entry.offset, true) !== LOCAL_HEADER) throw brokenZip()
    const start = entry.offset + 30 + view.getUint16(entry.offset + 26, true) + view.getUint16(entry.offset + 28, true)
    const end = start + entry.compressedBytes
    if (end > view.byteLength) throw brokenZip()
    return this.bytes.subarray(start, end)
  }
}

function isOverflow(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
}

function tooLarge(): EngineFault {
  return new EngineFault('too_large', 'The file is too large when it is unpacked.')
}
