import { createReadStream, type Stats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { sql } from 'kysely'
import { createTarPacker, type TarPackController } from 'modern-tar'
import { hasCode } from '../core/errors.js'
import type { Queries } from './store-tables.js'

const LOG_FOLDER = 'pg_wal'
/** Of one process, or made anew at every start. */
const LEFT_OUT =
  /^(?:postmaster\.(?:pid|opts)|backup_label|pg_stat_tmp\/.|base\/pgsql_tmp|pg_internal\.init)|\/pgsql_tmp/

/**
 * The files of the store as a tar, while it is used: PostgreSQL's own online backup. Files change while others are read; the
 * log of that time comes last, and from it PostgreSQL makes them agree when it opens them: the store is then as it was when the
 * last file had been read.
 * The log must not be shortened before `onEnd`.
 */
export function snapshotOf(files: string, queries: Queries, onEnd: () => void): Readable {
  const { readable, controller } = createTarPacker()
  pack(files, queries, controller)
    .then(
      () => {
        controller.finalize()
      },
      (error: unknown) => {
        controller.error(error)
      },
    )
    .finally(onEnd)
    // Of an archive that was given up on.
    .catch(() => undefined)
  return Readable.fromWeb(readable)
}

async function pack(files: string, queries: Queries, tar: TarPackController): Promise<void> {
  // With a checkpoint at once.
  await sql`select pg_backup_start('gateway', true)`.execute(queries)
  let label: string | undefined
  try {
    const names = await readdir(files, { recursive: true })
    for (const name of names.sort()) if (!LEFT_OUT.test(name) && !isLog(name)) await add(tar, files, name)
  } finally {
    const { rows } = await sql<{ labelfile: string }>`select labelfile from pg_backup_stop(false)`.execute(queries)
    label = rows[0]?.labelfile
  }
  if (label === undefined) throw new Error('PostgreSQL gave no label of the backup')
  for (const name of await logSince(queries, label)) await add(tar, files, `${LOG_FOLDER}/${name}`)
  await addBytes(tar, 'backup_label', Buffer.from(label))
}

/** Its folders are needed, empty. */
const isLog = (name: string): boolean => name.startsWith(`${LOG_FOLDER}/0`)

/** The files of the log that the backup needs, by name; further ones are only reserved. */
async function logSince(queries: Queries, label: string): Promise<readonly string[]> {
  const [, first = ''] = /\(file (\w+)\)/.exec(label) ?? []
  const { rows } = await sql<{ name: string }>`
    select name from pg_ls_waldir()
    where name ~ '^[0-9A-F]{24}$' and name >= ${first} and name <= pg_walfile_name(pg_current_wal_lsn())
    order by name`.execute(queries)
  return rows.map(({ name }) => name)
}

async function add(tar: TarPackController, files: string, name: string): Promise<void> {
  let found: Stats
  try {
    found = await stat(join(files, name))
  } catch (error) {
    // PostgreSQL has removed it meanwhile: its log has the removal.
    if (hasCode(error, 'ENOENT')) return
    throw error
  }
  if (found.isDirectory()) {
    await tar.add({ name: `${name}/`, type: 'directory', size: 0, mode: 0o700 }).close()
    return
  }
  const writer = tar.add({ name, type: 'file', size: found.size, mode: 0o600 }).getWriter()
  for await (const chunk of exactly(join(files, name), found.size)) await writer.write(chunk)
  await writer.close()
}

async function addBytes(tar: TarPackController, name: string, bytes: Uint8Array): Promise<void> {
  const writer = tar.add({ name, type: 'file', size: bytes.length, mode: 0o600 }).getWriter()
  await writer.write(bytes)
  await writer.close()
}

const ZEROS = Buffer.alloc(65_536)

/**
 * The bytes of a file, as many as it had when its size was read. It may have grown or shrunk since: what is cut off here, or
 * filled with zeros, PostgreSQL writes anew from its log when it opens the backup.
 */
async function* exactly(path: string, size: number): AsyncGenerator<Uint8Array> {
  let rest = size
  if (size > 0) {
    for await (const chunk of createReadStream(path, { end: size - 1 }) as AsyncIterable<Buffer>) {
      rest -= chunk.length
      yield chunk
    }
  }
  for (; rest > 0; rest -= ZEROS.length) yield ZEROS.subarray(0, Math.min(rest, ZEROS.length))
}
