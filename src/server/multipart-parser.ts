import { EventEmitter } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Writable } from 'node:stream'
import type { Request, Response } from 'express'
import multer from 'multer'
import { GatewayError } from '../core/errors.js'
import { assertReadable } from './read-body.js'

/** Header fields of a part by their names in lower case, as they were written. */
type PartHead = Readonly<Record<string, string[] | undefined>>

/** The state of busboy 1.6.0 that its events leave out; package.json pins the version, multipart.spec.ts covers each use. */
interface ParserState {
  /** Finds delimiters; hands on the bytes up to each, or up to the end of the chunk. */
  readonly _bparser: {
    _cb: (isDelimiter: boolean, data: unknown, start: number, end: number, isShared: boolean) => void
  }
  /** Reads the head of a part; set while one is expected. */
  _hparser: { cb: (head: PartHead) => void } | null
  /** The closing delimiter was read. */
  readonly _complete: boolean
}

/**
 * Sees the parts of a form as the parser reads them. The parser says nothing of a part whose head it cannot use: the
 * delimiters it found, less the closing one, are the parts it should have reported.
 */
export class PartObserver {
  #delimiters = 0
  #head: PartHead = {}

  constructor(parser: Writable) {
    const state = parser as unknown as ParserState
    this.#countDelimiters(state)
    this.#readHeads(state)
  }

  /** Parts begun; right once the form is complete. */
  get parts(): number {
    return this.#delimiters - 1
  }

  /** The Content-Type of the latest part as it was written, parameters included; '' without one. */
  get contentType(): string {
    return this.#head['content-type']?.[0]?.trim() ?? ''
  }

  #countDelimiters(state: ParserState): void {
    const search = state._bparser
    const take = search._cb
    const isComplete = (): boolean => state._complete
    let isAfterDelimiter = false
    search._cb = (isDelimiter, data, start, end, isShared) => {
      // RFC 2046 section 5.1.1: what follows the closing delimiter is ignored. The parser would go on to the chunk's end.
      if (isComplete()) return
      take(isDelimiter, data, start, end, isShared)
      // A delimiter given twice has no part between its copies.
      const isRepeated = isAfterDelimiter && start === end
      if (isDelimiter && !isRepeated && !isComplete()) this.#delimiters += 1
      isAfterDelimiter = isDelimiter
    }
  }

  // The parser sets `_hparser` after each delimiter, to the same object.
  #readHeads(state: ParserState): void {
    let current = state._hparser
    let isObserved = false
    Object.defineProperty(state, '_hparser', {
      get: () => current,
      set: (next: ParserState['_hparser']) => {
        current = next
        if (next === null || isObserved) return
        isObserved = true
        const take = next.cb
        next.cb = (head) => {
          this.#head = head
          repairDisposition(head)
          take(head)
        }
      },
    })
  }
}

const PARAMETER = /(;[ \t]*)([^=;\s]+)=("(?:[^"\\]|\\.)*"|[^;]*)/g
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/**
 * Puts quotes around disposition parameters that need them. Some clients send `filename=Assets\a.mp3` or
 * `filename=my file.mp3`, and the parser would pass over the whole part.
 */
function repairDisposition(head: PartHead): void {
  const dispositions = head['content-disposition']
  if (dispositions?.[0] === undefined) return
  dispositions[0] = dispositions[0].replace(
    PARAMETER,
    (whole: string, separator: string, key: string, value: string) => {
      const bare = value.trim()
      const isFine = bare === '' || bare.includes('"') || TOKEN.test(bare) || key.endsWith('*')
      return isFine ? whole : `${separator}${key}="${bare}"`
    },
  )
}

/** What multer asks of a request. The real one stays out of its reach: after a refusal multer would read it to its end. */
class ParserRequest extends EventEmitter {
  readonly readable = false
  readonly headers: Readonly<IncomingHttpHeaders>

  constructor(boundary: string) {
    super()
    this.headers = {
      'content-type': `multipart/form-data; boundary="${boundary}"`,
      'transfer-encoding': 'chunked',
    }
  }

  unpipe(): this {
    return this
  }

  resume(): this {
    return this
  }
}

interface FormParserOptions {
  readonly storage: multer.StorageEngine
  readonly fileBytes: number
  /** Gets the parser: what it reports can be heard, and the body is to be written to it. */
  readonly onParser: (parser: Writable) => void
  /** All of the form was read and its file stored, or multer refused it. */
  readonly onEnd: (refusal?: GatewayError) => void
}

const MAX_FIELDS = 64
const MAX_FIELD_BYTES = 64 * 1024
/** Multer builds nested objects from bracketed names; a huge index would make a sparse array it then walks. */
const MAX_NESTING = 4
const MAX_ARRAY_INDEX = 63

/** Runs multer over a form with at most one file, named `file`. */
export function parseForm(boundary: string, { storage, fileBytes, onParser, onEnd }: FormParserOptions): void {
  const options: multer.Options & { streamHandler: (request: unknown, parser: Writable) => void } = {
    storage,
    defParamCharset: 'utf8',
    limits: {
      fieldSize: MAX_FIELD_BYTES,
      fields: MAX_FIELDS,
      parts: MAX_FIELDS + 1,
      fileSize: fileBytes,
      fieldNestingDepth: MAX_NESTING,
      fieldArrayIndexLimit: MAX_ARRAY_INDEX,
    },
    streamHandler: (_request, parser) => {
      onParser(parser)
    },
  }
  const middleware = multer(options).single('file')
  const request = new ParserRequest(boundary) as unknown as Request
  void middleware(request, {} as unknown as Response, (error?: unknown) => {
    onEnd(error === undefined || error === null ? undefined : asGatewayError(error))
  })
}

/** RFC 2046 section 5.1.1. */
const BOUNDARY = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/
const BOUNDARY_PARAMETER = /;\s*boundary\s*=\s*(?:"([^"]*)"|([^\s;"]*))\s*(?:;|$)/i

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

export function malformed(what: string, param?: string, cause?: unknown): GatewayError {
  const message = `The multipart body is malformed: ${what}.`
  return new GatewayError('invalid_request', message, { ...(param !== undefined && { param }), cause })
}

/** What the parser failed with, as an error of the gateway. Its texts are constants; nothing of the body is in them. */
export function asGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const what = error instanceof Error ? error.message.toLowerCase() : 'it cannot be parsed'
  return malformed(what, error instanceof multer.MulterError ? error.field : undefined, error)
}
