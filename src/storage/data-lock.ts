import { execFile } from 'node:child_process'
import { hash, randomUUID } from 'node:crypto'
import { readFile, readlink, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { hasCode } from '../core/errors.js'
import { StoreUnusable } from './database.js'

/** Group and others. */
export const OTHER_USERS = 0o077

/** Makes the files of this process, and of its threads, this user's alone: tasks, keys and usage are in them. */
export function keepFilesPrivate(): void {
  process.umask(OTHER_USERS)
}

const run = promisify(execFile)

/** Where in `/proc/<pid>/stat`, after the name in brackets, the start time stands (proc(5): field 22). */
const START_TIME_FIELD = 22 - 3

/**
 * Within which process numbers mean the same: this boot of this machine, and on Linux this container. Processes of another
 * space cannot be looked up.
 */
export async function processSpace(): Promise<string> {
  const parts = await Promise.all([
    readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => ''),
    readlink('/proc/self/ns/pid').catch(() => ''),
  ])
  return [hostname(), ...parts.map((part) => part.trim())].join(' ')
}

/**
 * When the process with this number began, in the system's own words; undefined when there is none. Tells reused numbers
 * apart.
 */
export async function processStart(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  if (stat !== undefined) {
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A zombie, or one that is dead: it does nothing any more, but waits for its parent.
    return /^[ZXx]$/.test(fields[0] ?? '') ? undefined : fields[START_TIME_FIELD]
  }
  if (process.platform === 'linux') return undefined
  const { stdout } = await run('ps', ['-o', 'lstart=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  return stdout.trim() || undefined
}

const FILE = 'OWNER'
const SIGN_OF_LIFE_MS = 2_000
/** Without a sign of life for so long, an owner that cannot be looked up is taken for dead. */
const SILENCE_MS = 10_000
const CHECK_MS = 250
/** As long as another process may need to remove a dead owner. */
const SETTLE_MS = 50

interface Owner {
  readonly pid: number
  readonly startedAt: string | undefined
  readonly space: string
}

export interface DirectoryLock {
  release(): Promise<void>
}

/**
 * Makes this process the only one to use a directory, by the file OWNER in it. What a killed process left behind is
 * recognised by its number and start time; an owner in another container, by its missing signs of life. Rejects with
 * `StoreUnusable` when another process is the owner, naming it.
 */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const file = join(directory, FILE)
  const space = await processSpace()
  const text = JSON.stringify({ pid: process.pid, startedAt: await processStart(process.pid), space, id: randomUUID() })
  while (!(await create(file, text))) {
    const found = await read(file)
    if (found === undefined) continue
    const owner = parse(found)
    if (await isAlive(file, owner, space)) throw refusal(directory, owner)
    await removeDead(file, found)
  }
  const signs = setInterval(() => {
    const now = new Date()
    // Missing signs are harmless while the process can be looked up, and the file is gone once the lock is released.
    utimes(file, now, now).catch(() => undefined)
  }, SIGN_OF_LIFE_MS)
  signs.unref()
  return {
    release: async () => {
      clearInterval(signs)
      if ((await read(file).catch(() => undefined)) === text) await rm(file, { force: true })
    },
  }
}

async function create(file: string, text: string): Promise<boolean> {
  try {
    await writeFile(file, text, { flag: 'wx' })
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  }
  return true
}

/** undefined when there is no such file; any other failure would be met again and again. */
async function read(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/** undefined for a file that is being written, or is not ours. */
function parse(text: string): Owner | undefined {
  try {
    return JSON.parse(text) as Owner
  } catch {
    return undefined
  }
}

async function isAlive(file: string, owner: Owner | undefined, space: string): Promise<boolean> {
  if (owner?.space === space && owner.startedAt !== undefined) {
    return (await processStart(owner.pid)) === owner.startedAt
  }
  const before = await lastSign(file)
  while (Date.now() - before < SILENCE_MS) {
    await pause(CHECK_MS)
    if ((await lastSign(file)) > before) return true
  }
  return false
}

const lastSign = (file: string): Promise<number> =>
  stat(file).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  )

/**
 * Removes the file of a dead owner. Only who made the mark of that very owner may, and looks once more, so that a file that
 * another process has put there in the meantime is never touched.
 */
async function removeDead(file: string, dead: string): Promise<void> {
  const mark = `${file}.dead-${hash('sha256', dead).slice(0, 16)}`
  if (!(await create(mark, ''))) {
    await pause(SETTLE_MS)
    const madeAt = await lastSign(mark)
    // The process that made it was killed before it could go on.
    if (madeAt !== 0 && Date.now() - madeAt > SILENCE_MS) await rm(mark, { force: true })
    return
  }
  try {
    if ((await read(file)) === dead) await rm(file, { force: true })
  } finally {
    await rm(mark, { force: true })
  }
}

function refusal(directory: string, owner: Owner | undefined): StoreUnusable {
  const who = owner === undefined ? 'another process' : `process ${owner.pid}`
  return new StoreUnusable(
    `The store in ${directory} is in use by ${who}, which is running. One process at a time can use an embedded store: ` +
      'stop the other one, name another directory with GATEWAY_DATA, or let both share a PostgreSQL named by DATABASE_URL.',
  )
}
