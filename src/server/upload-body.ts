import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Transform, type TransformCallback } from 'node:stream'
import type { ArrivingBody } from '../core/arriving-body.js'
import { GatewayError } from '../core/gateway-error.js'
import { MultipartFraming } from './multipart-stream.js'
import { assertReadable, bodyTooLarge, noRoom } from './read-body.js'

/** RFC 2046 section 5.1.1. */
const BOUNDARY = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/
const BOUNDARY_PARAMETER = /;\s*boundary\s*=\s*(?:"([^"]*)"|([^\s;"]*))\s*(?:;|$)/i

/**
 * Stands between the request and the parser: the parser drains what it is given to the end after a refusal, and the
 * request itself must not be read on. Counts bytes and parts; fails with `payload_too_large` past `bodyBytes`,
 * with `overloaded` when there is no room for what is kept in memory.
 */
export class UploadBody extends Transform {
  readonly framing: MultipartFraming
  /** What the parser reads of the request. */
  readonly headers: Readonly<IncomingHttpHeaders>
  readonly #limitBytes: number
  #receivedBytes = 0

  get receivedBytes(): number {
    return this.#receivedBytes
  }

  constructor(
    boundary: string,
    limitBytes: number,
    private readonly room?: ArrivingBody,
  ) {
    super()
    this.framing = new MultipartFraming(boundary)
    this.headers = {
      'content-type': `multipart/form-data; boundary="${boundary}"`,
      'transfer-encoding': 'chunked',
    }
    this.#limitBytes = limitBytes
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    this.#receivedBytes += chunk.length
    if (this.#receivedBytes > this.#limitBytes) {
      callback(bodyTooLarge(this.#limitBytes))
      return
    }
    if (this.room?.arrived(chunk.length) === false) {
      callback(noRoom())
      return
    }
    this.framing.push(chunk, (bytes) => this.push(bytes))
    callback()
  }

  override _flush(callback: TransformCallback): void {
    callback(null, this.framing.rest())
  }
}

/**
 * The boundary of a multipart request.
 * @throws GatewayError `unsupported_media_type`, `payload_too_large` (by Content-Length), `invalid_request`
 */
export function boundaryOf(request: IncomingMessage, limitBytes: number): string {
  const contentType = request.headers['content-type'] ?? ''
  if (!/^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType)) {
    throw new GatewayError('unsupported_media_type', 'The body must be sent as multipart/form-data.')
  }
  assertReadable(request, limitBytes)
  const [, quoted, token] = BOUNDARY_PARAMETER.exec(contentType) ?? []
  const boundary = quoted ?? token ?? ''
  if (!BOUNDARY.test(boundary)) {
    throw new GatewayError('invalid_request', 'The Content-Type of the multipart body has no usable boundary.')
  }
  return boundary
}
