import { once } from 'node:events'
import { Readable, type Transform, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'
import { GatewayError } from '../common/errors/gateway-error.js'
import type { ByteSource } from '../common/http/byte-source.js'
import { SpooledFile } from '../common/http/spooled-file.js'

/**
 * Stores the body of an answer with its content encoding taken off, as it arrives: neither form is ever in memory as a
 * whole. Rejects with `payload_too_large` when more than `maximumBytes` come out of it, with `upstream_failed` when the
 * encoding is unknown, broken or cut off, and as the body itself fails. After a failure nothing is left behind.
 */
export async function spoolDecoded(body: ByteSource, encoding: string, maximumBytes: number): Promise<SpooledFile> {
  const encoded = readableOf(body)
  const spool = new SpooledFile()
  try {
    const decoder = decoderOf(encoding, await firstByte(encoded))
    const store = storeIn(spool, maximumBytes)
    await (decoder === undefined ? pipeline(encoded, store) : pipeline(encoded, decoder, store))
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

/** The opposite of one content encoding; undefined where there is none. Of an empty body nothing needs to be taken off. */
function decoderOf(encoding: string, first: number | undefined): Transform | undefined {
  if (first === undefined) return undefined
  switch (encoding) {
    case '':
      return undefined
    case 'gzip':
    case 'x-gzip':
      return createGunzip()
    case 'br':
      return createBrotliDecompress()
    case 'deflate':
      // RFC 9110 means zlib's format; some servers send the bare one. Zlib's first byte always ends in 8.
      return (first & 0x0f) === 8 ? createInflate() : createInflateRaw()
    default:
      throw new GatewayError('upstream_failed', 'The document is sent in an encoding that the gateway does not know.')
  }
}

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
