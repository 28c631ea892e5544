import type { SpooledFile } from '../core/spooled-file.js'
import type { CallContext } from './call-context.js'

/** What is to be read: a page at a URL that was checked already, or a file that lies here. */
export type ReadSource =
  | { readonly kind: 'url'; readonly url: string }
  | {
      readonly kind: 'file'
      readonly spool: SpooledFile
      /** Safe to send; '' when there is none. */
      readonly name: string
      /** As the caller claimed it; '' when nobody said. */
      readonly contentType: string
    }

export interface ReadRequest {
  readonly source: ReadSource
  /** What is left for the whole of it, in milliseconds. */
  readonly timeoutMs: number
  /** The caller does not want what was read before. */
  readonly isFresh: boolean
  /** The longest answer of an upstream that is taken, in bytes. */
  readonly answerBytes: number
}

/** Specification: Document parse result, metadata without `cached`; '' where nobody knows. */
export interface ReadMetadata {
  readonly url: string
  readonly title: string
  readonly description: string
  readonly keywords: string
  readonly siteName: string
  readonly favicon: string
  /** Of the document's own server; 200 for uploads. */
  readonly statusCode: number
  readonly contentType: string
}

export interface ReadDocument {
  readonly metadata: ReadMetadata
  /** UTF-8 JSON text `"html":"…","markdown":"…"`. */
  readonly content: Buffer
  /** Pages, slides or sheets; 1 where the question makes no sense. */
  readonly pages: number
  /** True when the reader itself says that it had read it before. */
  readonly isCached: boolean
}

export interface DocumentProvider {
  /** Rejects with a `GatewayError`; a document that cannot be read is the caller's fault, not the channel's. */
  read(request: ReadRequest, context: CallContext): Promise<ReadDocument>
}
