import { readFileSync } from 'node:fs'
import type { UsageRecord } from '../core/usage-record.js'
import type { SpillFolder } from './disk-buffer.js'
import { appended, recordOfRow } from './spilled-row.js'

export interface KeptRows {
  /** In the file. */
  readonly rows: number
  /** Older ones, which are in no file any more. */
  readonly forgotten: number
  /** Those of the given that found no place. */
  readonly lost: readonly UsageRecord[]
  /** Why, where the file system said so. */
  readonly error?: unknown
}

/**
 * Puts the newest of these rows, and of those that processes before this one have left like this, into one file: however
 * often a gateway is restarted, no more than `most` of them wait for somebody to ask. The earlier files go once all of it
 * is on the disk; whoever has begun to read one reads on, as rows are told apart by their ids. Synchronous; never throws.
 */
export function keepNewest(folder: SpillFolder, records: readonly UsageRecord[], most: number): KeptRows {
  const { files, earlier } = earlierRows(folder)
  const { newest, forgotten } = newestOf([...earlier, ...records], most)
  const { written, error } = appended(folder, newest)
  if (written === newest.length) for (const file of files) removeQuietly(folder, file)
  const own = new Set(records)
  const lost = newest.slice(written).filter((record) => own.has(record))
  return { rows: written, forgotten, lost, ...(error === undefined ? {} : { error }) }
}

/** Of files that cannot be taken or read, nothing: they stay for whoever can. */
function earlierRows(folder: SpillFolder): { readonly files: readonly string[]; readonly earlier: UsageRecord[] } {
  const files: string[] = []
  const earlier: UsageRecord[] = []
  for (const file of takenQuietly(folder)) {
    try {
      earlier.push(...rowsOf(file))
      files.push(file)
    } catch {
      // Gone: somebody with a store has stored it meanwhile.
    }
  }
  return { files, earlier }
}

function takenQuietly(folder: SpillFolder): readonly string[] {
  try {
    return folder.takeAlike()
  } catch {
    return []
  }
}

/** Half a line is of a row that its process has told in another way: the disk was full. */
const rowsOf = (file: string): UsageRecord[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => recordOfRow(line) ?? [])

/** The oldest first, each once. */
function newestOf(
  records: readonly UsageRecord[],
  most: number,
): { readonly newest: readonly UsageRecord[]; readonly forgotten: number } {
  const sorted = [...new Map(records.map((record) => [record.id, record])).values()].sort(
    (one, other) => one.atMs - other.atMs,
  )
  const forgotten = Math.max(0, sorted.length - most)
  return { newest: sorted.slice(forgotten), forgotten }
}

/** What is left behind is there twice, and stored once. */
function removeQuietly(folder: SpillFolder, file: string): void {
  try {
    folder.remove(file)
  } catch {
    // The disk fails, or the folder is not ours any more: nothing depends on it.
  }
}
