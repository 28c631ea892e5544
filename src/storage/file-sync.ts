import { closeSync, fsyncSync, openSync } from 'node:fs'
import { open, stat } from 'node:fs/promises'

export const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

/**
 * Puts a file on the disk, or the names in a folder: a file whose name is not there yet is lost at a power failure, whatever
 * is in it.
 */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** As `syncPath`, for the end of a process. */
export function syncPathNow(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
