import type { DocumentKind, EngineMetadata } from '@multi-model-gateway/document-engine/model/document.js'
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
