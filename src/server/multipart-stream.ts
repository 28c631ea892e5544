import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Transform, type TransformCallback } from 'node:stream'
import multer from 'multer'
import { GatewayError } from '../core/errors.js'
import type { ArrivingBody } from '../core/quota.js'
import { assertReadable, bodyTooLarge, memoryFull } from './read-body.js'

const DISPOSITION_LINE = /^content-disposition:[^\r\n]*/im
const TYPE_LINE = /^content-type:[ \t]*([^\r\n]*)/im
const FILE_NAME = /;\s*filename\*?\s*=/i
const PARAMETER = /(;[ \t]*)([^=;\s]+)=("(?:[^"\\]|\\.)*"|[^;]*)/g
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/**
 * Puts quotes around disposition parameters that need them. Some clients send `filename=Assets\a.mp3` or
 * `filename=my file.mp3`, and the parser would pass over the whole part.
 */
function repairPartHead(head: Buffer): Buffer {
  const text = head.toString('latin1')
  const line = DISPOSITION_LINE.exec(text)?.[0]
  if (line === undefined) return head
  const repaired = line.replace(PARAMETER, (whole: string, separator: string, key: string, value: string) => {
    const bare = value.trim()
    const isFine = bare === '' || bare.includes('"') || TOKEN.test(bare) || key.endsWith('*')
    return isFine ? whole : `${separator}${key}="${bare}"`
  })
  return repaired === line
    ? head
    : Buffer.from(
        text.replace(line, () => repaired),
        'latin1',
      )
}

/** Whether the part is a file's: it has a file name. */
const isFileHead = (head: Buffer): boolean => FILE_NAME.test(DISPOSITION_LINE.exec(head.toString('latin1'))?.[0] ?? '')

/** The Content-Type in a part's head, parameters included; '' when there is none. */
const contentTypeIn = (head: Buffer): string => TYPE_LINE.exec(head.toString('latin1'))?.[1]?.trim() ?? ''

const HEAD_END = Buffer.from('\r\n\r\n')
const LINE_END = Buffer.from('\r\n')
const CLOSING = Buffer.from('--')
/** What the parser itself allows. */
const MAX_HEAD_BYTES = 16 * 1024

type State = 'content' | 'head' | 'epilogue'

/**
 * Passes a multipart body on to the parser, with part heads repaired, and counts its parts by their delimiters. The
 * parser passes over a part whose head it cannot use without a word; the difference to the parts it reported tells.
 */
export class MultipartFraming {
  readonly #delimiter: Buffer
  #state: State = 'content'
  /** Not yet passed on: what may be the beginning of a delimiter, or a head. A body starts as if after a line end. */
  #held = LINE_END
  #parts = 0
  #fileType: string | undefined

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  }

  /** Parts begun so far; larger than that after something no sender may write. */
  get parts(): number {
    return this.#parts
  }

  /** The Content-Type of the first file part as it was written; '' without one, undefined before such a part. */
  get fileType(): string | undefined {
    return this.#fileType
  }

  /** Takes the next bytes, in any cut; hands on what can be told by now. */
  push(chunk: Buffer, passOn: (bytes: Buffer) => void): void {
    let bytes = Buffer.concat([this.#held, chunk])
    let passed = -1
    while (passed !== 0 && bytes.length > 0) {
      passed = this.#step(bytes, passOn)
      bytes = bytes.subarray(passed)
    }
    this.#held = Buffer.from(bytes)
  }

  /** The bytes held back at the end of the body. */
  rest(): Buffer {
    return this.#held
  }

  /** Passes on one stretch and returns its length; 0 when more bytes are needed. */
  #step(bytes: Buffer, passOn: (bytes: Buffer) => void): number {
    if (this.#state === 'content') return this.#content(bytes, passOn)
    if (this.#state === 'head') return this.#head(bytes, passOn)
    passOn(bytes)
    return bytes.length
  }

  #content(bytes: Buffer, passOn: (bytes: Buffer) => void): number {
    const found = bytes.indexOf(this.#delimiter)
    if (found !== 0) {
      const length = found === -1 ? Math.max(bytes.length - this.#delimiter.length + 1, 0) : found
      if (length > 0) passOn(bytes.subarray(0, length))
      return length
    }
    const end = this.#delimiter.length + 2
    if (bytes.length < end) return 0
    const after = bytes.subarray(end - 2, end)
    if (after.equals(CLOSING)) this.#state = 'epilogue'
    else this.#begin(after.equals(LINE_END))
    passOn(bytes.subarray(0, end))
    return end
  }

  // The parser has ended the part before in any case: what no sender may write counts twice, so that it shows.
  #begin(wellFormed: boolean): void {
    this.#parts += wellFormed ? 1 : 2
    if (wellFormed) this.#state = 'head'
  }

  #head(bytes: Buffer, passOn: (bytes: Buffer) => void): number {
    const end = bytes.indexOf(HEAD_END)
    if (end === -1 && bytes.length <= MAX_HEAD_BYTES) return 0
    this.#state = 'content'
    const head = bytes.subarray(0, end === -1 ? bytes.length : end + HEAD_END.length)
    if (head.includes(this.#delimiter)) this.#parts += 1
    if (isFileHead(head)) this.#fileType ??= contentTypeIn(head)
    passOn(repairPartHead(head))
    return head.length
  }
}

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
      callback(memoryFull())
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

/** The file part passed its limit; `readBytes` of it had arrived by then. */
export function fileTooLarge(
  limitBytes: number,
  readBytes: number,
  kind: 'invalid_request' | 'payload_too_large' = 'invalid_request',
): GatewayError {
  const message = `Maximum file size (${limitBytes} bytes) exceeded (${readBytes} bytes read).`
  return new GatewayError(kind, message, { code: 'file_too_large', param: 'file' })
}

export function malformed(what: string, param?: string, cause?: unknown): GatewayError {
  const message = `The multipart body is malformed: ${what}.`
  return new GatewayError('invalid_request', message, { ...(param !== undefined && { param }), cause })
}

export function storageFailed(cause: unknown): never {
  throw new GatewayError('internal', 'The upload could not be stored.', { cause })
}

/** What the parser failed with, as an error of the house. Its texts are constants; nothing of the body is in them. */
export function asGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const what = error instanceof Error ? error.message.toLowerCase() : 'it cannot be parsed'
  return malformed(what, error instanceof multer.MulterError ? error.field : undefined, error)
}
