import { randomFillSync } from 'node:crypto'

/** Drawn at once, as one draw costs as much as a hundred ids. */
const POOL_BYTES = 4096
const TRACE_ID_BYTES = 16
const SPAN_ID_BYTES = 8

const pool = Buffer.allocUnsafeSlow(POOL_BYTES)
let used = POOL_BYTES

/** 32 hex digits, never all zero. */
export const newTraceId = (): string => randomHex(TRACE_ID_BYTES)

/** 16 hex digits, never all zero. */
export const newSpanId = (): string => randomHex(SPAN_ID_BYTES)

function randomHex(bytes: number): string {
  if (used + bytes > POOL_BYTES) {
    randomFillSync(pool)
    used = 0
  }
  const id = pool.toString('hex', used, used + bytes)
  used += bytes
  return /[^0]/.test(id) ? id : randomHex(bytes)
}
