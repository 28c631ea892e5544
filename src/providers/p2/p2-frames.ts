import { gunzipSync } from 'node:zlib'

/** One server message of the v1 binary protocol. `last` = the synthesis is complete; its audio may be empty. */
export type P2Frame =
  | { readonly kind: 'acknowledgement' }
  | { readonly kind: 'audio'; readonly last: boolean; readonly audio: Buffer }
  | { readonly kind: 'frontEnd' }
  | { readonly kind: 'error'; readonly code: number; readonly text: string }

const WORD_BYTES = 4
/** Version 1, a header of one word; a full client request without flags; JSON, not compressed; reserved. */
const REQUEST_HEADER = Buffer.from([0x11, 0x10, 0x10, 0x00])
/** This header size means "read it from the extension"; no server sends it and no size could be trusted. */
const EXTENDED_HEADER_SIZE = 0xf

const AUDIO = 0xb
const FRONT_END = 0xc
const ERROR = 0xf
const FLAGS_WITHOUT_SEQUENCE = 0x0
const FLAGS_LAST = 0x2
const GREATEST_FLAGS = 0x3
const RAW = 0x0
const JSON_TEXT = 0x1
const PLAIN = 0x0
const GZIP = 0x1

/** Decompressed sizes; a small message must not be able to fill the memory. */
const MAXIMUM_ERROR_BYTES = 64 * 1024
const MAXIMUM_AUDIO_BYTES = 8 * 1024 * 1024

interface Header {
  readonly bytes: number
  readonly type: number
  readonly flags: number
  readonly serialization: number
  readonly isGzip: boolean
}

/** A client request as one binary message: 4 bytes of header, the payload's size, the JSON payload as it is. */
export function encodeRequest(payload: Buffer): Buffer {
  const size = Buffer.alloc(WORD_BYTES)
  size.writeUInt32BE(payload.length)
  return Buffer.concat([REQUEST_HEADER, size, payload])
}

/**
 * Reads one server message; undefined = malformed, or a version, type, flag or compression that v1 speech does not
 * have. Never throws. Plain audio is a view into the message, not a copy.
 */
export function decodeFrame(message: Buffer): P2Frame | undefined {
  const header = readHeader(message)
  if (header === undefined) return undefined
  const body = message.subarray(header.bytes)
  switch (header.type) {
    case AUDIO:
      return audioFrame(header, body)
    case FRONT_END:
      return readSequenced(header.flags, body) && { kind: 'frontEnd' }
    case ERROR:
      return errorFrame(header, body)
    default:
      return undefined
  }
}

function readHeader(message: Buffer): Header | undefined {
  if (message.length < WORD_BYTES) return undefined
  const [version, words] = nibbles(message.readUInt8(0))
  if (version !== 1 || words === 0 || words === EXTENDED_HEADER_SIZE) return undefined
  const bytes = words * WORD_BYTES
  if (message.length < bytes) return undefined
  const [type, flags] = nibbles(message.readUInt8(1))
  const [serialization, compression] = nibbles(message.readUInt8(2))
  if (flags > GREATEST_FLAGS || serialization > JSON_TEXT || compression > GZIP) return undefined
  return { bytes, type, flags, serialization, isGzip: compression !== PLAIN }
}

const nibbles = (byte: number): readonly [number, number] => [byte >> 4, byte & 0xf]

function audioFrame(header: Header, body: Buffer): P2Frame | undefined {
  const hasNoSequence = header.flags === FLAGS_WITHOUT_SEQUENCE
  // Some server versions leave the size out of an acknowledgement.
  if (hasNoSequence && body.length === 0) return { kind: 'acknowledgement' }
  const read = readSequenced(header.flags, body)
  if (read === undefined) return undefined
  // The documentation knows only empty acknowledgements; raw bytes in one would be audio that must not be lost.
  if (hasNoSequence && (read.payload.length === 0 || header.serialization !== RAW)) return { kind: 'acknowledgement' }
  const audio = header.isGzip ? decompressed(read.payload, MAXIMUM_AUDIO_BYTES) : read.payload
  return audio && { kind: 'audio', last: read.last, audio }
}

function errorFrame(header: Header, body: Buffer): P2Frame | undefined {
  // An error carries its code where others carry a sequence number, whatever its flags.
  const sized = sizedPayload(body, WORD_BYTES)
  const payload = sized && header.isGzip ? decompressed(sized, MAXIMUM_ERROR_BYTES) : sized
  return payload && { kind: 'error', code: body.readUInt32BE(0), text: errorText(payload.toString('utf8')) }
}

interface Sequenced {
  readonly last: boolean
  readonly payload: Buffer
}

/** The payload behind the optional sequence number; the end of the audio is a negative number or the flag `last`. */
function readSequenced(flags: number, body: Buffer): Sequenced | undefined {
  const payload = sizedPayload(body, flags === FLAGS_WITHOUT_SEQUENCE ? 0 : WORD_BYTES)
  if (flags === FLAGS_WITHOUT_SEQUENCE) return payload && { last: false, payload }
  const isNegative = payload !== undefined && body.readInt32BE(0) < 0
  if (flags !== FLAGS_LAST) return payload && { last: isNegative, payload }
  // The versions of the documentation disagree on whether a sequence number stands here.
  const last = isNegative ? payload : sizedPayload(body, 0)
  return last && { last: true, payload: last }
}

/** The payload behind a size word at `offset`; undefined unless it ends exactly where the message ends. */
function sizedPayload(body: Buffer, offset: number): Buffer | undefined {
  const start = offset + WORD_BYTES
  if (body.length < start || body.readUInt32BE(offset) !== body.length - start) return undefined
  return body.subarray(start)
}

function decompressed(payload: Buffer, maximumBytes: number): Buffer | undefined {
  if (payload.length === 0) return payload
  try {
    return gunzipSync(payload, { maxOutputLength: maximumBytes })
  } catch {
    return undefined
  }
}

/** Errors are words, or a JSON object {reqid, code, message} around them. */
function errorText(text: string): string {
  try {
    const { message } = Object(JSON.parse(text)) as { message?: unknown }
    if (typeof message === 'string' && message !== '') return message
  } catch {
    // Not JSON: the words themselves.
  }
  return text
}
