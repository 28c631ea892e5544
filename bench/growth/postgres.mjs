import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { freePort } from '../processes.mjs'

/** Where Debian has a folder for every version. */
const DEBIAN = '/usr/lib/postgresql'
/** PostgreSQL refuses to run as root: then it runs as the user `nobody`. */
const UNPRIVILEGED_USER = 65534
const READY_LIMIT_MS = 30_000
const MICROSECONDS_PER_TICK = 10_000

/** The folder with the programs of the newest server; undefined where none is installed. */
function programsOf(root = DEBIAN) {
  const versions = existsSync(root) ? readdirSync(root).sort((one, other) => Number(other) - Number(one)) : []
  return versions
    .map((version) => join(root, version, 'bin'))
    .find((folder) => ['initdb', 'postgres'].every((program) => existsSync(join(folder, program))))
}

export const isPostgresInstalled = () => programsOf() !== undefined

/** The fields of /proc/<pid>/stat behind the name; undefined for a process that has ended. */
function statOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}

/** User and system time of a server and the processes it has for its connections, in microseconds. */
function cpuOfServer(pid) {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  let ticks = 0
  for (const one of all) {
    const fields = statOf(one)
    if (fields === undefined || (Number(one) !== pid && Number(fields[1]) !== pid)) continue
    ticks += Number(fields[11]) + Number(fields[12])
    // Processes of the server that have ended count with it.
    if (Number(one) === pid) ticks += Number(fields[13]) + Number(fields[14])
  }
  return ticks * MICROSECONDS_PER_TICK
}

async function untilReady(url) {
  const deadline = performance.now() + READY_LIMIT_MS
  for (;;) {
    const client = new pg.Client({ connectionString: url })
    try {
      await client.connect()
      return await client.end()
    } catch (error) {
      if (performance.now() > deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

/** A PostgreSQL of its own with its defaults, synchronous commits included; gone when the run ends. */
export async function startPostgres() {
  const programs = programsOf()
  const directory = mkdtempSync(join(tmpdir(), 'gateway-bench-postgres-'))
  const user = process.getuid?.() === 0 ? { uid: UNPRIVILEGED_USER, gid: UNPRIVILEGED_USER } : {}
  chmodSync(directory, 0o700)
  if (user.uid !== undefined) chownSync(directory, user.uid, user.gid)
  const data = join(directory, 'data')
  const initial = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-instructions']
  execFileSync(join(programs, 'initdb'), initial, { ...user, cwd: directory, stdio: 'ignore' })
  const port = await freePort()
  const settings = ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=']
  const server = spawn(join(programs, 'postgres'), ['-D', data, '-p', String(port), ...settings], {
    ...user,
    cwd: directory,
    stdio: 'ignore',
  })
  const exited = new Promise((resolve) => server.on('exit', resolve).on('error', resolve))
  // Its immediate shutdown, which takes its children along.
  const end = () => server.kill('SIGQUIT')
  const remove = () => rmSync(directory, { recursive: true, force: true })
  const endNow = () => {
    end()
    remove()
  }
  process.once('exit', endNow)
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  await untilReady(url)
  return {
    url,
    cpuMicroseconds: () => cpuOfServer(server.pid),
    stop: async () => {
      end()
      await exited
      process.off('exit', endNow)
      remove()
    },
  }
}
