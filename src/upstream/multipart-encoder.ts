import { randomBytes } from 'node:crypto'
import { GatewayError } from '../core/errors.js'
import type { SpooledFile } from '../core/spooled-file.js'

interface MultipartFieldPart {
  readonly name: string
  readonly value: string
}

interface MultipartFilePart {
  readonly name: string
  readonly filename: string
  readonly contentType: string
  readonly file: SpooledFile
}

export type MultipartPart = MultipartFieldPart | MultipartFilePart

export interface EncodedMultipart {
  /** The request's `Content-Type`, with the boundary. */
  readonly contentType: string
  /** Bytes; some upstreams refuse a chunked upload. */
  readonly contentLength: number
  /** The body from its start, call again for another attempt. Each piece is valid until the next one is asked for. */
  readonly body: () => AsyncIterable<Buffer>
}

/** Encodes the parts in their order. The files stay in their spools until the body is read. */
export function encodeMultipart(parts: readonly MultipartPart[]): EncodedMultipart {
  const boundary = freeBoundary(parts)
  const pieces: (Buffer | SpooledFile)[] = []
  for (const part of parts) {
    pieces.push(Buffer.from(`--${boundary}\r\n${partHead(part)}\r\n\r\n`))
    pieces.push('file' in part ? part.file : Buffer.from(part.value))
    pieces.push(Buffer.from('\r\n'))
  }
  pieces.push(Buffer.from(`--${boundary}--\r\n`))
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    contentLength: pieces.reduce((sum, piece) => sum + (Buffer.isBuffer(piece) ? piece.length : piece.size), 0),
    body: () => bytesOf(pieces),
  }
}

async function* bytesOf(pieces: readonly (Buffer | SpooledFile)[]): AsyncGenerator<Buffer> {
  for (const piece of pieces) {
    if (!Buffer.isBuffer(piece)) yield* spooledBytes(piece)
    else yield piece
  }
}

/** A disk that fails is no fault of the upstream that waits for the file. */
async function* spooledBytes(file: SpooledFile): AsyncGenerator<Buffer> {
  try {
    yield* file.pieces()
  } catch (cause) {
    throw new GatewayError('internal', 'The uploaded file could not be read back.', { cause })
  }
}

function partHead(part: MultipartPart): string {
  const disposition = `Content-Disposition: form-data; name="${escapeParameter(part.name)}"`
  if (!('file' in part)) return disposition
  return `${disposition}; filename="${escapeParameter(part.filename)}"\r\nContent-Type: ${headerText(part.contentType)}`
}

// The escapes of the WHATWG form-data encoding; a bare % stays as it is, as browsers send it.
function escapeParameter(text: string): string {
  return text.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22')
}

function headerText(text: string): string {
  if (!/^[\x20-\x7e]+$/.test(text)) throw new TypeError('a part has a content type that cannot stand in a header')
  return text
}

// 128 random bits cannot be met by accident in a file, and a caller cannot know them in advance.
function freeBoundary(parts: readonly MultipartPart[]): string {
  for (;;) {
    const boundary = `gateway-${randomBytes(16).toString('hex')}`
    if (!parts.some((part) => 'value' in part && part.value.includes(boundary))) return boundary
  }
}
