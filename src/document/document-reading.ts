import type { ReadDocument } from '../providers/contracts/document.contract.js'

/** A document that was read, and to whom it may be given again. */
export interface DocumentReading {
  readonly document: ReadDocument
  readonly reuse: 'anyone' | 'same caller' | 'nobody'
}

/** An answer that is fine is worth keeping; everything else may be another one a moment later. */
export const KEPT_STATUS = 200

/**
 * To whom a page may be given again, by its status and its server's Cache-Control (RFC 9111, section 5.2.2). A response to
 * a request without cookies is the same for everybody, unless its server says otherwise.
 */
export function reuseOfPage(status: number, cacheControl: string): DocumentReading['reuse'] {
  const directives = cacheControl
    .toLowerCase()
    .split(',')
    .map((directive) => directive.split('=', 1)[0]?.trim())
  if (status !== KEPT_STATUS || directives.includes('no-store')) return 'nobody'
  return directives.includes('private') ? 'same caller' : 'anyone'
}
