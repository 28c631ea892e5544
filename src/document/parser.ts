import type {
  DocumentKind,
  EngineFaultName,
  EngineMetadata,
} from '@multi-model-gateway/document-engine/model/document.js'
import type { EngineReplyHead, Frame } from '@multi-model-gateway/document-engine/protocol.js'
import { GatewayError } from '../core/errors.js'
import type { Sharer } from '../core/fair-share.js'
import type { ClientDisconnect } from '../core/request-context.js'
import type { SpooledFile } from '../core/spooled-file.js'

/** A document in local storage, fetched or uploaded. */
export interface DocumentFile {
  /** A complete file, which stays owned by its creator. */
  readonly spool: SpooledFile
  /** Declared content type, parameters included; '' without one. */
  readonly contentType: string
  /** File name, or the last segment of the URL's path; '' when there is none. */
  readonly name: string
  /** Absolute URL that relative links are resolved against; '' for uploads. */
  readonly baseUrl: string
}

export interface ParseOptions {
  /** Aborted when no request waits for the result any more. */
  readonly disconnect: ClientDisconnect
  /** On the performance clock. */
  readonly deadlineAtMs: number
  /** The caller whose place it takes. */
  readonly sharer: Sharer
}

export interface ParsedDocument {
  readonly kind: DocumentKind
  readonly metadata: EngineMetadata
  readonly pages: number
  /** UTF-8 JSON text `"html":"…","markdown":"…"`, written by the engine and relayed unparsed. */
  readonly content: Buffer
}

/** Parses documents in separate processes; also the injection token. */
export abstract class DocumentParser {
  /**
   * Rejects with a `GatewayError`: `unsupported_media_type`, `unprocessable` (encrypted, no text, broken, needs too much
   * memory), `payload_too_large`, `upstream_timeout` (deadline or the engine's own limit), `overloaded` (queue full),
   * `caller_left`, `internal` (the engine failed).
   */
  abstract parse(file: DocumentFile, options: ParseOptions): Promise<ParsedDocument>
}

export interface ParserExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** The end of what it wrote to standard error. */
  readonly stderrTail: string
  /** The gateway killed it on purpose. */
  readonly isKilled: boolean
  /** The fault for which the gateway killed it: a protocol violation, a document that could not be sent. */
  readonly error: unknown
  /** The engine had received the complete document and was parsing. */
  readonly isParsing: boolean
}

/** Messages of Node, V8 and the C++ library for a failed allocation, which ends the process. */
const OUT_OF_MEMORY = /out of memory|bad_alloc|allocation failed/i

/** The engine process exited while it had a document. */
export class EngineEnded extends Error {
  override readonly name = 'EngineEnded'

  constructor(readonly exit: ParserExit) {
    const { code, signal, stderrTail } = exit
    super(`the engine ended with ${signal ?? `code ${String(code)}`}: ${stderrTail}`, { cause: exit.error })
  }

  /** The document did not cause the exit: the process was killed from outside before it began to parse. */
  get isUnrelatedExit(): boolean {
    const { isKilled, error, isParsing } = this.exit
    return !isKilled && error === undefined && !isParsing
  }

  /**
   * The engine's memory watchdog and the kernel's OOM killer use SIGKILL. If memory allocation fails, Node exits by another
   * signal, often without a message. The engine has no native add-ons that could crash for other reasons.
   */
  get isOutOfMemory(): boolean {
    const { signal, stderrTail, isKilled, error, isParsing } = this.exit
    return !isKilled && error === undefined && isParsing && (signal !== null || OUT_OF_MEMORY.test(stderrTail))
  }
}

const FAULTS = {
  unsupported: ['unsupported_media_type'],
  too_large: ['payload_too_large'],
  encrypted: ['unprocessable', 'document_encrypted'],
  no_text: ['unprocessable', 'document_without_text'],
  broken: ['unprocessable', 'document_broken'],
} as const satisfies Record<EngineFaultName, readonly [kind: string, code?: string]>

/** Reads the document in an engine's reply; throws the `GatewayError` of any other outcome. */
export function documentOf({ head, payload }: Frame): ParsedDocument {
  const reply = head as EngineReplyHead
  switch (reply.outcome) {
    case 'read':
      return { kind: reply.kind, metadata: reply.metadata, pages: reply.pages, content: payload }
    case 'fault': {
      const [kind, code] = FAULTS[reply.fault]
      throw new GatewayError(kind, reply.message, code === undefined ? {} : { code })
    }
    case 'out_of_memory':
      throw outOfMemoryError()
    case 'failed':
      throw parserFailed(new Error(reply.reason))
  }
}

/** The error for the caller when the engine process exited before its reply. */
export const errorFromExit = (error: unknown): GatewayError =>
  error instanceof EngineEnded && error.isOutOfMemory ? outOfMemoryError(error) : parserFailed(error)

export const parseTimedOut = (): GatewayError =>
  new GatewayError('upstream_timeout', 'The document could not be read within its time.')

export const queueFull = (retryAfterSeconds = 1): GatewayError =>
  new GatewayError('overloaded', 'Too many documents are being read. Try again later.', { retryAfterSeconds })

export const parserStopping = (): GatewayError =>
  new GatewayError('overloaded', 'The gateway is shutting down.', { retryAfterSeconds: 1 })

const outOfMemoryError = (cause?: unknown): GatewayError =>
  new GatewayError('unprocessable', 'The document needs more memory than the gateway grants.', { cause })

const parserFailed = (cause: unknown): GatewayError =>
  new GatewayError('internal', 'The document could not be read because of a fault of the gateway.', { cause })
