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

/** With the head of a zlib stream; the checksum is missing, and nobody comes so far. */
export const deflated = (mebibytes: number): Buffer => Buffer.concat([ZLIB_HEAD, rawDeflated(mebibytes)])
