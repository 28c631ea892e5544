import type { IncomingMessage, ServerResponse } from 'node:http'
import { finished, type Readable, type Writable } from 'node:stream'
import type { Request, Response } from 'express'
import multer from 'multer'
import { GatewayError } from '../core/errors.js'
import type { ArrivingBody } from '../core/quota.js'
import { type RequestContext, clientDisconnected, contextOf, countReceived } from '../core/request-context.js'
import { MultipartField, SpooledFile, UploadedFile } from '../core/spooled-file.js'
import {
  asGatewayError,
  boundaryOf,
  fileTooLarge,
  malformed,
  type MultipartFraming,
  storageFailed,
  UploadBody,
} from './multipart-stream.js'

const FIELD_NAME_BYTES = 100
const FILE_NAME_CHARACTERS = 200
const EXTENSION_CHARACTERS = 16
/** Names that reach an object's prototype when a later reader builds objects from bracketed names. */
const PROTOTYPE_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
/** Fields that decide what is authorised and sent: no bracketed spelling may stand beside or instead of them. */
const PLAIN_NAMES: ReadonlySet<string> = new Set(['file', 'model'])

/** Why a text field with this name, after those already received, is refused; undefined when it is fine. */
export function faultOfFieldName(name: string, earlier: ReadonlySet<string>): GatewayError | undefined {
  if (name === 'file') return missingFileName(name)
  if (Buffer.byteLength(name) > FIELD_NAME_BYTES) {
    return invalid(`A field name is longer than ${FIELD_NAME_BYTES} bytes.`, name)
  }
  const [base = '', ...keys] = name.split(/[[\]]/)
  if ([base, ...keys].some((key) => PROTOTYPE_NAMES.has(key)))
    return invalid(`Field name ${quoted(name)} is not allowed.`, name)
  if (base !== name && PLAIN_NAMES.has(base)) {
    return invalid(`Field ${quoted(base)} takes one value; ${quoted(name)} is not accepted.`, name)
  }
  if (earlier.has(name) && !name.endsWith('[]')) return invalid(`Field ${quoted(name)} is given more than once.`, name)
  return undefined
}

/** Why a file part is refused; undefined for the one part named `file` that carries a file name. */
function faultOfFilePart(name: string, filename: string | undefined, isFirst: boolean): GatewayError | undefined {
  if (name !== 'file')
    return invalid(`Only one file part, named "file", is accepted; got file part ${quoted(name)}.`, name)
  if (!isFirst) return invalid('Only one file part, named "file", is accepted; got a second one.', name)
  return filename === undefined || safeFileName(filename) === '' ? missingFileName(name) : undefined
}

/** The base name of a client's file name, without control and formatting characters, its extension kept; may be empty. */
export function safeFileName(raw: string): string {
  const base = raw.slice(Math.max(raw.lastIndexOf('/'), raw.lastIndexOf('\\')) + 1)
  // Browsers send line ends in names as %0D and %0A.
  const characters = Array.from(base.replace(/%0d|%0a|[\p{Cc}\p{Cf}\p{Cs}]/giu, '').trim())
  const dot = characters.lastIndexOf('.')
  const extension = dot > 0 ? characters.slice(dot, dot + EXTENSION_CHARACTERS) : []
  const stem = characters.slice(0, dot > 0 ? dot : undefined).slice(0, FILE_NAME_CHARACTERS - extension.length)
  return [...stem, ...extension].join('')
}

function missingFileName(name: string): GatewayError {
  return invalid(`Expected ${quoted(name)} to be a file part with a filename.`, name)
}

function invalid(message: string, param: string): GatewayError {
  return new GatewayError('invalid_request', message, { param })
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, FIELD_NAME_BYTES))
}

/** Uploads come over slow lines; the server's own limit for a whole request is the same. */
export const UPLOAD_TIMEOUT_MS = 120_000

/** Receives a body; how long that took goes into the call's log. */
export async function timedReception<Result>(
  request: IncomingMessage,
  receive: () => Promise<Result> | Result,
): Promise<Result> {
  const startedAtMs = performance.now()
  try {
    return await receive()
  } finally {
    contextOf(request).log.receiveMs += performance.now() - startedAtMs
  }
}

/**
 * Gives something back when the response is over, however it ended; may do so twice. A failure to is the operating
 * system's to clean up after, and must not end the process.
 */
export function releaseWhenDone(release: () => Promise<void>, call: RequestContext, response: ServerResponse): void {
  const run = (): void => {
    release().catch((error: unknown) => {
      call.log.failure ??= error
    })
  }
  response.once('close', run)
  // A pipelined request that waits for its turn has a response without a socket, which never closes.
  call.disconnect.onAbort(run)
}

/** The fields of a form by name, on an object that inherits none. */
export function namedFields(fields: readonly MultipartField[]): Record<string, unknown> {
  const named: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const { name, value } of fields) named[name] = value
  return named
}

const MAX_FIELDS = 64
const MAX_FIELD_BYTES = 64 * 1024
/** The parser builds nested objects from bracketed names; a huge index would make a sparse array it then walks. */
const MAX_NESTING = 4
const MAX_ARRAY_INDEX = 63

export interface MultipartLimits {
  /** Bytes of the whole request body. */
  readonly bodyBytes: number
  /** Bytes of the file part. */
  readonly fileBytes: number
  /** Within which the whole body must have arrived. */
  readonly bodyTimeoutMs: number
  /** What a larger file is; default `invalid_request`, as the audio dialect has it. */
  readonly fileTooLargeKind?: 'invalid_request' | 'payload_too_large'
  /** Counts what is kept in memory meanwhile. */
  readonly room?: ArrivingBody | undefined
  /** Where large files are spooled; default: the system's directory for temporary files. */
  readonly spoolDirectory?: string
}

export interface MultipartUpload {
  readonly file?: UploadedFile
  /** In the order received, with their raw names (`include[]`, `chunking_strategy[type]`). */
  readonly fields: readonly MultipartField[]
  /** Gives the file's bytes back; must be called, may be called again. */
  remove(): Promise<void>
}

/**
 * Reads a multipart/form-data request with at most one file part, named `file`. After a refusal nothing is left on
 * disk and the rest of the body is unread: the caller answers and closes the connection.
 * @throws GatewayError `unsupported_media_type`, `payload_too_large`, `request_timeout`, `invalid_request`, `caller_left`, `overloaded`, `internal`
 */
export async function receiveMultipart(request: IncomingMessage, limits: MultipartLimits): Promise<MultipartUpload> {
  return new MultipartReceiver(limits).receive(request, boundaryOf(request, limits.bodyBytes))
}

class MultipartReceiver implements multer.StorageEngine {
  readonly #limits: MultipartLimits
  readonly #fields: MultipartField[] = []
  readonly #names = new Set<string>()
  #parts = 0
  #file: UploadedFile | undefined
  #framing: MultipartFraming | undefined
  #refuse: (reason: Error) => void = () => undefined

  constructor(limits: MultipartLimits) {
    this.#limits = limits
  }

  async receive(request: IncomingMessage, boundary: string): Promise<MultipartUpload> {
    const body = new UploadBody(boundary, this.#limits.bodyBytes, this.#limits.room)
    this.#framing = body.framing
    const timer = setTimeout(() => {
      this.#refuse(
        new GatewayError('request_timeout', `The body did not arrive within ${this.#limits.bodyTimeoutMs} ms.`),
      )
    }, this.#limits.bodyTimeoutMs)
    try {
      await this.#parse(request, body)
      if (body.framing.parts !== this.#parts) throw malformed('a part has unusable headers')
      const file = this.#file
      this.#limits.room?.end(file?.spool.heldBytes ?? 0)
      return { ...(file && { file }), fields: this.#fields, remove: () => this._removeSpool() }
    } catch (error) {
      request.unpipe(body).pause()
      body.destroy()
      this.#limits.room?.end(0)
      await this._removeSpool()
      throw asGatewayError(error)
    } finally {
      clearTimeout(timer)
      countReceived(request, body.receivedBytes)
    }
  }

  _handleFile(_request: Request, file: Express.Multer.File, callback: (error?: unknown) => void): void {
    const { spoolDirectory, fileBytes, fileTooLargeKind } = this.#limits
    const spool = new SpooledFile(spoolDirectory === undefined ? {} : { directory: spoolDirectory })
    this.#file = {
      spool,
      filename: safeFileName(file.originalname),
      contentType: file.mimetype,
      claimedType: this.#framing?.fileType ?? '',
      fieldIndex: this.#fields.length,
    }
    // The parser would read the body to its end before it tells.
    file.stream.once('limit', () => {
      this.#refuse(fileTooLarge(fileBytes, fileBytes + 1, fileTooLargeKind))
    })
    store(file.stream, spool).then(() => {
      callback()
    }, callback)
  }

  _removeFile(_request: Request, _file: Express.Multer.File, callback: (error: Error | null) => void): void {
    // receive() owns the spool and removes it on every way out.
    callback(null)
  }

  async _removeSpool(): Promise<void> {
    await this.#file?.spool.remove()
  }

  #parse(request: IncomingMessage, body: UploadBody): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#refuse = reject
      body.once('error', reject)
      finished(request, { writable: false }, (error) => {
        if (error) reject(clientDisconnected())
      })
      // Multer asks of its request only what every readable stream with headers has.
      const middleware = this.#multer(body).single('file')
      void middleware(body as unknown as Request, {} as unknown as Response, (error?: unknown) => {
        if (error === undefined || error === null) resolve()
        else reject(asGatewayError(error))
      })
      request.pipe(body)
    })
  }

  #multer(body: UploadBody): multer.Multer {
    const options: multer.Options & { streamHandler: (request: unknown, parser: Writable) => void } = {
      storage: this,
      defParamCharset: 'utf8',
      limits: {
        fieldSize: MAX_FIELD_BYTES,
        fields: MAX_FIELDS,
        parts: MAX_FIELDS + 1,
        fileSize: this.#limits.fileBytes,
        fieldNestingDepth: MAX_NESTING,
        fieldArrayIndexLimit: MAX_ARRAY_INDEX,
      },
      streamHandler: (_request, parser) => {
        this.#listen(parser)
        // Multer lets go of its request when it is done; on a failure it would first drain it.
        parser.once('unpipe', () => body.destroy())
        body.pipe(parser)
      },
    }
    return multer(options)
  }

  #listen(parser: Writable): void {
    parser.on('field', (name: string | undefined, value: string | undefined) => {
      this.#parts += 1
      if (name !== undefined) this.#takeField(name, value)
    })
    parser.on('file', (name: string | undefined, _stream: Readable, info: { filename?: string }) => {
      this.#parts += 1
      const fault = faultOfFilePart(name ?? '', info.filename, !this.#names.has('file'))
      this.#names.add('file')
      if (fault) this.#refuse(fault)
    })
  }

  #takeField(name: string, value: string | undefined): void {
    const fault = faultOfFieldName(name, this.#names)
    if (fault) this.#refuse(fault)
    else if (value === undefined) this.#refuse(malformed('a field has an unknown charset', name))
    this.#names.add(name)
    this.#fields.push({ name, value: value ?? '' })
  }
}

async function store(stream: Readable, spool: SpooledFile): Promise<void> {
  for await (const chunk of stream as AsyncIterable<Buffer>) await spool.append(chunk).catch(storageFailed)
  await spool.finish().catch(storageFailed)
}
