import type { DocumentKind, EngineMetadata } from '@multi-model-gateway/document-engine/model/document.js'
import type { ClientDisconnect } from '../core/request-context.js'
import type { SpooledFile } from '../core/spooled-file.js'

/** A document that lies here, fetched or uploaded. */
export interface DocumentFile {
  /** Finished; stays the property of whoever made it. */
  readonly spool: SpooledFile
  /** As the server or the upload claimed it, parameters included; '' when nobody said. */
  readonly contentType: string
  /** File name, or the last segment of the URL's path; '' when there is none. */
  readonly name: string
  /** Absolute URL that relative links stand against; '' for uploads. */
  readonly baseUrl: string
}

export interface ParseOptions {
  /** Whoever waits for the result; the work ends when they leave. */
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
  abstract parse(file: DocumentFile, terms: ParseOptions): Promise<ParsedDocument>
}
