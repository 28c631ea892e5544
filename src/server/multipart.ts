import type { IncomingMessage, ServerResponse } from 'node:http'
import { finished, type Readable, type Writable } from 'node:stream'
import type { Request } from 'express'
import type { StorageEngine } from 'multer'
import { GatewayError } from '../core/errors.js'
import { freeBytes } from '../core/free-bytes.js'
import type { ArrivingBody } from '../core/quota.js'
import { type RequestContext, clientDisconnected, contextOf, countReceived } from '../core/request-context.js'
import { MultipartField, SpooledFile, UploadedFile } from '../core/spooled-file.js'
import { asGatewayError, boundaryOf, malformed, parseForm, PartObserver } from './multipart-parser.js'
import { bodyTooLarge, memoryFull, onEviction } from './read-body.js'
import { storageFailed } from './spool-body.js'

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

const invalid = (message: string, param: string): GatewayError =>
  new GatewayError('invalid_request', message, { param })

const quoted = (name: string): string => JSON.stringify(name.slice(0, FIELD_NAME_BYTES))

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
 * Reads a multipart/form-data request with at most one file part, named `file`. After a refusal nothing is left on disk and the
 * rest of the body is unread: the caller answers and closes the connection.
 * @throws GatewayError `unsupported_media_type`, `payload_too_large`, `request_timeout`, `invalid_request`, `caller_left`,
 * `overloaded`, `internal`
 */
export async function receiveMultipart(request: IncomingMessage, limits: MultipartLimits): Promise<MultipartUpload> {
  return new MultipartReceiver(limits).receive(request, boundaryOf(request, limits.bodyBytes))
}

class MultipartReceiver implements StorageEngine {
  readonly #limits: MultipartLimits
  readonly #fields: MultipartField[] = []
  readonly #names = new Set<string>()
  #receivedBytes = 0
  #reportedParts = 0
  #file: UploadedFile | undefined
  #observer: PartObserver | undefined
  #refuse: (reason: Error) => void = () => undefined

  constructor(limits: MultipartLimits) {
    this.#limits = limits
  }

  async receive(request: IncomingMessage, boundary: string): Promise<MultipartUpload> {
    const { bodyTimeoutMs, room } = this.#limits
    const timer = setTimeout(() => {
      this.#refuse(new GatewayError('request_timeout', `The body did not arrive within ${bodyTimeoutMs} ms.`))
    }, bodyTimeoutMs)
    onEviction(room, (error) => {
      this.#refuse(error)
    })
    try {
      await this.#parse(request, boundary)
      if (this.#observer?.parts !== this.#reportedParts) throw malformed('a part has unusable headers')
      const file = this.#file
      room?.end(file?.spool.heldBytes ?? 0)
      return { ...(file && { file }), fields: this.#fields, remove: () => this._removeSpool() }
    } catch (error) {
      room?.end(0)
      await this._removeSpool()
      throw asGatewayError(error)
    } finally {
      clearTimeout(timer)
      countReceived(request, this.#receivedBytes)
    }
  }

  _handleFile(_request: Request, file: Express.Multer.File, callback: (error?: unknown) => void): void {
    const { spoolDirectory, fileBytes, fileTooLargeKind } = this.#limits
    const spool = new SpooledFile(spoolDirectory === undefined ? {} : { directory: spoolDirectory })
    this.#file = {
      spool,
      filename: safeFileName(file.originalname),
      contentType: file.mimetype,
      claimedType: this.#observer?.contentType ?? '',
      fieldIndex: this.#fields.length,
    }
    // Multer reports it only when the file has been stored as far as its limit.
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

  /** Rejects with the first fault of the form; from then on the request is not read and the parser is gone. */
  #parse(request: IncomingMessage, boundary: string): Promise<void> {
    let stop: () => void = () => undefined
    return new Promise<void>((resolve, reject) => {
      this.#refuse = reject
      parseForm(boundary, {
        storage: this,
        fileBytes: this.#limits.fileBytes,
        onParser: (parser) => {
          this.#listen(parser)
          stop = this.#feed(request, parser)
        },
        onEnd: (refusal) => {
          if (refusal === undefined) resolve()
          else reject(refusal)
        },
      })
    }).finally(() => {
      stop()
    })
  }

  #listen(parser: Writable): void {
    this.#observer = new PartObserver(parser)
    parser.on('field', (name: string | undefined, value: string | undefined) => {
      this.#reportedParts += 1
      if (name !== undefined) this.#takeField(name, value)
    })
    // Before multer's own listener, whose message names nothing of the part.
    parser.prependListener('file', (name: string | undefined, _stream: Readable, info: { filename?: string }) => {
      this.#reportedParts += 1
      const fault = name === undefined ? undefined : faultOfFilePart(name, info.filename, !this.#names.has('file'))
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

  /** Writes the body to the parser as it comes; the function returned stops both. */
  #feed(request: IncomingMessage, parser: Writable): () => void {
    const { bodyBytes, room } = this.#limits
    const onData = (chunk: Buffer): void => {
      this.#receivedBytes += chunk.length
      if (this.#receivedBytes > bodyBytes) this.#refuse(bodyTooLarge(bodyBytes))
      else if (room?.arrived(chunk.length) === false) this.#refuse(memoryFull())
      else if (!parser.write(chunk)) request.pause()
    }
    const onEnd = (): void => {
      parser.end()
    }
    const stopWatching = finished(request, { writable: false }, (error) => {
      if (error) this.#refuse(clientDisconnected())
    })
    parser.on('drain', () => request.resume())
    request.on('data', onData).on('end', onEnd)
    return () => {
      stopWatching()
      request.removeListener('data', onData).removeListener('end', onEnd).pause()
      parser.destroy()
    }
  }
}

async function store(stream: Readable, spool: SpooledFile): Promise<void> {
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    await spool.append(chunk).catch(storageFailed)
    // The spool has copied it, and what has its memory for itself is a whole piece of the request: no other part is in it.
    freeBytes(chunk)
  }
  await spool.finish().catch(storageFailed)
}

/** The file part passed its limit; `readBytes` of it had arrived by then. */
function fileTooLarge(
  limitBytes: number,
  readBytes: number,
  kind: 'invalid_request' | 'payload_too_large' = 'invalid_request',
): GatewayError {
  const message = `Maximum file size (${limitBytes} bytes) exceeded (${readBytes} bytes read).`
  return new GatewayError(kind, message, { code: 'file_too_large', param: 'file' })
}
