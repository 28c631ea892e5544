import { writeSync } from 'node:fs'
import { isPipeFull, napForPipe, napsWithin } from '../observability/full-pipe.js'

/** A full pipe is tried again so long in a row before its reader is taken for dead. */
const MAXIMUM_NAPS = napsWithin(2000)

/**
 * Lines past the log, its level and its buffer: written when this returns. One call for each, so that those of several
 * processes do not tear in one pipe. Ends with the first that finds no reader. Never throws.
 */
export function writeUrgently(descriptor: number, lines: Iterable<string>): void {
  for (const line of lines) if (!writeLine(descriptor, line)) return
}

function writeLine(descriptor: number, line: string): boolean {
  let rest = Buffer.from(line)
  for (let naps = 0; rest.length > 0;) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest))
      naps = 0
    } catch (error) {
      // A full pipe asks to try again; a closed one has no reader left.
      if (!isPipeFull(error) || naps++ === MAXIMUM_NAPS) return false
      napForPipe()
    }
  }
  return true
}
