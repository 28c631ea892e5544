import { hasCode } from '../errors/system-error.js'

const NAP_MS = 10

/** Whether a write found no room in a pipe: its reader is slow, or stands still. Of a closed one nobody reads any more. */
export const isPipeFull = (error: unknown): boolean => hasCode(error, 'EAGAIN')

/** How often `napForPipe` is to be called to wait so long. */
export const napsWithin = (milliseconds: number): number => milliseconds / NAP_MS

/** Gives a reader 10 ms. Holds the whole process: for its very end alone. */
export function napForPipe(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, NAP_MS)
}
