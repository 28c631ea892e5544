import type { EngineFaultName } from '@multi-model-gateway/document-engine/model/document.js'
import type { EngineReplyHead, Frame } from '@multi-model-gateway/document-engine/protocol.js'
import { GatewayError } from '../core/errors.js'
import type { ParsedDocument } from './parser.js'

/** How the process of an engine ended. */
export interface ParserExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** The end of what it wrote to standard error. */
  readonly errors: string
  /** The gateway had decided to end it. */
  readonly isKilled: boolean
  /** Why the gateway had to end it: a broken protocol, a document that could not be sent. */
  readonly error: unknown
  /** It had all of the document it was given last, and was reading. */
  readonly hasBegun: boolean
}

/** The words of the runtime, its heap and the C++ library when an allocation fails; they end the process by themselves. */
const OUT_OF_MEMORY = /out of memory|bad_alloc|allocation failed/i

/** The process ended while it had a document. */
export class ParserExited extends Error {
  override readonly name = 'EngineEnded'

  constructor(readonly exit: ParserExit) {
    const { code, signal, errors } = exit
    super(`the engine ended with ${signal ?? `code ${String(code)}`}: ${errors}`, { cause: exit.error })
  }

  /** Whether the process ended before it read the document, for example by a signal from outside. */
  get isUntouched(): boolean {
    const { isKilled, error: fault, hasBegun } = this.exit
    return !isKilled && fault === undefined && !hasBegun
  }

  /**
   * The engine's own watch and the kernel's end it by SIGKILL; the runtime takes any of the other signals, often without
   * a word, when the system refuses it memory. It holds no native code of others that could crash for other reasons.
   */
  get isOutOfMemory(): boolean {
    const { signal, errors, isKilled, error: fault, hasBegun } = this.exit
    return !isKilled && fault === undefined && hasBegun && (signal !== null || OUT_OF_MEMORY.test(errors))
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
      throw needsMemory()
    case 'failed':
      throw unreadable(new Error(reply.reason))
  }
}

/** Error for the caller when the process ended before its result. */
export const errorOfEnd = (error: unknown): GatewayError =>
  error instanceof ParserExited && error.isOutOfMemory ? needsMemory(error) : unreadable(error)

export const outOfTime = (): GatewayError =>
  new GatewayError('upstream_timeout', 'The document could not be read within its time.')

export const parserFull = (retryAfterSeconds = 1): GatewayError =>
  new GatewayError('overloaded', 'Too many documents are being read. Try again later.', { retryAfterSeconds })

export const parserStopping = (): GatewayError =>
  new GatewayError('overloaded', 'The gateway is shutting down.', { retryAfterSeconds: 1 })

const needsMemory = (cause?: unknown): GatewayError =>
  new GatewayError('unprocessable', 'The document needs more memory than the gateway grants.', { cause })

const unreadable = (cause: unknown): GatewayError =>
  new GatewayError('internal', 'The document could not be read because of a fault of the gateway.', { cause })
