import { constants, openSync, readFileSync, writeSync } from 'node:fs'
import { hasCode } from '../core/system-error.js'

const NAP_MS = 10

/** Whether a write found no room in a pipe: its reader is slow, or stands still. Of a closed one nobody reads any more. */
export const isPipeFull = (error: unknown): boolean => hasCode(error, 'EAGAIN')

/** How often `napForPipe` is to be called to wait so long. */
export const napsWithin = (milliseconds: number): number => milliseconds / NAP_MS

/** Gives a reader 10 ms. Holds the whole process: for its very end alone. */
export function napForPipe(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, NAP_MS)
}

/**
 * A pipe or a terminal, opened once more: whether a write may wait belongs to the open file, which a descriptor shares with
 * other processes, each of which may change it. This one is nobody else's and never waits. Undefined for files and sockets,
 * where there is no /proc, and for the pipe of another user.
 */
export function ownPipe(fileDescriptor: number): number | undefined {
  try {
    if (hasPlaces(fileDescriptor)) return undefined
    const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants
    return openSync(`/proc/self/fd/${fileDescriptor}`, O_WRONLY | O_NONBLOCK | O_NOCTTY)
  } catch {
    return undefined
  }
}

/** Whether a write takes at once what there is room for, as of now; else it may wait until it is whole. */
export function neverWaits(fileDescriptor: number): boolean {
  const flags = factOf(fileDescriptor, /^flags:\s*([0-7]+)$/m)
  return flags !== undefined && (Number.parseInt(flags, 8) & constants.O_NONBLOCK) !== 0
}

/**
 * At which byte of a file the next write begins: another one once a write is whole. Always the same for what has no
 * such places, as pipes and sockets; undefined where there is no /proc.
 */
export const placeOf = (fileDescriptor: number): string | undefined => factOf(fileDescriptor, /^pos:\s*(\d+)$/m)

/**
 * What Linux says of an open file. As UTF-8, for which Node 20 has a way of its own: reading bytes here, while modules
 * are still being loaded, has left some of them empty.
 */
function factOf(fileDescriptor: number, fact: RegExp): string | undefined {
  try {
    return fact.exec(readFileSync(`/proc/self/fdinfo/${fileDescriptor}`, 'utf8'))?.[1]
  } catch {
    return undefined
  }
}

/** Whether it has places to write at, as a file has. Told by writing nothing at one, not by `fstat`: see `factOf`. */
function hasPlaces(fileDescriptor: number): boolean {
  try {
    writeSync(fileDescriptor, Buffer.alloc(0), 0, 0, 0)
    return true
  } catch (error) {
    if (hasCode(error, 'ESPIPE')) return false
    throw error
  }
}
