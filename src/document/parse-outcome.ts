import type { EngineReplyHead } from '@multi-model-gateway/document-engine/engine-protocol.js'
import type { EngineFaultName } from '@multi-model-gateway/document-engine/model/document.js'
import type { Frame } from '@multi-model-gateway/document-engine/protocol.js'
import { GatewayError } from '../core/gateway-error.js'
import { EngineEnded } from './engine-exit.js'
import type { ParsedDocument } from './parser.js'

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

/** What the caller is told when the process of the engine ended before its answer. */
export const errorOfEnd = (error: unknown): GatewayError =>
  error instanceof EngineEnded && error.isForWantOfMemory ? needsMemory(error) : unreadable(error)

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
