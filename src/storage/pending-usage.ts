import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { syncPath } from './file-sync.js'

/**
 * The file beside an embedded store that says that bills of background responses may be open in it. Without it a gateway whose
 * configuration needs no store would not open it, and so would not ask for their ends.
 */
export const pendingUsagePath = (directory: string): string => join(directory, 'PENDING-USAGE')

/** Resolves when the file is on the disk. */
export async function markPendingUsage(directory: string): Promise<void> {
  const path = pendingUsagePath(directory)
  await writeFile(path, '')
  await syncPath(path)
  await syncPath(directory)
}
