import { closeSync, openSync, readSync } from 'node:fs'
import { isMap } from './config-fault.js'

/** Environment variables as Node gives them: text or nothing. */
export type Variables = Readonly<Record<string, string | undefined>>

/** What a variable comes to. At most one is given; neither when the variable is not set. */
export interface Reading {
  readonly value?: string
  /** What is wrong, by the names of variables; never a path or a value. */
  readonly problem?: string
}

/** Whatever is longer is no secret. */
const MAXIMUM_BYTES = 65_536

/**
 * The value of the variable `name`, or the content of the file that the variable `<name>_FILE` names, without the line end
 * that editors put there: so containers are handed secrets. An empty variable counts as not set. Never throws.
 */
export function readVariable(env: Variables, name: string): Reading {
  const value = valueOf(env, name)
  const file = valueOf(env, `${name}_FILE`)
  if (file === undefined) return value === undefined ? {} : { value }
  if (value !== undefined) return { problem: `${name} and ${name}_FILE are both set; leave one of them out` }
  return readSecret(file, `the file that ${name}_FILE names`)
}

function valueOf(env: Variables, name: string): string | undefined {
  const value = env[name]
  return value === '' ? undefined : value
}

function readSecret(path: string, what: string): Reading {
  try {
    const bytes = readAtMost(path, MAXIMUM_BYTES + 1)
    if (bytes.length > MAXIMUM_BYTES) return { problem: `${what} is larger than ${MAXIMUM_BYTES} bytes` }
    const value = new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '')
    return value === '' ? { problem: `${what} is empty` } : { value }
  } catch (error) {
    return { problem: `${what} ${complaint(error)}` }
  }
}

/** Stops at `limit` bytes, as a device may never end. */
function readAtMost(path: string, limit: number): Buffer {
  const descriptor = openSync(path, 'r')
  try {
    const buffer = Buffer.alloc(limit)
    let length = 0
    for (;;) {
      const read = readSync(descriptor, buffer, length, limit - length, null)
      length += read
      if (read === 0 || length === limit) return buffer.subarray(0, length)
    }
  } finally {
    closeSync(descriptor)
  }
}

function complaint(error: unknown): string {
  const code = isMap(error) && typeof error['code'] === 'string' ? error['code'] : 'unknown'
  if (code === 'ENOENT') return 'does not exist'
  return code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'must be UTF-8 text' : `cannot be read (${code})`
}
