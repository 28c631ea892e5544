import type { ReadDocument } from '../providers/contract.js'

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
  const directives = new Map(cacheControl.toLowerCase().split(',').map(directiveOf))
  // An answer that must be checked each time is as good as none: the gateway reads anew rather than asks whether to.
  const isStale = isZero(directives.get('s-maxage') ?? directives.get('max-age'))
  if (status !== KEPT_STATUS || isStale || directives.has('no-store') || directives.has('no-cache')) return 'nobody'
  return directives.has('private') ? 'same caller' : 'anyone'
}

function directiveOf(text: string): [name: string, value: string] {
  const [name = '', value = ''] = text.split('=', 2)
  return [name.trim(), value.trim().replaceAll('"', '')]
}

const isZero = (seconds: string | undefined): boolean => seconds !== undefined && /^0+$/.test(seconds)
