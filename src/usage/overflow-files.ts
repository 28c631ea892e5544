import { constants, type Stats } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { hasCode } from '../core/system-error.js'
import type { UsageRecord } from '../core/usage-record.js'
import type { SpillFolder } from './disk-buffer.js'
import { spilledRow } from './spilled-row.js'

/** About thirty thousand rows: a file goes once all of it is stored, and one that was left half-way is stored anew. */
const LARGEST_FILE_BYTES = 16 * 1024 * 1024

/** Made into text in one go: more would hold up the calls that are under way. */
const ROWS_AT_ONCE = 50

/** Files into which a process puts rows while it goes on serving; whoever starts on the same folder may take them. */
export class OverflowFiles {
  private file: string | undefined
  private complete: string[] = []

  constructor(
    private readonly folder: SpillFolder,
    private readonly largestBytes = LARGEST_FILE_BYTES,
  ) {}

  /**
   * Resolves with how many of the records, from the first, are on the disk: those for which there is room. Rejects with what
   * the file system says; then none of them counts as written. One at a time.
   */
  async append(records: readonly UsageRecord[]): Promise<number> {
    const roomBytes = await this.folder.roomBytes()
    if (roomBytes <= 0) return 0
    for (;;) {
      const written = await this.written(records, roomBytes)
      if (written !== undefined) return written
      this.file = undefined
    }
  }

  /** The files so far; nothing is written into them any more. Not while something is being appended. */
  release(): readonly string[] {
    this.endFile()
    const files = this.complete
    this.complete = []
    return files
  }

  /** Undefined when somebody has taken the file meanwhile, and may have read it before the rows were in it. */
  private async written(records: readonly UsageRecord[], roomBytes: number): Promise<number | undefined> {
    const { file, handle } = await this.opened()
    try {
      const { ino, size } = await handle.stat()
      const rows = await this.durably(handle, size, () => writeRows(handle, records, roomBytes))
      const found = await statIfThere(file)
      if (found?.ino !== ino) return undefined
      if (found.size >= this.largestBytes) this.endFile()
      return rows
    } finally {
      await handle.close()
    }
  }

  /** On the disk, its name included, when it resolves. What was written in vain is taken out of the file again. */
  private async durably(handle: FileHandle, sizeBytes: number, write: () => Promise<number>): Promise<number> {
    try {
      const rows = await write()
      await handle.sync()
      if (sizeBytes === 0) await this.folder.sync()
      return rows
    } catch (error) {
      await handle.truncate(sizeBytes).catch(() => {
        this.endFile()
      })
      throw error
    }
  }

  /** Never makes a file anew that somebody has taken: it would be taken under the same name. */
  private async opened(): Promise<{ readonly file: string; readonly handle: FileHandle }> {
    const { file } = this
    if (file !== undefined) {
      try {
        return { file, handle: await open(file, constants.O_WRONLY | constants.O_APPEND) }
      } catch (error) {
        if (!hasCode(error, 'ENOENT')) throw error
      }
    }
    const made = this.folder.newFile()
    const handle = await open(made, 'ax', 0o600)
    this.file = made
    return { file: made, handle }
  }

  private endFile(): void {
    if (this.file !== undefined) this.complete.push(this.file)
    this.file = undefined
  }
}

async function statIfThere(file: string): Promise<Stats | undefined> {
  try {
    return await stat(file)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

async function writeRows(handle: FileHandle, records: readonly UsageRecord[], roomBytes: number): Promise<number> {
  let leftBytes = roomBytes
  for (let at = 0; at < records.length; at += ROWS_AT_ONCE) {
    let text = ''
    for (const [index, record] of records.slice(at, at + ROWS_AT_ONCE).entries()) {
      const row = spilledRow(record)
      leftBytes -= Buffer.byteLength(row)
      if (leftBytes < 0) {
        await handle.appendFile(text)
        return at + index
      }
      text += row
    }
    await handle.appendFile(text)
  }
  return records.length
}
