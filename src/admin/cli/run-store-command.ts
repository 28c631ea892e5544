import { mkdtemp, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { readBackup, writeBackup } from '../../storage/backup-file.js'
import { StoreUnusable } from '../../storage/database.js'
import { fillStore, type OnProgress, type RowSource, type Sums, withSnapshot } from '../../storage/store-copy.js'
import { areSame, nameOf, type StorePlace, unstoredUsage, withSource, withTarget } from '../../storage/store-place.js'
import { downloadSnapshot } from './store-client.js'
import type { StoreCommand } from './store-command.js'

/** What a command needs beside its words. */
interface StoreSettings {
  /** The store that the configuration names. */
  readonly configured: StorePlace
  /** Rejects where there is none. */
  readonly adminKey: () => string
  readonly onProgress: OnProgress
}

/** Executes a command; resolves with the text to print. */
export async function runStoreCommand(command: StoreCommand, settings: StoreSettings): Promise<string> {
  const startedAtMs = performance.now()
  const { what, sums, from } = await run(command, settings)
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
  return `${table(sums)}${what} in ${seconds} s.\n${await unstoredNote(from)}`
}

interface Done {
  readonly what: string
  readonly sums: Sums
  readonly from?: StorePlace
}

async function run(command: StoreCommand, settings: StoreSettings): Promise<Done> {
  const { configured, onProgress } = settings
  switch (command.name) {
    case 'copy': {
      const { from = configured, to = configured, isRestart } = command
      if (await areSame(from, to)) throw new StoreUnusable('--from and --to name the same store.')
      const sums = await withSource(from, (queries) =>
        withSnapshot(queries, nameOf(from), (source) => filled(source, to, isRestart, onProgress)),
      )
      return { what: `Copied to ${nameOf(to)}, and read back,`, sums, from }
    }
    case 'backup': {
      const { from = configured, url, file } = command
      const sums =
        url === undefined
          ? await backUp(from, nameOf(from), file, onProgress).catch(explained)
          : await backUpRunning(url, file, settings)
      return { what: `Backed up to ${file}`, sums, ...(url === undefined ? { from } : {}) }
    }
    case 'restore': {
      const { file, to = configured, isRestart } = command
      const sums = await filled(await readBackup(file, onProgress), to, isRestart, onProgress)
      return { what: `Restored to ${nameOf(to)}, and read back,`, sums }
    }
  }
}

const filled = (source: RowSource, to: StorePlace, isRestart: boolean, onProgress: OnProgress): Promise<Sums> =>
  withTarget(to, (queries) => fillStore(source, { ...to, name: nameOf(to), queries }, isRestart, onProgress))

const backUp = (from: StorePlace, name: string, file: string, onProgress: OnProgress): Promise<Sums> =>
  withSource(from, (queries) => withSnapshot(queries, name, (source) => writeBackup(source, file, onProgress)))

/** The files of the running store, as one moment left them, are opened beside the backup: what cannot be opened is no backup. */
async function backUpRunning(url: string, file: string, { adminKey, onProgress }: StoreSettings): Promise<Sums> {
  const directory = await mkdtemp(`${resolve(file)}.files-`)
  try {
    await downloadSnapshot(url, adminKey(), join(directory, 'postgres'))
    return await backUp({ directory }, `the gateway at ${url}`, file, onProgress)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** An embedded store is open in one process only. */
function explained(error: unknown): never {
  if (error instanceof StoreUnusable && error.message.includes(' is in use by ')) {
    throw new StoreUnusable(
      `${error.message}\nOr ask the gateway that runs, by its admin key: ` +
        'GATEWAY_ADMIN_KEY=… npm run store -- backup --to <file> --url http://127.0.0.1:8080',
    )
  }
  throw error
}

function table(sums: Sums): string {
  const rows = Object.entries(sums).map(([name, sum]) => [name, String(sum.rows), sum.checksum])
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map(
      ([name = '', count = '', sum = '']) =>
        `${name.padEnd(widths[0] ?? 0)}  ${count.padStart(widths[1] ?? 0)}  ${sum}\n`,
    )
    .join('')
}

async function unstoredNote(from: StorePlace | undefined): Promise<string> {
  if (from === undefined || !('directory' in from)) return ''
  const files = await unstoredUsage(from.directory)
  if (files === 0) return ''
  const folder = join(from.directory, 'unstored-usage')
  return `Usage that no store has taken yet is left in ${folder}: the next gateway with GATEWAY_DATA=${from.directory} stores it.\n`
}
