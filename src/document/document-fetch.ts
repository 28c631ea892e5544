import { once } from 'node:events'
import { Readable, Transform, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'
import type { ByteSource } from '../core/byte-source.js'
import { GatewayError } from '../core/gateway-error.js'
import { SpooledFile } from '../core/spooled-file.js'

/** More of them are one in the other for no good reason. */
const MOST_ENCODINGS = 3
/** What some servers call a body that is not encoded; a charset is none of the encodings. */
const NO_ENCODINGS: ReadonlySet<string> = new Set(['', 'identity', 'none', 'utf-8', 'utf8'])

/** The encodings of a Content-Encoding header in the order in which they were applied. */
export const contentEncodings = (header: string): string[] =>
  header
    .toLowerCase()
    .split(',')
    .map((encoding) => encoding.trim())
    .filter((encoding) => !NO_ENCODINGS.has(encoding))

/**
 * Stores the body of an answer with its content encodings taken off, as it arrives: no form of it is ever in memory as a
 * whole. Rejects with `payload_too_large` when any form is larger than `maximumBytes`, with `upstream_failed` when an
 * encoding is unknown, broken or cut off, and as the body itself fails. After a failure nothing is left behind.
 */
export async function spoolDecoded(
  body: ByteSource,
  encodings: readonly string[],
  maximumBytes: number,
): Promise<SpooledFile> {
  const encoded = readableOf(body)
  const spool = new SpooledFile()
  try {
    const decoded = await decodedStream(encoded, encodings, maximumBytes)
    await pipeline(decoded, storeIn(spool, maximumBytes))
    await spool.finish().catch(storageFailed)
    return spool
  } catch (error) {
    encoded.destroy()
    await spool.remove()
    throw error instanceof GatewayError ? error : broken(error)
  }
}

/** The document is larger than the gateway reads. */
export const documentTooLarge = (maximumBytes: number): GatewayError =>
  new GatewayError('payload_too_large', `The document is larger than ${maximumBytes} bytes.`)

/** The last encoding is taken off first. Of an empty body nothing needs to be taken off. */
async function decodedStream(encoded: Readable, encodings: readonly string[], maximumBytes: number): Promise<Readable> {
  let stream = encoded
  for (const encoding of encodings.toReversed()) {
    const first = await firstByte(stream)
    if (first === undefined) return stream
    if (encodings.length > MOST_ENCODINGS) throw unknownEncoding()
    const decoder = decoderOf(encoding, first)
    // Its failures reach whoever reads the decoder.
    pipeline(stream, boundedBytes(maximumBytes), decoder).catch(() => undefined)
    stream = decoder
  }
  return stream
}

/** Lets so many bytes through: blocks that hold nothing would keep a decoder busy for ever. */
function boundedBytes(maximumBytes: number): Transform {
  let passedBytes = 0
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      passedBytes += chunk.length
      if (passedBytes > maximumBytes) done(documentTooLarge(maximumBytes))
      else done(null, chunk)
    },
  })
}

function storeIn(spool: SpooledFile, maximumBytes: number): Writable {
  let storedBytes = 0
  return new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      storedBytes += chunk.length
      if (storedBytes > maximumBytes) {
        done(documentTooLarge(maximumBytes))
        return
      }
      spool
        .append(chunk)
        .catch(storageFailed)
        .then(() => {
          done()
        }, done)
    },
  })
}

/** The opposite of one content encoding, for a body that begins with this byte. */
function decoderOf(encoding: string, first: number): Transform {
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip()
    case 'br':
      return createBrotliDecompress()
    case 'deflate':
      // RFC 9110 means zlib's format; some servers send the bare one. Zlib's first byte always ends in 8.
      return (first & 0x0f) === 8 ? createInflate() : createInflateRaw()
    default:
      throw unknownEncoding()
  }
}

const unknownEncoding = (): GatewayError =>
  new GatewayError('upstream_failed', 'The document is sent in an encoding that the gateway does not know.')

function readableOf(source: ByteSource): Readable {
  const stream = new Readable({
    read: () => {
      source.resume()
    },
    destroy: (error, done) => {
      source.cancel()
      done(error)
    },
  })
  source.start({
    data: (chunk) => {
      if (!stream.push(chunk)) source.pause()
    },
    end: () => {
      stream.push(null)
    },
    fail: (error) => {
      stream.destroy(error)
    },
  })
  return stream
}

/** Looks at the first byte and leaves it in place; undefined when the stream has none. */
async function firstByte(stream: Readable): Promise<number | undefined> {
  await once(stream, 'readable')
  const chunk = stream.read() as Buffer | null
  if (chunk === null) return undefined
  stream.unshift(chunk)
  return chunk[0]
}

const broken = (cause: unknown): GatewayError =>
  new GatewayError('upstream_failed', 'The document arrived broken: its encoding does not hold.', { cause })

function storageFailed(cause: unknown): never {
  throw new GatewayError('internal', 'The document could not be stored.', { cause })
}
