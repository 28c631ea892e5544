/** A span that is over, without the packages that send it. Times are Unix milliseconds with fractions. */
export interface SpanRecord {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  /** The parent is somebody else's: the caller's. */
  readonly isParentRemote: boolean
  /** `server` = a request of a caller; `client` = an attempt at an upstream. */
  readonly kind: 'server' | 'client'
  readonly name: string
  readonly startMs: number
  readonly endMs: number
  readonly isError: boolean
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  /** When the answer began; attempts that got one. */
  readonly answeredAtMs?: number
}
