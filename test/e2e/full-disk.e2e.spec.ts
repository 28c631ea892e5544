import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from '@jest/globals'
import { sql } from 'kysely'
import { Metrics } from '../../src/observability/metrics.js'
import { Readiness } from '../../src/observability/readiness.js'
import { writeBackup } from '../../src/storage/backup-file.js'
import { Database } from '../../src/storage/database.js'
import { shortenLog } from '../../src/storage/embedded.js'
import { withSnapshot } from '../../src/storage/store-copy.js'
import { withSource } from '../../src/storage/store-place.js'
import { eventually } from '../support/eventually.js'
import { dataDirectory, testStore } from '../support/stores.js'
import { startVidgenGateway } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'

const DISK_MIB = 160

/** A disk of its own, of memory; undefined where this user may not mount one. */
function mountDisk(): string | undefined {
  const path = mkdtempSync(join(tmpdir(), 'gateway-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', path], { stdio: 'ignore' })
    return path
  } catch {
    rmSync(path, { recursive: true })
    return undefined
  }
}

const disk = mountDisk()
const onDisk = disk === undefined ? it.skip : it
const NOT_RUN = disk === undefined ? ' (NOT RUN: this user may mount no disk)' : ''

const freeBytes = (): number => {
  const { bavail, bsize } = statfsSync(disk ?? '/')
  return bavail * bsize
}

/** The store may take some of it first. */
const takeAllRoom = (path: string): Promise<void> => writeFile(path, Buffer.alloc(freeBytes())).catch(() => undefined)

describe('a gateway whose disk is full', () => {
  afterAll(() => {
    if (disk === undefined) return
    execFileSync('umount', ['-l', disk])
    rmSync(disk, { recursive: true })
  })

  onDisk(
    `says so, refuses creates before the upstream hears of them, and goes on with all it had once there is room${NOT_RUN}`,
    async () => {
      const directory = join(disk ?? '', 'data')
      execFileSync('cp', ['-R', await dataDirectory(), directory])
      const lab = await startVidgenGateway({ dataDirectory: directory })
      const { gateway, simulator } = lab
      const caller = new VideoCaller(gateway)
      const readiness = gateway.application.get(Readiness)
      const metrics = gateway.application.get(Metrics)
      const shownBytes = async (): Promise<number> =>
        Number(/^gateway_data_free_bytes (\d+)$/m.exec(await metrics.collectText())?.[1])
      try {
        const ballast = join(disk ?? '', 'ballast')
        const id = await caller.created()
        expect(await shownBytes()).toBeGreaterThan(33_554_432)
        const database = gateway.application.get(Database)
        await database.run((queries) => sql`create table kept (n int, filler text)`.execute(queries))
        await takeAllRoom(ballast)
        // Until PostgreSQL gets no more room, or the gateway has seen that it will not.
        let kept = 0
        await eventually(async () => {
          const insert = database.run((queries) =>
            sql`insert into kept select ${kept + 1}, string_agg(md5(n::text), '') from generate_series(1, 20000) n`.execute(
              queries,
            ),
          )
          await insert.then(
            () => (kept += 1),
            () => undefined,
          )
          return readiness.status === 'disk_full'
        })
        expect(gateway.logText()).toContain('the disk of the store is full')
        const asked = simulator.requests.length
        const refused = await caller.create()
        expect([refused.status, simulator.requests.length]).toEqual([503, asked])
        expect(await shownBytes()).toBeLessThan(33_554_432)
        expect(readiness.isReady).toBe(false)
        await takeAllRoom(join(disk ?? '', 'more-ballast'))
        const backup = join(disk ?? '', 'store.backup')
        const written = withSource({ directory: await dataDirectory() }, (queries) =>
          withSnapshot(queries, 'a store', (source) => writeBackup(source, backup, () => undefined)),
        )
        await expect(written).rejects.toThrow(`The disk of ${backup} is full`)
        expect((await readdir(disk ?? '')).filter((name) => name.startsWith('store.'))).toEqual([])
        await rm(join(disk ?? '', 'more-ballast'))
        await rm(ballast)
        await eventually(() => readiness.isReady)
        const { rows } = await database.run((queries) =>
          sql<{ kept: number }>`select count(*) as kept from kept`.execute(queries),
        )
        expect(rows[0]?.kept).toBeGreaterThanOrEqual(kept)
        expect((await caller.read(id)).status).toBe(200)
        expect((await caller.create()).status).toBe(200)
      } finally {
        await lab.close()
      }
    },
  )
})

describe('the log of the embedded store', () => {
  it('stays about as long as the store is large', async () => {
    const directory = await dataDirectory()
    const store = testStore({ directory })
    const { database } = store
    await database.run((queries) => sql`create table bulk (n int, filler text)`.execute(queries))
    const write = (): Promise<unknown> =>
      database.run((queries) =>
        sql`insert into bulk select n, repeat(md5(n::text), 20) from generate_series(1, 20000) n`.execute(queries),
      )
    const logMiB = async (): Promise<number> => {
      const { rows } = await database.run((queries) =>
        sql<{ size: string }>`select sum(size) / 1048576 as size from pg_ls_waldir()`.execute(queries),
      )
      return Number(rows[0]?.size)
    }
    for (let time = 0; time < 12; time += 1) {
      await write()
      await database.run(shortenLog)
      await database.run((queries) => sql`truncate bulk`.execute(queries))
    }
    expect(await logMiB()).toBeLessThanOrEqual(96)
    await store.close()
    await rm(directory, { recursive: true })
  })
})
