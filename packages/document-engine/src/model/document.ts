/**
 * The input and the output of the engine, which runs in a child process of the gateway. The engine depends on its input
 * alone: it reads no environment, no network, and no file but the data of its libraries (character maps, fonts).
 */
export interface EngineInput {
  readonly bytes: Uint8Array
  /** Content type that the server or the upload declared, parameters included; '' without one. It may be wrong. */
  readonly contentType: string
  /** File name, or the last segment of the URL's path; '' when there is none. */
  readonly name: string
  /** Absolute URL that relative links are resolved against; '' leaves them relative. */
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
  /** Pages of a PDF; a longer one is refused, not cut. */
  readonly pages: number
  /** Size of all parts of a container after inflation, and of the text made of them. */
  readonly decodedBytes: number
}

export type DocumentKind =
  | 'html'
  | 'pdf'
  | 'docx'
  | 'xlsx'
  | 'pptx'
  | 'odt'
  | 'ods'
  | 'odp'
  | 'epub'
  | 'rtf'
  | 'email'
  | 'notebook'
  | 'csv'
  | 'markdown'
  | 'text'

/**
 * What a result lacks: `pages_without_text` (pictures only; text in pictures is not read), `pages_unread` (broken),
 * `fonts_unreadable` (glyphs that stand for no known character), `drawings_unread` (lines, and so tables),
 * `pictures_dropped` (without a description), `equations_unread`, `attachments_unread` (files and objects within),
 * `scripts_needed` (a page that a script would fill), `content_cut` (at a limit).
 */
export type EngineWarningCode =
  | 'pages_without_text'
  | 'pages_unread'
  | 'fonts_unreadable'
  | 'drawings_unread'
  | 'pictures_dropped'
  | 'equations_unread'
  | 'attachments_unread'
  | 'scripts_needed'
  | 'content_cut'

export interface EngineWarning {
  readonly code: EngineWarningCode
  /** One sentence for people. */
  readonly message: string
  /** Pages or slides that it is about, from 1 on; absent where it is about the whole. */
  readonly pages?: readonly number[]
}

/**
 * Specification: Document parse result, metadata; every member present, '' when the document does not say. Beyond it:
 * `language`, a BCP 47 tag, and `warnings`.
 */
export interface EngineMetadata {
  readonly title: string
  readonly description: string
  readonly keywords: string
  readonly siteName: string
  readonly favicon: string
  readonly language: string
  readonly warnings: readonly EngineWarning[]
}

export const NO_METADATA: EngineMetadata = {
  title: '',
  description: '',
  keywords: '',
  siteName: '',
  favicon: '',
  language: '',
  warnings: [],
}

/** The BCP 47 tag of a language as documents declare it (`en_us`, `zh-hans`); '' for none. */
export function languageTag(declared: string): string {
  try {
    return Intl.getCanonicalLocales(declared.trim().replaceAll('_', '-'))[0] ?? ''
  } catch {
    return ''
  }
}

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
 * Why a document cannot be read: `unsupported` format, `encrypted` with a password, `no_text` (empty, or pictures of text
 * only), `broken` file, `too_large` for a limit of the engine.
 */
export type EngineFaultName = 'unsupported' | 'encrypted' | 'no_text' | 'broken' | 'too_large'

/** Error caused by the document, with a message for the caller. Any other error of the engine is a bug. */
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
 * Converts an error of a library to an `EngineFault`. An `EngineFault` is returned as it is, and so is a `RangeError`: lack of
 * memory or stack does not mean that the document is broken.
 */
export const faultBehind = (error: unknown, fault: EngineFaultName, message: string): Error =>
  error instanceof EngineFault || error instanceof RangeError
    ? error
    : new EngineFault(fault, message, { cause: error })
