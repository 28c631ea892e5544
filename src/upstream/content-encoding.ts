import { once } from 'node:events'
import { Readable, Transform, pipeline } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'
import type { ByteSink, ByteSource } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import { type ClientDisconnect, clientDisconnected } from '../core/request-context.js'
import type { UpstreamResponse } from './exchange.js'

/** More of them are one in the other for no good reason. */
const MOST_ENCODINGS = 3
/** What some servers call a body that is not encoded; a charset is none of the encodings. */
const NO_ENCODINGS: ReadonlySet<string> = new Set(['', 'identity', 'none', 'utf-8', 'utf8'])

/** The encodings of a Content-Encoding header in the order in which they were applied. */
export const contentEncodings = (header: string | string[] = ''): string[] =>
  // A header that was sent several times means the list of what was sent (RFC 9110, section 5.3).
  String(header)
    .toLowerCase()
    .split(',')
    .map((encoding) => encoding.trim())
    .filter((encoding) => !NO_ENCODINGS.has(encoding))

/** An encoding that no decoder here can take off. */
export class UnknownEncoding extends Error {}

/**
 * Takes the encodings off, the last one first, as the bytes arrive. Of an empty body nothing needs to be taken off.
 * `bound` makes what each form of the body passes through before it is decoded further: blocks that hold nothing would keep
 * a decoder busy for ever. Rejects with `UnknownEncoding`; errors of the source are those of the stream.
 */
export async function decodedStream(
  encoded: Readable,
  encodings: readonly string[],
  bound: () => Transform,
): Promise<Readable> {
  let stream = encoded
  for (const encoding of encodings.toReversed()) {
    const first = await firstByte(stream)
    if (first === undefined) return stream
    if (encodings.length > MOST_ENCODINGS) throw new UnknownEncoding()
    const decoder = decoderOf(encoding, first)
    // Errors of the source are forwarded to the reader of the decoder.
    pipeline(stream, bound(), decoder, () => undefined)
    stream = decoder
  }
  return stream
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
      throw new UnknownEncoding()
  }
}

/** Looks at the first byte and leaves it in place; undefined when the stream has none. */
async function firstByte(stream: Readable): Promise<number | undefined> {
  await once(stream, 'readable')
  const chunk = stream.read() as Buffer | null
  if (chunk === null) return undefined
  stream.unshift(chunk)
  return chunk[0]
}

/** A body as a Node stream; destroying it cancels the body. `readOn` answers for its reader when the caller has left. */
export function readableOf(source: ByteSource, readOn?: () => boolean): Readable {
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
    ...(readOn === undefined ? {} : { readOn }),
  })
  return stream
}

/** Up to here a body may be as compressible as it likes. */
const FREE_BYTES = 16 * 1024 * 1024
/** What models and storage send shrinks to a fiftieth at most; a bomb to a thousandth, or to nearly nothing. */
const LARGEST_EXPANSION = 200

/**
 * The answer of an upstream without content encodings, which the gateway has not asked for. Its body fails when it does not
 * hold, is cut off, expands beyond reason, or has an encoding that is not known: status and headers are there all the same.
 */
export function withoutEncodings(response: UpstreamResponse, disconnect: ClientDisconnect): UpstreamResponse {
  const header = response.headers['content-encoding']
  if (header === undefined) return response
  const encodings = contentEncodings(header)
  const { status, body } = response
  if (encodings.length === 0) return { status, body, headers: { ...response.headers, 'content-encoding': undefined } }
  const headers = { ...response.headers, 'content-encoding': undefined, 'content-length': undefined }
  return { status, headers, body: new DecodedSource(body, encodings, disconnect) }
}

class DecodedSource implements ByteSource {
  private sink: ByteSink | undefined
  /** The last of the streams that there are. */
  private stream: Readable | undefined
  private decoded: Readable | undefined
  private isPaused = false
  private over = false
  private receivedBytes = 0
  /** What the sink has said when the caller had left. */
  private readsOn: boolean | undefined
  private removeAbortListener: (() => void) | undefined
  private release: (() => void) | undefined

  constructor(
    private readonly source: ByteSource,
    private readonly encodings: readonly string[],
    private readonly disconnect: ClientDisconnect,
  ) {}

  start(sink: ByteSink): void {
    if (this.over || this.disconnect.aborted) {
      this.source.cancel()
      sink.fail(clientDisconnected())
      return
    }
    this.sink = sink
    const encoded = readableOf(this.source, this.readOn)
    this.stream = encoded
    encoded.on('error', this.fail)
    // The source may be over while decoders still hold what it has sent.
    this.removeAbortListener = this.disconnect.onAbort(() => {
      if (!this.readOn()) this.cancel()
    })
    let isOutermost = true
    const bound = (): Transform => {
      const transform = isOutermost ? this.counted() : this.bounded()
      isOutermost = false
      return transform
    }
    decodedStream(encoded, this.encodings, bound).then(this.relay, this.fail)
  }

  pause(): void {
    this.isPaused = true
    this.decoded?.pause()
  }

  resume(): void {
    this.isPaused = false
    this.decoded?.resume()
  }

  cancel(): void {
    this.fail(clientDisconnected())
  }

  /** Asked by the source, if that is not over, and when the caller has left: of the sink only once. */
  private readonly readOn = (): boolean => {
    if (this.over) return false
    this.release ??= this.disconnect.hold()
    this.readsOn ??= this.sink?.readOn?.() === true
    return this.readsOn
  }

  private readonly relay = (decoded: Readable): void => {
    if (this.over) {
      decoded.destroy()
      return
    }
    this.stream = decoded
    this.decoded = decoded
    const within = this.limit()
    decoded.on('error', this.fail)
    decoded.on('data', (chunk: Buffer) => {
      const refusal = within(chunk)
      if (refusal !== undefined) this.fail(refusal)
      else if (!this.over) this.sink?.data(chunk)
    })
    decoded.on('end', this.end)
    if (this.isPaused) decoded.pause()
    // An empty body ends while its first byte is looked for.
    if (decoded.readableEnded) this.end()
  }

  private readonly end = (): void => {
    this.finish(() => this.sink?.end())
  }

  private readonly fail = (error: unknown): void => {
    this.finish(() => {
      this.stream?.destroy()
      this.source.cancel()
      this.sink?.fail(error instanceof GatewayError ? error : undecodable(error))
    })
  }

  private finish(tell: () => void): void {
    if (this.over) return
    this.over = true
    this.removeAbortListener?.()
    try {
      tell()
    } finally {
      this.release?.()
    }
  }

  private counted(): Transform {
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        this.receivedBytes += chunk.length
        done(null, chunk)
      },
    })
  }

  private bounded(): Transform {
    const within = this.limit()
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        const refusal = within(chunk)
        if (refusal === undefined) done(null, chunk)
        else done(refusal)
      },
    })
  }

  /** Counts one form of the body, and says when there is more of it than what has come can stand for. */
  private limit(): (chunk: Buffer) => GatewayError | undefined {
    let passedBytes = 0
    return (chunk) => {
      passedBytes += chunk.length
      const allowedBytes = Math.max(FREE_BYTES, LARGEST_EXPANSION * this.receivedBytes)
      return passedBytes > allowedBytes ? undecodable(new Error('it expands beyond reason')) : undefined
    }
  }
}

/** What the upstream was asked for may have been done, and billed: never an answer after which a create is sent again. */
const undecodable = (cause: unknown): GatewayError =>
  new GatewayError('upstream_failed', 'The upstream sent an answer whose content encoding does not hold.', {
    cause,
    attempt: { phase: 'sent', channelError: true },
    retryable: false,
  })
