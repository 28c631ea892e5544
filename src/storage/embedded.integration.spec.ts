import { spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  utimes,
  writeFile,
  symlink,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { sql } from 'kysely'
import pg from 'pg'
import { eventually } from '../../test/support/eventually.js'
import { dataDirectory, emptyDataDirectory, type TestStore, testStore } from '../../test/support/stores.js'
import { someSubmitted, someTask, START_MS } from '../../test/support/task-rows.js'
import { GatewayError } from '../core/errors.js'
import { KyselyCallbackRepository } from '../tasks/callback.pg.js'
import { KyselyTaskRepository } from '../tasks/task.pg.js'
import { lockDirectory, processSpace, processStart } from './data-lock.js'
import { StoreUnusable } from './database.js'
import { ensureStore } from './embedded-files.js'
import { PostgresWorker } from './embedded-worker.js'
import { repeat, tidy } from './embedded.js'

describe('embedded', () => {
  let directory: string
  const stores: TestStore[] = []

  /** A store in the directory, closed after the test. */
  function store(): TestStore {
    const opened = testStore({ directory })
    stores.push(opened)
    return opened
  }

  const one = async ({ database }: TestStore): Promise<unknown> =>
    database.run(async (queries) => (await sql`select 1 as one`.execute(queries)).rows)

  beforeAll(async () => {
    directory = await dataDirectory()
  })

  afterEach(async () => {
    jest.restoreAllMocks()
    for (const opened of stores.splice(0)) await opened.close()
  })

  afterAll(() => rm(directory, { recursive: true }))

  describe('the embedded store', () => {
    it('is opened by the first who needs it, says so once, and is closed without a trace of its owner', async () => {
      const opened = store()
      const told = jest.fn()
      opened.database.whenOpen(told)
      expect(opened.log()).toEqual([])
      expect(await Promise.all([one(opened), one(opened)])).toEqual([[{ one: 1 }], [{ one: 1 }]])
      expect(opened.log()).toMatchObject([{ msg: `opening the store in ${directory}` }])
      expect(told).toHaveBeenCalledTimes(1)
      opened.database.whenOpen(told)
      expect(told).toHaveBeenCalledTimes(2)
      await opened.close()
      expect(existsSync(join(directory, 'OWNER'))).toBe(false)
      await expect(one(opened)).rejects.toMatchObject({ kind: 'overloaded' })
    })

    it('writes through to the disk, and reads counts and times as numbers', async () => {
      const settings = await store().database.run((queries) =>
        sql`select current_setting('fsync') as fsync, current_setting('wal_sync_method') as method,
        current_setting('synchronous_commit') as commit, 1800000000000::bigint as time`.execute(queries),
      )
      expect(settings.rows).toEqual([{ fsync: 'on', method: 'fsync', commit: 'on', time: 1_800_000_000_000 }])
    })

    it('is refused to a second one until the first has closed it', async () => {
      const first = store()
      await first.database.open()
      const second = store()
      await expect(second.database.open()).rejects.toThrow(StoreUnusable)
      await expect(one(second)).rejects.toThrow(GatewayError)
      expect(second.readiness).toMatchObject({ isReady: false, status: 'store_unreachable' })
      await first.close()
      expect(await one(second)).toEqual([{ one: 1 }])
      expect(second.readiness.isReady).toBe(true)
    })

    it('undoes a transaction that fails, and passes on what the statement did wrong', async () => {
      const { database } = store()
      const key = { owner_id: 'a', route: '/', key: 'k', fingerprint: 'f', task_id: 'none', expires_at_ms: 0 }
      const insert = database.transaction((queries) => queries.insertInto('idempotency_key').values(key).execute())
      await expect(insert).rejects.toMatchObject({ code: '23503' })
      const rows = await database.run((queries) => queries.selectFrom('idempotency_key').selectAll().execute())
      expect(rows).toEqual([])
    })

    it('is down when its thread dies, keeps what it had acknowledged, and is opened again by the next use', async () => {
      const start = jest.spyOn(PostgresWorker, 'start')
      const opened = store()
      await opened.database.open()
      await opened.database.run((queries) => sql`create table kept as select 7 as number`.execute(queries))
      const [result] = start.mock.results
      ;((await result?.value) as PostgresWorker | undefined)?.kill()
      await eventually(() => opened.readiness.status === 'store_unreachable')
      const kept = await opened.database.run((queries) => sql`select number from kept`.execute(queries))
      expect(kept.rows).toEqual([{ number: 7 }])
      expect(opened.readiness.isReady).toBe(true)
      await opened.database.run((queries) => sql`drop table kept`.execute(queries))
      expect(start).toHaveBeenCalledTimes(2)
    })

    it('fails the query under way when its thread dies, as overloaded', async () => {
      const start = jest.spyOn(PostgresWorker, 'start')
      const opened = store()
      await opened.database.open()
      const [result] = start.mock.results
      const worker = (await result?.value) as PostgresWorker
      const query = opened.database.run((queries) => sql`select pg_sleep(60)`.execute(queries))
      worker.kill()
      await expect(query).rejects.toMatchObject({ kind: 'overloaded' })
    })

    it('makes a new store where a killed process had left half of one', async () => {
      const whole = directory
      directory = await emptyDataDirectory()
      await mkdir(join(directory, 'postgres'))
      await writeFile(join(directory, 'postgres', 'PG_VERSION'), '18\n')
      await writeFile(join(directory, 'CREATING'), '')
      const opened = store()
      expect(await one(opened)).toEqual([{ one: 1 }])
      expect(existsSync(join(directory, 'CREATING'))).toBe(false)
      await opened.close()
      await rm(directory, { recursive: true })
      directory = whole
    })

    it('is made of files that are its user’s alone, whatever the process lets others read', async () => {
      const made = await emptyDataDirectory()
      const files = join(made, 'postgres')
      const mask = process.umask(0)
      await ensureStore(made, files).finally(() => process.umask(mask))
      const entries = await readdir(files, { recursive: true, withFileTypes: true })
      const modes = entries.map(async (entry) => {
        const { mode } = await stat(join(entry.parentPath, entry.name))
        return `${entry.isDirectory() ? 'folder' : 'file'} ${(mode & 0o777).toString(8)}`
      })
      expect([...new Set(await Promise.all(modes))].sort()).toEqual(['file 600', 'folder 700'])
      expect(await readdir(made)).toEqual(['postgres'])
      await rm(made, { recursive: true })
    })

    const DAMAGES: readonly (readonly [string, RegExp, (files: string) => Promise<unknown>])[] = [
      ['a file that says what it is', /PG_VERSION is missing/, (files) => rm(join(files, 'PG_VERSION'))],
      [
        'a file of this version',
        /it is of PostgreSQL 17, and this gateway's is 18/,
        (files) => writeFile(join(files, 'PG_VERSION'), '17\n'),
      ],
      ['its log', /damaged/, (files) => rm(join(files, 'pg_wal'), { recursive: true })],
      ['its control file', /damaged/, (files) => truncate(join(files, 'global', 'pg_control'))],
    ]

    it.each(DAMAGES)(
      'that lacks %s says what is wrong, what to do, and is left as it is',
      async (_what, words, damage) => {
        const whole = directory
        directory = await dataDirectory()
        const files = join(directory, 'postgres')
        await damage(files)
        const opened = store()
        const failure = await opened.database.open().catch((error: unknown) => error)
        expect(failure).toBeInstanceOf(StoreUnusable)
        const { message } = failure as StoreUnusable
        expect(message).toMatch(words)
        expect(message).toContain(`The store in ${directory} cannot be opened`)
        expect(message).toContain('Restore a backup')
        expect(existsSync(join(files, 'base'))).toBe(true)
        await opened.close()
        await rm(directory, { recursive: true })
        directory = whole
      },
    )

    it.each([
      { given: 0o777, set: 0o755 },
      { given: 0o770, set: 0o750 },
      { given: 0o1777, set: 0o1777 },
    ])('lets no other user at its files, nor write beside them (mode %j)', async ({ given, set }) => {
      const whole = directory
      directory = await dataDirectory()
      const files = join(directory, 'postgres')
      await chmod(directory, given)
      await chmod(files, 0o775)
      const opened = store()
      await opened.database.open()
      const modes = [directory, files].map(async (folder) => (await stat(folder)).mode & 0o7777)
      expect(await Promise.all(modes)).toEqual([set, 0o700])
      await opened.close()
      await rm(directory, { recursive: true })
      directory = whole
    })

    it('is refused where its files are a link, which is not followed', async () => {
      const elsewhere = await emptyDataDirectory()
      await chmod(elsewhere, 0o755)
      const made = await emptyDataDirectory()
      await symlink(elsewhere, join(made, 'postgres'))
      const opened = testStore({ directory: made })
      await expect(opened.database.open()).rejects.toThrow('postgres is not a folder')
      expect((await stat(elsewhere)).mode & 0o777).toBe(0o755)
      expect(await readdir(elsewhere)).toEqual([])
      await opened.close()
      for (const folder of [made, elsewhere]) await rm(folder, { recursive: true })
    })

    it('says which directory it is that cannot be written to', async () => {
      const file = join(directory, 'file')
      await writeFile(file, '')
      const opened = testStore({ directory: join(file, 'data') })
      await expect(opened.database.open()).rejects.toThrow(StoreUnusable)
      await expect(opened.database.open()).rejects.toThrow(`The store in ${join(file, 'data')} cannot be written to`)
      await opened.close()
    })
  })

  describe('the thread of the embedded store', () => {
    it('begins each connection without what the one before has left', async () => {
      const worker = await PostgresWorker.start(join(directory, 'postgres'))
      const connect = async () => {
        const client = new pg.Client({ stream: () => worker.connect(), user: 'postgres', database: 'postgres' })
        client.on('error', () => undefined)
        await client.connect()
        return client
      }
      const first = await connect()
      await first.query('begin; create table left_behind (n int); set search_path = nowhere')
      await first.end()
      const second = await connect()
      const { rows } = await second.query<object>(
        "select to_regclass('left_behind') as found, current_setting('search_path') as path",
      )
      expect(rows).toEqual([{ found: null, path: 'public' }])
      await second.end()
      await worker.close()
    })
  })
})

describe('Work that is repeated', () => {
  afterEach(() => {
    jest.useRealTimers()
  })

  it('leaves a round out while one is stuck, so that a store that closes waits for that one alone', async () => {
    jest.useFakeTimers()
    const ends: (() => void)[] = []
    const end = repeat(1_000, () => new Promise((resolve) => ends.push(resolve)))
    await jest.advanceTimersByTimeAsync(3_000)
    ends[0]?.()
    await jest.advanceTimersByTimeAsync(0)
    expect(ends).toHaveLength(1)
    await jest.advanceTimersByTimeAsync(2_000)
    expect(ends).toHaveLength(2)
    const closed = jest.fn()
    const closing = end().then(closed)
    await jest.advanceTimersByTimeAsync(5_000)
    expect(closed).not.toHaveBeenCalled()
    ends[1]?.()
    await closing
    expect(ends).toHaveLength(2)
  })

  it('goes on after a round that failed', async () => {
    jest.useFakeTimers()
    const work = jest.fn(() => Promise.reject(new Error('the store is gone')))
    const end = repeat(1_000, work)
    await jest.advanceTimersByTimeAsync(2_000)
    expect(work).toHaveBeenCalledTimes(2)
    await end()
  })
})

describe('tidy', () => {
  let directory: string
  let store: TestStore

  beforeAll(async () => {
    directory = await dataDirectory()
    store = testStore({ directory })
  })

  afterAll(async () => {
    await store.close()
    await rm(directory, { recursive: true })
  })

  const rows = async (statement: string): Promise<unknown[]> =>
    store.database.run(async (queries) => (await sql.raw(statement).execute(queries)).rows)

  /** As PostgreSQL counts them; it writes its counters down once a second unless asked. */
  async function statistics(): Promise<{ readonly dead: number; readonly vacuums: number }> {
    await rows('select pg_stat_force_next_flush()')
    const [row] = await rows(
      "select n_dead_tup as dead, vacuum_count as vacuums from pg_stat_user_tables where relname = 'idempotency_key'",
    )
    return row as { dead: number; vacuums: number }
  }

  it('removes the dead rows of a busy table, and tells the planner of it', async () => {
    await rows('alter table idempotency_key drop constraint idempotency_key_task_id_fkey')
    await rows(`insert into idempotency_key
      select 'owner', '/', 'key-' || n, 'f', 'task', null, null, 0 from generate_series(1, 1000) n`)
    for (let time = 1; time <= 3; time += 1) await rows(`update idempotency_key set expires_at_ms = ${time}`)
    expect((await statistics()).dead).toBeGreaterThan(1200)
    await store.database.run(tidy)
    expect(await statistics()).toEqual({ dead: 0, vacuums: 1 })
    const [known] = await rows("select reltuples::bigint as count from pg_class where relname = 'idempotency_key'")
    expect(known).toEqual({ count: 1000 })
  })

  it('leaves a table alone that has hardly changed', async () => {
    await rows("update idempotency_key set expires_at_ms = 0 where key like 'key-1_'")
    expect((await statistics()).dead).toBeGreaterThan(0)
    await store.database.run(tidy)
    expect((await statistics()).vacuums).toBe(1)
  })
})

describe('leases', () => {
  const CLAIM = {
    nowMs: START_MS + 10_000,
    lockedUntilMs: START_MS + 70_000,
    limit: 10,
    exceptChannels: [],
    exceptHosts: [],
    exceptOwners: [],
    exceptBearers: false,
  }

  let directory: string

  beforeAll(async () => {
    directory = await dataDirectory()
  })

  afterAll(() => rm(directory, { recursive: true }))

  it('What a process that is gone had leased is given out at once by the next one', async () => {
    const first = testStore({ directory })
    const tasks = new KyselyTaskRepository(first.database)
    const polled = await someSubmitted(tasks)
    const told = await someSubmitted(tasks, { callbackUrl: 'https://receiver.example/hook' })
    const ended = {
      from: ['submitted'],
      state: 'succeed',
      nextPollAtMs: 0,
      polls: 0,
      misses: 0,
      updatedAtMs: 1,
    } as const
    const event = { webhookId: 'msg_1', body: '{}', nextAttemptAtMs: START_MS }
    await tasks.change(told, { ...ended, deadlineAtMs: START_MS, event })
    expect(await new KyselyCallbackRepository(first.database).claimDue(CLAIM)).toHaveLength(1)
    expect(await tasks.claimDue(CLAIM)).toHaveLength(1)
    const created = someTask({ lockedUntilMs: START_MS + 600_000 })
    await tasks.recordIntent(created)
    expect(await tasks.claimDue(CLAIM)).toEqual([])
    await first.close()

    const second = testStore({ directory })
    const claimed = await new KyselyTaskRepository(second.database).claimDue(CLAIM)
    expect(claimed.map(({ id }) => id).sort()).toEqual([created.id, polled].sort())
    expect(await new KyselyCallbackRepository(second.database).claimDue(CLAIM)).toMatchObject([{ webhookId: 'msg_1' }])
    await second.close()
  })
})

describe('lockDirectory', () => {
  const LONG_AGO = new Date(Date.now() - 60_000)

  let directory: string
  let file: string

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gateway-lock-'))
    file = join(directory, 'OWNER')
  })

  afterEach(() => rm(directory, { recursive: true }))

  /** Leaves an owner behind, as a process that was killed does. */
  async function leave(owner: object, lastSign = new Date()): Promise<void> {
    await writeFile(file, JSON.stringify(owner))
    await utimes(file, lastSign, lastSign)
  }

  /** The number of a process that has ended. */
  async function endedProcess(): Promise<number> {
    const child = spawn(process.execPath, ['--version'], { stdio: 'ignore' })
    await once(child, 'exit')
    return Number(child.pid)
  }

  it('refuses a second owner, names the first and says what to do', async () => {
    const lock = await lockDirectory(directory)
    const second = lockDirectory(directory)
    await expect(second).rejects.toThrow(StoreUnusable)
    await expect(second).rejects.toThrow(directory)
    await expect(second).rejects.toThrow(`process ${process.pid}`)
    await expect(second).rejects.toThrow(/GATEWAY_DATA.*DATABASE_URL/)
    await lock.release()
  })

  it('fails at once when the name of its file is taken by something that cannot be read', async () => {
    await mkdir(file)
    await expect(lockDirectory(directory)).rejects.toMatchObject({ code: 'EISDIR' })
  })

  it('leaves nothing behind when it is released', async () => {
    const lock = await lockDirectory(directory)
    await lock.release()
    await lock.release()
    expect(await readdir(directory)).toEqual([])
    await (await lockDirectory(directory)).release()
  })

  it('takes over at once from a process that has died', async () => {
    await leave({ pid: await endedProcess(), startedAt: '1', space: await processSpace() })
    const lock = await lockDirectory(directory)
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ pid: process.pid })
    expect(await readdir(directory)).toEqual(['OWNER'])
    await lock.release()
  })

  it('is not deceived by another process that has the number of the dead one', async () => {
    await leave({ pid: process.pid, startedAt: 'earlier', space: await processSpace() })
    await (await lockDirectory(directory)).release()
  })

  it('gives the directory of a dead owner to one of ten that ask at once', async () => {
    await leave({ pid: await endedProcess(), startedAt: '1', space: await processSpace() })
    const attempts = await Promise.allSettled(Array.from({ length: 10 }, () => lockDirectory(directory)))
    const locks = attempts.flatMap((attempt) => (attempt.status === 'fulfilled' ? [attempt.value] : []))
    expect(locks).toHaveLength(1)
    await locks[0]?.release()
    expect(await readdir(directory)).toEqual([])
  })

  it('gives the directory of a dead owner away although who began to remove that was killed, too', async () => {
    const dead = JSON.stringify({ pid: await endedProcess(), startedAt: '1', space: await processSpace() })
    await writeFile(file, dead)
    const mark = `${file}.dead-${hash('sha256', dead).slice(0, 16)}`
    await writeFile(mark, '')
    await utimes(mark, LONG_AGO, LONG_AGO)
    await (await lockDirectory(directory)).release()
    expect(await readdir(directory)).toEqual([])
  })

  it('refuses an owner in another container as long as it gives signs of life', async () => {
    await leave({ pid: 1, startedAt: '1', space: 'another container' })
    const signs = setInterval(() => void utimes(file, new Date(), new Date()), 50)
    await expect(lockDirectory(directory)).rejects.toThrow('process 1')
    clearInterval(signs)
  })

  it('takes over from an owner in another container that gave no sign of life for long', async () => {
    await leave({ pid: process.pid, startedAt: await processStart(process.pid), space: 'gone' }, LONG_AGO)
    await (await lockDirectory(directory)).release()
  })

  it('takes over what is no owner at all, once it is old', async () => {
    await writeFile(file, '')
    await utimes(file, LONG_AGO, LONG_AGO)
    await (await lockDirectory(directory)).release()
  })

  it('gives signs of life while it is held', async () => {
    const lock = await lockDirectory(directory)
    await utimes(file, LONG_AGO, LONG_AGO)
    while ((await stat(file)).mtimeMs <= LONG_AGO.getTime()) await new Promise(setImmediate)
    await lock.release()
  })

  it("does not remove another owner's file", async () => {
    const lock = await lockDirectory(directory)
    await leave({ pid: 1, startedAt: '1', space: 'another container' })
    await lock.release()
    expect(await readdir(directory)).toEqual(['OWNER'])
  })
})
