import type { ServerResponse } from 'node:http'
import { type ByteSink, type ByteSource, joinedPieces, type ProviderResponse } from '../core/byte-stream.js'
import type { GatewayError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import { ERROR_FORMATS } from '../dialects/error-format.js'

/** A shorter response is with the operating system by the end of the turn. */
const COUNTED_BYTES = 65_536

/** Writes an answer to the caller. What fails later is shown the way the answer says; the call's log learns of it. */
export function writeResponse(answer: ProviderResponse, response: ServerResponse, call: RequestContext): void {
  const { body, headers } = answer
  if (Buffer.isBuffer(body)) {
    headers['content-length'] = String(body.length)
    if (body.length > COUNTED_BYTES) call.memory?.add(body.length)
    response.writeHead(answer.status, headers)
    response.end(body)
    call.log.bytesOut += body.length
    return
  }
  response.writeHead(answer.status, headers)
  const sink = new ResponseSink(body, response, call, answer)
  body.start(sink)
  // A client that waits for headers must not wait for the first chunk; with a chunk at hand they leave together.
  if (!sink.isBusy) response.flushHeaders()
}

/**
 * Bytes to the caller's socket. Pieces that arrived in one turn of the event loop are written at once; a slow reader
 * pauses the upstream; a reader who left cancels it.
 */
class ResponseSink implements ByteSink {
  private waiting: Buffer[] = []
  private flushPlanned = false
  /** Written, not taken by a slow reader, and counted. */
  private unreadBytes = 0
  private closing: (() => void) | undefined

  constructor(
    private readonly source: ByteSource,
    private readonly response: ServerResponse,
    private readonly call: RequestContext,
    private readonly providerResponse: ProviderResponse,
  ) {
    response.on('drain', () => {
      call.memory?.giveBack(this.unreadBytes)
      this.unreadBytes = 0
      source.resume()
    })
  }

  get isBusy(): boolean {
    return this.flushPlanned
  }

  data(chunk: Buffer): void {
    this.waiting.push(chunk)
    this.call.log.bytesOut += chunk.length
    this.planFlush()
  }

  end(): void {
    this.providerResponse.listener?.over(undefined)
    this.closing = () => {
      this.response.end()
    }
    this.planFlush()
  }

  fail(error: GatewayError): void {
    this.providerResponse.listener?.over(error)
    this.call.log.failure = error
    this.closing = () => {
      this.showFailure(error)
    }
    this.planFlush()
  }

  private planFlush(): void {
    if (this.flushPlanned) return
    this.flushPlanned = true
    process.nextTick(() => {
      this.flush()
    })
  }

  private flush(): void {
    this.flushPlanned = false
    if (this.call.disconnect.aborted) return
    const pieces = this.waiting.length > 1 ? joinedPieces(this.waiting) : this.waiting
    this.waiting = []
    let isTaken = true
    for (const piece of pieces) isTaken = this.response.write(piece)
    if (!isTaken) this.awaitReader()
    this.closing?.()
  }

  private awaitReader(): void {
    const { call, response } = this
    const unreadBytes = response.writableLength
    call.memory?.add(unreadBytes - this.unreadBytes)
    this.unreadBytes = unreadBytes
    this.source.pause()
  }

  private showFailure(error: GatewayError): void {
    if (this.providerResponse.onFailure === 'cut') {
      this.response.destroy()
      return
    }
    this.response.end(error.details.frame ?? ERROR_FORMATS[this.call.dialect].frame(error, this.call.requestId))
  }
}
