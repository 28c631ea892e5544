import { open, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * The files of a new store are written over seconds. A process that is killed meanwhile leaves half a store, which PostgreSQL
 * may take for a whole one: this file beside them says so.
 */
const MARK = 'CREATING'

/** Whether the store has to be made; half a store is removed first. The directory must be locked. */
export async function beginCreation(directory: string, files: string): Promise<boolean> {
  const mark = join(directory, MARK)
  if (await exists(mark)) await rm(files, { recursive: true, force: true })
  if (await exists(files)) return false
  await writeFile(mark, '')
  await sync(mark)
  await sync(directory)
  return true
}

/** Puts the new store on the disk, then takes it for whole. */
export async function endCreation(directory: string, files: string): Promise<void> {
  for (const entry of await readdir(files, { recursive: true, withFileTypes: true })) {
    await sync(join(entry.parentPath, entry.name))
  }
  await sync(files)
  await rm(join(directory, MARK))
  await sync(directory)
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )
