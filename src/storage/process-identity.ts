import { execFile } from 'node:child_process'
import { readFile, readlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { promisify } from 'node:util'

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

/** When the process with this number began, in the system's own words; undefined when there is none. Tells reused numbers apart. */
export async function processStart(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  if (stat !== undefined) return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[START_TIME_FIELD]
  if (process.platform === 'linux') return undefined
  const { stdout } = await run('ps', ['-o', 'lstart=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  return stdout.trim() || undefined
}
