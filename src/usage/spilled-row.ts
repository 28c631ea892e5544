import { createReadStream } from 'node:fs'
import { UNITS } from '../core/unit-names.js'
import { PRICINGS, USAGE_KINDS, USAGE_OUTCOMES, type UsageRecord } from '../core/usage-record.js'
import type { SpillFolder } from './disk-buffer.js'

/** One row of a spill file: JSON, and the end of its line. */
export const spilledRow = (record: UsageRecord): string => `${JSON.stringify(record)}\n`

/** How many of the records, from the first, are in a file now; and why no more are, where the file system says so. */
export function appended(
  folder: SpillFolder,
  records: readonly UsageRecord[],
): { readonly written: number; readonly error?: unknown } {
  try {
    return { written: folder.append(records.map(spilledRow)) }
  } catch (error) {
    return { written: 0, error }
  }
}

/** Far longer than any row; a file that was damaged may have no line breaks left. */
const LONGEST_LINE = 1_048_576

/** A file's lines, one by one; of one that is far too long, its end. Throws what the file system says. */
export async function* linesOf(file: string): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of createReadStream(file, 'utf8') as AsyncIterable<string>) {
    const lines = `${rest}${chunk}`.split('\n')
    rest = lines.pop() ?? ''
    yield* lines
    if (rest.length > LONGEST_LINE) rest = rest.slice(-1)
  }
  yield rest
}

/** The record of a line; undefined for what a process that died, or a disk, has left of one. */
export function recordOfRow(line: string): UsageRecord | undefined {
  try {
    const fields = JSON.parse(line) as Readonly<Record<string, unknown>> | null
    return fields !== null && isRecord(fields) ? fields : undefined
  } catch {
    return undefined
  }
}

type Check = (value: unknown) => boolean

const text: Check = (value) => typeof value === 'string'
const count: Check = (value) => typeof value === 'number' && Number.isFinite(value)
const nullOr =
  (check: Check): Check =>
  (value) =>
    value === null || check(value)
const oneOf =
  (words: readonly unknown[]): Check =>
  (value) =>
    words.includes(value)

const units: Check = (value) =>
  typeof value === 'object' &&
  value !== null &&
  Object.entries(value).every(([name, quantity]) => (UNITS as readonly string[]).includes(name) && count(quantity))

const CHECKS: Readonly<Record<keyof UsageRecord, Check>> = {
  id: text,
  atMs: count,
  requestId: nullOr(text),
  keyId: text,
  ownerId: text,
  kind: oneOf(USAGE_KINDS),
  route: text,
  model: nullOr(text),
  channelId: nullOr(text),
  outcome: oneOf(USAGE_OUTCOMES),
  durationMs: nullOr(count),
  units,
  reported: nullOr(text),
  estimated: nullOr(text),
  pricing: oneOf(PRICINGS),
  cost: nullOr(text),
}

const isRecord = (
  fields: Readonly<Record<string, unknown>>,
): fields is Readonly<Record<string, unknown>> & UsageRecord =>
  Object.entries(CHECKS).every(([name, check]) => check(fields[name]))
