import { cp, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogging } from '../../src/observability/logger.js'
import { Readiness } from '../../src/observability/readiness.js'
import { createDatabase } from '../../src/storage/create-database.js'
import type { StoreDatabase } from '../../src/storage/reconnecting-database.js'

const { dependencies } = createRequire(import.meta.url)('../../package.json') as {
  dependencies: Readonly<Record<string, string>>
}
/** Files of another version may not fit. */
const TEMPLATE = `gateway-data-template-${String(dependencies['@electric-sql/pglite'])}-${String(process.getuid?.())}`

/** Making an embedded store, or a PostgreSQL, on a machine that is busy with other suites. */
export const STORE_START_MS = 120_000

/** A store for a test, and everything that shows how it is. */
export interface TestStore {
  readonly database: StoreDatabase
  readonly readiness: Readiness
  /** The lines of its log, parsed. */
  readonly log: () => readonly Record<string, unknown>[]
  close(): Promise<void>
}

/** Nothing is opened yet. `url` names a PostgreSQL, otherwise the store lies in `directory`. */
export function testStore(
  at: { readonly url: string } | { readonly directory: string },
  maxConnections = 10,
): TestStore {
  const lines: string[] = []
  const { logger } = createLogging('info', { write: (line) => lines.push(line) })
  const readiness = new Readiness()
  readiness.announceReady()
  const section = 'url' in at ? { url: at.url, maxConnections } : { maxConnections }
  const database = createDatabase(section, 'directory' in at ? at.directory : '', readiness, logger)
  return {
    database,
    readiness,
    log: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
    close: () => database.onApplicationShutdown(),
  }
}

/** Deletes every row; what refers to a task goes with it. */
export async function emptyStore({ database }: TestStore): Promise<void> {
  await database.run((queries) => queries.deleteFrom('task').execute())
  await database.run((queries) => queries.deleteFrom('usage_record').execute())
  await database.run((queries) => queries.deleteFrom('usage_hour').execute())
}

/** A new, empty directory. */
export const emptyDataDirectory = (): Promise<string> => mkdtemp(join(tmpdir(), 'gateway-data-'))

/**
 * A directory with an empty embedded store in it: a copy of one that is made once per machine, because making one takes
 * seconds. To be removed by whoever asked for it. See `nameDataDirectory`.
 */
export async function dataDirectory(): Promise<string> {
  const template = join(tmpdir(), TEMPLATE)
  const directory = await emptyDataDirectory()
  if ((await readdir(template).catch(() => [])).length === 0) await makeTemplate(template)
  await cp(template, directory, { recursive: true })
  return directory
}

/** Where gateways that this process starts from now on have their embedded store; undefined = as operators have it. */
export function nameDataDirectory(directory: string | undefined): void {
  if (directory === undefined) delete process.env['GATEWAY_DATA']
  else process.env['GATEWAY_DATA'] = directory
}

async function makeTemplate(template: string): Promise<void> {
  const directory = await emptyDataDirectory()
  const store = testStore({ directory })
  await store.database.open()
  await store.close()
  // Another suite may have been faster; its template is as good.
  await rename(directory, template).catch(() => rm(directory, { recursive: true }))
}
