/**
 * What stands between the gateway and the engine in its child process. The engine is a pure function of these: it reads
 * no file, no environment and no network.
 */
export interface EngineInput {
  readonly bytes: Uint8Array
  /** What the server or the upload claimed, parameters included; '' when nobody said. A claim, not a finding. */
  readonly contentType: string
  /** File name, or the last segment of the URL's path; '' when there is none. */
  readonly name: string
  /** Absolute URL that relative links stand against; '' leaves them as they are. */
  readonly baseUrl: string
}

export interface EngineLimits {
  /** Of a PDF; more are refused, not cut off. */
  readonly pages: number
  /** Of all parts of a container after inflation, and of the text made of them. */
  readonly decodedBytes: number
}

export const DOCUMENT_KINDS = ['html', 'pdf', 'docx', 'xlsx', 'pptx', 'csv', 'markdown', 'text'] as const
export type DocumentKind = (typeof DOCUMENT_KINDS)[number]

/** Specification: Document parse result, metadata; every member present, '' when the document does not say. */
export interface EngineMetadata {
  readonly title: string
  readonly description: string
  readonly keywords: string
  readonly siteName: string
  readonly favicon: string
}

export const NO_METADATA: EngineMetadata = { title: '', description: '', keywords: '', siteName: '', favicon: '' }

export interface EngineOutput {
  readonly kind: DocumentKind
  readonly metadata: EngineMetadata
  /** The main content, cleaned, with absolute links, for HTML; otherwise ''. */
  readonly html: string
  readonly markdown: string
  /** Pages of a PDF, slides, sheets; otherwise 1. */
  readonly pages: number
}

/**
 * Why a document cannot be read: `unsupported` no format of ours, `encrypted` needs a password, `no_text` holds pictures
 * of text only, `broken` is not what it says it is, `too_large` beyond a limit of the engine.
 */
export const ENGINE_FAULTS = ['unsupported', 'encrypted', 'no_text', 'broken', 'too_large'] as const
export type EngineFaultName = (typeof ENGINE_FAULTS)[number]

/** The document's fault, in words for the caller; anything else the engine throws is a fault of ours. */
export class EngineFault extends Error {
  override readonly name = 'EngineFault'

  constructor(
    readonly fault: EngineFaultName,
    message: string,
  ) {
    super(message)
  }
}
