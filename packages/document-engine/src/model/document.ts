/**
 * What stands between the gateway and the engine in its child process. The engine is a function of these alone: it reads
 * no environment, no network, and no file but the data of the libraries it is made of (character maps, fonts).
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

/** Extension of a file name in lower case; '' without one. */
export function extensionOf(name: string): string {
  return /\.([a-z0-9]{1,12})$/i.exec(name)?.[1]?.toLowerCase() ?? ''
}

/** The media type of a Content-Type header, without parameters, in lower case; '' when there is none. */
export const mediaTypeOf = (contentType: string | undefined): string =>
  (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''

export interface EngineLimits {
  /** Of a PDF; more are refused, not cut off. */
  readonly pages: number
  /** Of all parts of a container after inflation, and of the text made of them. */
  readonly decodedBytes: number
}

export type DocumentKind = 'html' | 'pdf' | 'docx' | 'xlsx' | 'pptx' | 'csv' | 'markdown' | 'text'

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
export type EngineFaultName = 'unsupported' | 'encrypted' | 'no_text' | 'broken' | 'too_large'

/** The document's fault, in words for the caller; anything else the engine throws is a fault of ours. */
export class EngineFault extends Error {
  override readonly name = 'EngineFault'

  constructor(
    readonly fault: EngineFaultName,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/**
 * What is thrown in place of a library's error: the document's fault. Faults that are told already stay as they are, and
 * so do `RangeError`s: memory or stack that ran out says nothing of the document's form.
 */
export const faultBehind = (error: unknown, fault: EngineFaultName, message: string): Error =>
  error instanceof EngineFault || error instanceof RangeError
    ? error
    : new EngineFault(fault, message, { cause: error })
