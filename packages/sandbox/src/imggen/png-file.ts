import { crc32, deflateSync } from 'node:zlib'

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')
const RGB = 2
const BITS = 8

/** A square picture of one colour (`#rrggbb` without the sign). */
export function pngFile(side: number, colour: string): Buffer {
  const size = Buffer.alloc(4)
  size.writeUInt32BE(side)
  const head = Buffer.concat([size, size, Buffer.from([BITS, RGB, 0, 0, 0])])
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(side * 3, Buffer.from(colour, 'hex'))])
  const pixels = deflateSync(Buffer.concat(Array<Buffer>(side).fill(row)))
  return Buffer.concat([SIGNATURE, chunk('IHDR', head), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))])
}

function chunk(type: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(content.length)
  const checksum = Buffer.alloc(4)
  checksum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, checksum])
}
