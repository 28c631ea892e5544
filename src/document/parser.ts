import type {
  DocumentKind,
  EngineFaultName,
  EngineMetadata,
} from '@multi-model-gateway/document-engine/model/document.js'
import type { EngineReplyHead, Frame } from '@multi-model-gateway/document-engine/protocol.js'
import { GatewayError } from '../core/errors.js'
import type { ClientDisconnect } from '../core/request-context.js'
import type { SpooledFile } from '../core/spooled-file.js'

/** A document that lies here, fetched or uploaded. */
export interface DocumentFile {
  /** A complete file, which stays owned by its creator. */
  readonly spool: SpooledFile
  /** Declared content type, parameters included; '' without one. */
  readonly contentType: string
  /** File name, or the last segment of the URL's path; '' when there is none. */
  readonly name: string
  /** Absolute URL that relative links stand against; '' for uploads. */
  readonly baseUrl: string
}

export interface ParseOptions {
  /** Aborted when no request waits for the result any more. */
  readonly disconnect: ClientDisconnect
  /** On the performance clock. */
  readonly deadlineAtMs: number
}

export interface ParsedDocument {
  readonly kind: DocumentKind
  readonly metadata: EngineMetadata
  readonly pages: number
  /** UTF-8 JSON text `"html":"…","markdown":"…"`, made where the document was read and never parsed again. */
  readonly content: Buffer
}

/** Reads documents in processes of their own. The token under which the service injects it. */
export abstract class DocumentParser {
  /**
   * Rejects with a `GatewayError`: `unsupported_media_type`, `unprocessable` (encrypted, no text, broken, needs too much
   * memory), `payload_too_large`, `upstream_timeout` (deadline or the engine's own limit), `overloaded` (queue full),
   * `caller_left`, `internal` (the engine failed).
   */
  abstract parse(file: DocumentFile, options: ParseOptions): Promise<ParsedDocument>
}

/** How the process of an engine ended. */
export interface ParserExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** The end of what it wrote to standard error. */
  readonly stderrTail: string
  /** The gateway had decided to end it. */
  readonly isKilled: boolean
  /** Why the gateway had to end it: a broken protocol, a document that could not be sent. */
  readonly error: unknown
  /** It had all of the document it was given last, and was reading. */
  readonly isParsing: boolean
}

/** The words of the runtime, its heap and the C++ library when an allocation fails; they end the process by themselves. */
const OUT_OF_MEMORY = /out of memory|bad_alloc|allocation failed/i

/** The process ended while it had a document. */
export class EngineEnded extends Error {
  override readonly name = 'EngineEnded'

  constructor(readonly exit: ParserExit) {
    const { code, signal, stderrTail } = exit
    super(`the engine ended with ${signal ?? `code ${String(code)}`}: ${stderrTail}`, { cause: exit.error })
  }

  /** It ended by no doing of the document: somebody ended it from outside while it was still idle, or nearly so. */
  get isUnrelatedExit(): boolean {
    const { isKilled, error: fault, isParsing } = this.exit
    return !isKilled && fault === undefined && !isParsing
  }

  /**
   * The engine's own watch and the kernel's end it by SIGKILL; the runtime takes any of the other signals, often without
   * a word, when the system refuses it memory. It holds no native code of others that could crash for other reasons.
   */
  get isOutOfMemory(): boolean {
    const { signal, stderrTail, isKilled, error: fault, isParsing } = this.exit
    return !isKilled && fault === undefined && isParsing && (signal !== null || OUT_OF_MEMORY.test(stderrTail))
  }
}

const FAULTS = {
  unsupported: ['unsupported_media_type'],
  too_large: ['payload_too_large'],
  encrypted: ['unprocessable', 'document_encrypted'],
  no_text: ['unprocessable', 'document_without_text'],
  broken: ['unprocessable', 'document_broken'],
} as const satisfies Record<EngineFaultName, readonly [kind: string, code?: string]>

/** The document in an engine's answer; throws the `GatewayError` that the answer means otherwise. */
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

/** What the caller is told when the process of the engine ended before its answer. */
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
