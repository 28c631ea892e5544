import type { SpooledFile } from '../core/spooled-file.js'

/** A file of a caller's. Its bytes are given back when nobody holds it any more. */
export class DocumentUpload {
  private holders = 0

  constructor(
    readonly spool: SpooledFile,
    /** Safe to send and to log; '' when there is none. */
    readonly name: string,
    /** As the caller claimed it, parameters included; '' when nobody said. */
    readonly contentType: string,
  ) {}

  /** Keeps the bytes until the function that is handed back is called; calling that again does nothing. */
  hold(): () => Promise<void> {
    this.holders++
    let isHeld = true
    return async () => {
      if (!isHeld) return
      isHeld = false
      this.holders--
      if (this.holders === 0) await this.spool.remove()
    }
  }
}

export type DocumentSource =
  /** Normalised, so that equal pages have equal addresses. */
  { readonly kind: 'url'; readonly url: string } | { readonly kind: 'file'; readonly upload: DocumentUpload }

/** What a caller asks for, in whichever form it came. */
export interface DocumentRequest {
  readonly source: DocumentSource
  /** For the whole of the work, from the last byte of the request on. */
  readonly timeoutMs: number
  /** The caller does not want what was read before. */
  readonly isFresh: boolean
}
