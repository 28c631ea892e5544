import { writeSync } from 'node:fs'
import { isNativeError } from 'node:util/types'

/** A full pipe is tried again this often before its reader is taken for dead: for about two seconds in a row. */
const NAP_MS = 10
const MAXIMUM_NAPS = 200

/**
 * Lines past the log, its level and its buffer: written when this returns. One call for each, so that those of several
 * processes do not tear in one pipe. Returns how many were written before the reader was given up on. Never throws.
 */
export function writeUrgently(descriptor: number, lines: Iterable<string>): number {
  let written = 0
  for (const line of lines) {
    if (!writeLine(descriptor, line)) break
    written++
  }
  return written
}

function writeLine(descriptor: number, line: string): boolean {
  let rest = Buffer.from(line)
  for (let naps = 0; rest.length > 0;) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest))
      naps = 0
    } catch (error) {
      // A full pipe asks to try again; a closed one has no reader left.
      if (!isFull(error) || naps++ === MAXIMUM_NAPS) return false
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, NAP_MS)
    }
  }
  return true
}

const isFull = (error: unknown): boolean => isNativeError(error) && 'code' in error && error.code === 'EAGAIN'
