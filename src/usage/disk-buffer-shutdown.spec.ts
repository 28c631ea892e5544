import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { idsOf, records, spilledIds, spillPlace } from '../../test/support/usage-writer-lab.js'
import type { LogLevel } from '../config/settings.js'
import type { UsageRecord } from '../core/usage-record.js'
import { createLogging } from '../observability/logger.js'
import { Metrics } from '../observability/metrics.js'
import { SpillFolder } from './disk-buffer.js'
import { UsageLeftovers } from './usage-leftovers.js'
import { UsageMetrics } from './usage-metrics.js'

interface Line {
  readonly level: number
  readonly msg: string
  readonly rows?: number
  readonly folder?: string
  readonly err?: { readonly message: string }
  readonly reason?: string
  readonly record?: UsageRecord
}

const MANY = 20_000

let place: string
let errorFile: string
let descriptor: number
let metrics: Metrics
let logged: Line[]

beforeEach(async () => {
  place = await spillPlace()
  errorFile = join(place, 'standard-error')
  descriptor = openSync(errorFile, 'a')
  metrics = new Metrics()
  logged = []
})
afterEach(async () => {
  closeSync(descriptor)
  await rm(place, { recursive: true })
})

/** With a log that tells nothing, unless a level is named. */
function leftovers(folder: SpillFolder, level: LogLevel = 'silent'): UsageLeftovers {
  const { logger } = createLogging(level, { write: (line) => logged.push(JSON.parse(line) as Line) })
  return new UsageLeftovers(folder, new UsageMetrics(metrics), logger, descriptor)
}

async function told(): Promise<readonly Line[]> {
  const lines = (await readFile(errorFile, 'utf8')).split('\n').filter((line) => line !== '')
  return lines.map((line) => JSON.parse(line) as Line)
}

const FORGOTTEN = 'usage that nobody has asked to store is forgotten: no file takes it'

/** Nobody is told of single records, and none counts. */
async function isNoLoss(): Promise<void> {
  expect(await told()).toEqual([])
  expect(await metrics.registry.metrics()).not.toMatch(/^gateway_usage_dropped_total\{/m)
}

const idsTold = (lines: readonly Line[]): string[] => lines.map(({ record }) => record?.id ?? '')

describe('Usage that the store did not take before the end', () => {
  it('is in a file, and nowhere else', async () => {
    const folder = new SpillFolder(join(place, 'rows'))
    const many = records(MANY)
    const kept = leftovers(folder)
    kept.keep(many)
    kept.keep([])
    expect(await spilledIds(folder.path)).toEqual(idsOf(many))
    expect(await told()).toEqual([])
    expect(await metrics.registry.metrics()).not.toMatch(/^gateway_usage_dropped_total\{/m)
  })

  it('is on standard error where no file can be written, all of it, whatever the log tells', async () => {
    await writeFile(join(place, 'rows'), '')
    const many = records(MANY)
    leftovers(new SpillFolder(join(place, 'rows', 'deeper'))).keep(many)
    const [head, ...lines] = await told()
    expect(head).toMatchObject({ level: 50, rows: MANY, err: { message: expect.stringContaining('ENOTDIR') } })
    expect(head?.msg).toBe('usage can neither be stored nor kept in a file: its records follow, one in a line')
    expect(idsTold(lines)).toEqual(idsOf(many))
    expect(lines[0]).toEqual({ ...lines[0], level: 50, reason: 'shutdown', msg: 'usage', record: many[0] })
    expect(await metrics.registry.metrics()).toMatch(
      new RegExp(`^gateway_usage_dropped_total\\{reason="shutdown"\\} ${MANY}$`, 'm'),
    )
  })

  it('is in a file as far as there is room, and on standard error from there', async () => {
    const many = records(10)
    const bytes = many.slice(0, 4).reduce((sum, record) => sum + JSON.stringify(record).length + 1, 0)
    const folder = new SpillFolder(join(place, 'rows'), bytes)
    leftovers(folder).keep(many)
    expect(await spilledIds(folder.path)).toEqual(idsOf(many.slice(0, 4)))
    const [head, ...lines] = await told()
    expect(head).toMatchObject({ rows: 6 })
    expect(idsTold(lines)).toEqual(idsOf(many.slice(4)))
  })

  it('is forgotten where nobody had asked for it and no file can be written: one line says how much, and why', async () => {
    await writeFile(join(place, 'rows'), '')
    const folder = new SpillFolder(join(place, 'rows', 'deeper'))
    expect(leftovers(folder, 'trace').keepUnasked(records(1000), 1000)).toBe(0)
    const why = { message: expect.stringContaining('ENOTDIR') }
    expect(logged).toMatchObject([{ level: 40, msg: FORGOTTEN, rows: 1000, folder: folder.path, err: why }])
    expect(JSON.stringify(logged)).not.toContain('"record"')
    await isNoLoss()
  })

  it('is forgotten as far as there is no room, where nobody had asked for it: one line says how much, and why', async () => {
    const many = records(10)
    const bytes = many.slice(0, 4).reduce((sum, record) => sum + JSON.stringify(record).length + 1, 0)
    const folder = new SpillFolder(join(place, 'rows'), bytes)
    expect(leftovers(folder, 'warn').keepUnasked(many, 1000)).toBe(0)
    expect(await spilledIds(folder.path)).toEqual(idsOf(many.slice(0, 4)))
    const why = { message: 'the files there are as large as they may be' }
    expect(logged).toMatchObject([{ level: 40, msg: FORGOTTEN, rows: 6, folder: folder.path, err: why }])
    await isNoLoss()
  })

  it('is told how much of it is forgotten, which counts as no loss', async () => {
    const folder = new SpillFolder(join(place, 'rows'))
    const kept = leftovers(folder)
    const many = records(10)
    expect(kept.keepUnasked(many.slice(0, 6), 7)).toBe(0)
    expect(kept.keepUnasked(many.slice(6), 7)).toBe(3)
    expect(kept.keepUnasked([], 7)).toBe(0)
    expect(await spilledIds(folder.path)).toEqual(idsOf(many.slice(3)))
    await isNoLoss()
  })

  it('waits for a reader that is slow, and not for one that is gone', async () => {
    await writeFile(join(place, 'rows'), '')
    const folder = new SpillFolder(join(place, 'rows', 'deeper'))
    const reader = spawn('sh', ['-c', 'sleep 0.3; wc -l'], { stdio: ['pipe', 'pipe', 'inherit'] })
    const pipe = (reader.stdin as unknown as { readonly _handle: { readonly fd: number } })._handle.fd
    const { logger } = createLogging('silent', { write: () => undefined })
    const many = records(2000)
    new UsageLeftovers(folder, new UsageMetrics(metrics), logger, pipe).keep(many)
    reader.stdin.end()
    const [counted] = (await once(reader.stdout, 'data')) as [Buffer]
    expect(Number(counted.toString())).toBe(many.length + 1)
    // A descriptor that nobody has.
    new UsageLeftovers(folder, new UsageMetrics(new Metrics()), logger, 9999).keep(many)
  })
})
