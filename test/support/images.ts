/** The beginning of a PNG: everything a header reader needs, and nothing an image has. */
export function pngHeader(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(33)
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  bytes.writeUInt32BE(13, 8)
  bytes.write('IHDR', 12, 'latin1')
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  bytes.set([8, 2, 0, 0, 0], 24)
  return bytes
}

/** A JPEG segment with its marker and length. */
export function jpegSegment(code: number, content: Buffer): Buffer {
  const head = Buffer.from([0xff, code, 0, 0])
  head.writeUInt16BE(content.length + 2, 2)
  return Buffer.concat([head, content])
}

/** The beginning of a JPEG: the segments given, then the frame header. */
export function jpegHeader(width: number, height: number, before: readonly Buffer[] = [], frame = 0xc0): Buffer {
  const content = Buffer.from([8, 0, 0, 0, 0, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1])
  content.writeUInt16BE(height, 1)
  content.writeUInt16BE(width, 3)
  return Buffer.concat([Buffer.from([0xff, 0xd8]), ...before, jpegSegment(frame, content)])
}

export const pngText = (width = 300, height = 300): string => pngHeader(width, height).toString('base64')
