import { createReadStream } from 'node:fs'
import { chmod, lstat, readdir, readFile, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { createBrotliDecompress } from 'node:zlib'
import { unpackTar } from 'modern-tar/fs'
import { hasCode } from '../core/errors.js'
import { OTHER_USERS } from './data-lock.js'
import { exists, syncPath } from './file-sync.js'

/**
 * The files of a new store are written over a while. A process that is killed meanwhile leaves half a store, which PostgreSQL
 * may take for a whole one: this file beside them says so.
 */
const MARK = 'CREATING'

/** An empty store, made by `scripts/prepare-store.mjs`; as far from `src/` as from `dist/`. */
const EMPTY_STORE = fileURLToPath(new URL('../../dist/empty-store.tar.br', import.meta.url))

/** Where the files of a store are, in its directory. */
export const filesIn = (directory: string): string => join(directory, 'postgres')

/** Makes a new, empty store unless there is one; half a store is removed first. The directory must be locked. */
export async function ensureStore(directory: string, files: string): Promise<void> {
  const mark = join(directory, MARK)
  if (await exists(mark)) await rm(files, { recursive: true, force: true })
  if (await exists(files)) return
  await writeFile(mark, '')
  await syncPath(mark)
  await syncPath(directory)
  await pipeline(createReadStream(EMPTY_STORE), createBrotliDecompress(), unpackTar(files, PRIVATE))
  await syncAll(files)
  await rm(mark)
  await syncPath(directory)
}

const PRIVATE = { dmode: 0o700, fmode: 0o600 }

/** More would only wait: Node has four threads for files. */
const SYNCS_AT_ONCE = 4

/** Puts a folder on the disk, with all that is in it. */
async function syncAll(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = [folder, ...entries.map((entry) => join(entry.parentPath, entry.name))]
  const syncNext = async (): Promise<void> => {
    for (let path = paths.pop(); path !== undefined; path = paths.pop()) await syncPath(path)
  }
  await Promise.all(Array.from({ length: SYNCS_AT_ONCE }, syncNext))
}

/** Of the files that PGlite makes. */
const POSTGRES_VERSION = '18'

/** What is wrong with the files of a store, as far as they show it; undefined where nothing is. */
export async function visibleDamage(files: string): Promise<string | undefined> {
  const text = await readFile(join(files, 'PG_VERSION'), 'utf8').catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  })
  // PGlite would make a new store in place of the old one.
  if (text === undefined) return 'its file PG_VERSION is missing'
  const version = text.trim().slice(0, 16)
  return version === POSTGRES_VERSION
    ? undefined
    : `it is of PostgreSQL ${version}, and this gateway's is ${POSTGRES_VERSION}`
}

/** Group and others may write. */
const WRITE_BITS = 0o022
/** Nothing in such a folder can be replaced by other users. */
const STICKY_BIT = 0o1000

/**
 * Closes the files of a store to other users, and lets none of them write to the directory around it, unless it belongs to another
 * user, as a volume may. Windows has no modes.
 */
export async function makePrivate(directory: string, files: string): Promise<void> {
  if (process.platform === 'win32') return
  const [outer, inner] = await Promise.all([stat(directory), lstat(files)])
  // What others could write to until now may hold a link to anything, whose mode would be changed.
  if (!inner.isDirectory()) throw new Error(`${files} is not a folder`)
  if ((inner.mode & OTHER_USERS) !== 0) await chmod(files, 0o700)
  const isOpen = (outer.mode & WRITE_BITS) !== 0 && (outer.mode & STICKY_BIT) === 0
  if (isOpen && outer.uid === process.getuid?.()) await chmod(directory, outer.mode & 0o7777 & ~WRITE_BITS)
}

/** What this user may still write on the disk of a folder, which may be still to be made; undefined where no system tells. */
export async function freeBytesOf(folder: string): Promise<number | undefined> {
  try {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  } catch {
    const parent = dirname(resolve(folder))
    return parent === resolve(folder) ? undefined : freeBytesOf(parent)
  }
}
