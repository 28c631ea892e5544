interface Signature {
  /** Latin-1. */
  readonly bytes: string
  readonly offset?: number
  readonly format: string
}

/** Signatures that no text begins with. */
const SIGNATURES: readonly Signature[] = [
  { bytes: '\x89PNG\r\n', format: 'a PNG picture' },
  { bytes: '\xff\xd8\xff', format: 'a JPEG picture' },
  { bytes: 'GIF87a', format: 'a GIF picture' },
  { bytes: 'GIF89a', format: 'a GIF picture' },
  { bytes: 'II*\0', format: 'a TIFF picture' },
  { bytes: 'MM\0*', format: 'a TIFF picture' },
  { bytes: '\0\0\x01\0', format: 'an icon' },
  { bytes: '8BPS\0', format: 'a Photoshop picture' },
  { bytes: 'AT&TFORM', format: 'a DjVu file' },
  { bytes: '\xff\xfb', format: 'an audio file' },
  { bytes: '\xff\xf3', format: 'an audio file' },
  { bytes: 'fLaC\0', format: 'an audio file' },
  { bytes: 'OggS\0', format: 'an audio or video file' },
  { bytes: 'MThd\0', format: 'an audio file' },
  { bytes: '\x1aE\xdf\xa3', format: 'a video file' },
  { bytes: 'FLV\x01', format: 'a video file' },
  { bytes: '\0\0\x01\xba', format: 'a video file' },
  { bytes: '\0\0\x01\xb3', format: 'a video file' },
  { bytes: '\x1f\x8b\x08', format: 'a gzip archive' },
  { bytes: 'BZh91AY', format: 'a bzip2 archive' },
  { bytes: '\xfd7zXZ\0', format: 'an xz archive' },
  { bytes: '7z\xbc\xaf\x27\x1c', format: 'a 7-Zip archive' },
  { bytes: 'Rar!\x1a\x07', format: 'a RAR archive' },
  { bytes: '\x28\xb5\x2f\xfd', format: 'a Zstandard archive' },
  { bytes: 'MSCF\0', format: 'a cabinet archive' },
  { bytes: '\x7fELF', format: 'a program' },
  { bytes: '\xfe\xed\xfa', format: 'a program' },
  { bytes: '\xce\xfa\xed\xfe', format: 'a program' },
  { bytes: '\xcf\xfa\xed\xfe', format: 'a program' },
  { bytes: '\xca\xfe\xba\xbe', format: 'a program' },
  { bytes: '\0asm', format: 'a program' },
  { bytes: 'SQLite format 3\0', format: 'a database' },
  { bytes: 'wOFF\0', format: 'a font' },
  { bytes: 'wOF2\0', format: 'a font' },
  { bytes: 'OTTO\0', format: 'a font' },
  { bytes: '\0\x01\0\0\0', format: 'a font' },
  { bytes: '{\\rtf', format: 'a rich text (RTF) file' },
  { bytes: '%!PS', format: 'a PostScript file' },
]

/** Signatures of letters: a text may begin with them, but holds no zero byte, and all of these files do early on. */
const LETTER_SIGNATURES: readonly Signature[] = [
  { bytes: 'MZ', format: 'a program' },
  { bytes: 'BM', format: 'a bitmap picture' },
  { bytes: 'WEBP', offset: 8, format: 'a WebP picture' },
  { bytes: 'ftypheic', offset: 4, format: 'a HEIC picture' },
  { bytes: 'ftypmif1', offset: 4, format: 'a HEIF picture' },
  { bytes: 'ftypavif', offset: 4, format: 'an AVIF picture' },
  { bytes: 'ftypM4A', offset: 4, format: 'an audio file' },
  { bytes: 'ftyp', offset: 4, format: 'a video file' },
  { bytes: 'WAVE', offset: 8, format: 'an audio file' },
  { bytes: 'ID3', format: 'an audio file' },
  { bytes: 'AVI ', offset: 8, format: 'a video file' },
  { bytes: 'ustar', offset: 257, format: 'a tar archive' },
]

const HEAD_BYTES = 512

/** What a file of none of our formats looks like, with its article; undefined when its beginning says nothing. */
export function foreignFormat(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, HEAD_BYTES)).toString('latin1')
  const isMet = (signature: Signature): boolean => head.startsWith(signature.bytes, signature.offset ?? 0)
  const found = SIGNATURES.find(isMet) ?? (head.includes('\0') ? LETTER_SIGNATURES.find(isMet) : undefined)
  return found?.format
}
