import { readFile } from 'node:fs/promises'
import { until } from './daemon.js'

/** The processes that this one started and that live, oldest first. */
export async function childrenOf(pid: number | undefined): Promise<readonly number[]> {
  const text = await readFile(`/proc/${String(pid)}/task/${String(pid)}/children`, 'utf8').catch(() => '')
  return text.split(' ').filter(Boolean).map(Number)
}

/** Resolves when no process has that number any more. */
export async function gone(pid: number): Promise<void> {
  await until(
    () => Promise.resolve(isAlive(pid) ? undefined : true),
    () => `process ${pid} still lives`,
  )
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
