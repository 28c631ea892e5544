import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { sql } from 'kysely'
import pg from 'pg'
import { eventually, promised } from '../../test/support/eventually.js'
import { startPostgres, type TestPostgres, type TestStore, testStore } from '../../test/support/stores.js'
import { GatewayError } from '../core/errors.js'
import { unusedPort } from '../../test/support/raw-upstream.js'
import { StoreUnusable } from './database.js'

let postgres: TestPostgres
let url: string
const stores: TestStore[] = []

function store(address: string, maxConnections?: number): TestStore {
  const opened = testStore({ url: address }, maxConnections)
  stores.push(opened)
  return opened
}

const execute = async ({ database }: TestStore, statement: string): Promise<unknown[]> =>
  database.run(async (queries) => (await sql.raw(statement).execute(queries)).rows)

const one = (opened: TestStore): Promise<unknown[]> => execute(opened, 'select 1 as one')

const OVERLOADED = { kind: 'overloaded', details: { retryAfterSeconds: 5 } }

beforeAll(async () => {
  postgres = await startPostgres()
  url = await postgres.emptyDatabase()
})

afterEach(async () => {
  for (const opened of stores.splice(0)) await opened.close()
})

afterAll(() => postgres.close())

describe('the store in PostgreSQL', () => {
  it('reads counts and times as numbers, and ends what takes longer than three seconds', async () => {
    const opened = store(url)
    const [row] = await execute(
      opened,
      `select 1800000000000::bigint as time, current_setting('statement_timeout') as limit`,
    )
    expect(row).toEqual({ time: 1_800_000_000_000, limit: '3s' })
  })

  it('tells a server with too much to do from one that is lost', async () => {
    const opened = store(url)
    const slow = execute(opened, 'select pg_sleep(30)')
    const busy = { kind: 'overloaded', details: { retryAfterSeconds: 1 }, cause: { code: '57014' } }
    await expect(slow).rejects.toMatchObject(busy)
    expect(opened.readiness.isReady).toBe(true)
    expect(await one(opened)).toEqual([{ one: 1 }])
  })

  it('survives the end of single connections without being down for a moment', async () => {
    const opened = store(url, 2)
    const [own] = (await execute(opened, 'select pg_backend_pid() as pid')) as { pid: number }[]
    const admin = store(url)
    const died = execute(opened, 'select pg_sleep(2)').catch((error: unknown) => error)
    await eventually(async () => {
      const active = await execute(
        admin,
        `select pid from pg_stat_activity where pid = ${String(own?.pid)} and state = 'active'`,
      )
      return active.length === 1
    })
    await execute(admin, `select pg_terminate_backend(${String(own?.pid)})`)
    expect(await died).toMatchObject(OVERLOADED)
    // The pool may not have noticed yet that it has a dead connection.
    await eventually(() => one(opened).then(Boolean, () => false))
    expect(opened.readiness.isReady).toBe(true)
    expect(opened.log()).toEqual([])
  })

  it('says what is set up wrongly, and does not take it for a server that is away', async () => {
    const opened = store(url.replace(/\w+$/, 'no_such_database'))
    await expect(opened.database.open()).rejects.toThrow(StoreUnusable)
    await expect(opened.database.open()).rejects.toThrow(
      'The store cannot be opened: database "no_such_database" does not exist',
    )
    await expect(one(opened)).rejects.toMatchObject({ kind: 'overloaded' })
    expect(opened.readiness.status).toBe('store_unreachable')
  })

  it('is refused at once while its server is away, and is back by itself', async () => {
    const opened = store(url)
    await one(opened)
    const running = execute(opened, 'select pg_sleep(2)').catch((error: unknown) => error)
    await postgres.kill()
    expect(await running).toMatchObject({ kind: 'overloaded' })
    await eventually(() => opened.readiness.status === 'store_unreachable')
    const before = performance.now()
    await expect(one(opened)).rejects.toMatchObject(OVERLOADED)
    expect(performance.now() - before).toBeLessThan(promised(500))
    await postgres.start()
    await eventually(() => opened.readiness.isReady)
    expect(await one(opened)).toEqual([{ one: 1 }])
    expect(opened.log().map(({ msg }) => msg)).toContain('the store is back')
  })

  it('is looked for in the background when its server is away at the start', async () => {
    await postgres.kill()
    const opened = store(url)
    const isOpen = new Promise<void>((resolve) => {
      opened.database.whenOpen(resolve)
    })
    await expect(opened.database.open()).rejects.toMatchObject(OVERLOADED)
    expect(opened.readiness.status).toBe('store_unreachable')
    expect(JSON.stringify(opened.log())).not.toContain('postgres://')
    await postgres.start()
    await isOpen
    expect(opened.readiness.isReady).toBe(true)
    expect(await one(opened)).toEqual([{ one: 1 }])
  })

  const setReadOnly = async (admin: TestStore, database: string, state: 'on' | 'off'): Promise<void> => {
    // This one connection may still write.
    await execute(
      admin,
      `set default_transaction_read_only = off; alter database ${database} set default_transaction_read_only = ${state}`,
    )
  }

  it('is not ready on a server that only reads, and is back on connections that write', async () => {
    const address = await postgres.emptyDatabase()
    const database = new URL(address).pathname.slice(1)
    const opened = store(address)
    const write = (): Promise<unknown[]> => execute(opened, "update task set polls = 0 where id = 'none'")
    await write()
    const admin = store(url)
    await setReadOnly(admin, database, 'on')
    await execute(admin, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}'`)
    await eventually(() =>
      write().then(
        () => false,
        (error: unknown) => error instanceof GatewayError,
      ),
    )
    await eventually(() => opened.readiness.status === 'store_unreachable')
    await expect(write()).rejects.toMatchObject(OVERLOADED)
    await setReadOnly(admin, database, 'off')
    await eventually(() => opened.readiness.isReady)
    await write()
    expect(opened.log().map(({ msg }) => msg)).toEqual(
      expect.arrayContaining(['the store is lost', 'the store is back']),
    )
  })

  it('is not ready on a database without its tables, and does not make new ones in their place', async () => {
    const address = await postgres.emptyDatabase()
    const opened = store(address)
    await one(opened)
    const admin = store(address)
    await execute(admin, 'alter schema public rename to moved; create schema public')
    await expect(execute(opened, 'select 1 from task')).rejects.toMatchObject(OVERLOADED)
    await eventually(() => opened.readiness.status === 'store_unreachable')
    await eventually(() => opened.log().some(({ msg }) => msg === 'the store cannot be opened'))
    await expect(one(opened)).rejects.toMatchObject(OVERLOADED)
    await admin.close()
    const mender = new pg.Client({ connectionString: address })
    await mender.connect()
    expect((await mender.query("select 1 from pg_tables where schemaname = 'public'")).rowCount).toBe(0)
    await mender.query('drop schema public; alter schema moved rename to public')
    await mender.end()
    await eventually(() => opened.readiness.isReady)
    expect(await execute(opened, 'select 1 from task')).toEqual([])
  })

  it('is not ready while one of its tables is missing, whichever, and is back with it', async () => {
    const address = await postgres.emptyDatabase()
    const opened = store(address)
    await one(opened)
    const mender = new pg.Client({ connectionString: address })
    await mender.connect()
    const { rows } = await mender.query<{ name: string }>(
      `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
    )
    const tables = rows.map(({ name }) => name).filter((name) => !name.startsWith('migration'))
    expect(tables).toEqual(expect.arrayContaining(['task', 'api_key', 'callback_delivery', 'usage_record']))
    await mender.query('alter table callback_delivery rename to hidden')
    await expect(execute(opened, 'select from callback_delivery')).rejects.toMatchObject(OVERLOADED)
    await eventually(() => opened.log().some(({ msg }) => msg === 'the store cannot be opened'))
    expect(opened.readiness.status).toBe('store_unreachable')
    await expect(one(opened)).rejects.toMatchObject(OVERLOADED)
    await mender.query('alter table hidden rename to callback_delivery')
    await eventually(() => opened.readiness.isReady)
    expect(await execute(opened, 'select from callback_delivery')).toEqual([])
    for (const table of tables) {
      await mender.query(`alter table ${table} rename to hidden`)
      const started = store(address)
      await expect(one(started)).rejects.toMatchObject({ cause: { message: `the database lacks ${table}` } })
      expect([table, started.readiness.status]).toEqual([table, 'store_unreachable'])
      await started.close()
      await mender.query(`alter table hidden rename to ${table}`)
    }
    await mender.end()
  })

  it('is the first of several servers that writes', async () => {
    const port = new URL(url).port
    const [reading, writing] = [await postgres.emptyDatabase(), await postgres.emptyDatabase()].map(
      (each) => new URL(each).pathname,
    )
    expect(reading).not.toBe(writing)
    const dead = await unusedPort()
    const opened = store(
      `postgres://postgres@127.0.0.1:${dead},127.0.0.1:${port}${String(writing)}?target_session_attrs=read-write`,
    )
    expect(await one(opened)).toEqual([{ one: 1 }])
  })

  it('is the next of several servers where the first says nothing', async () => {
    const proxy = await silenceableProxy(Number(new URL(url).port))
    proxy.silence()
    const { port, pathname } = new URL(url)
    const opened = store(`postgres://postgres@127.0.0.1:${proxy.port},127.0.0.1:${port}${pathname}`)
    expect(await one(opened)).toEqual([{ one: 1 }])
  })

  it('tries a transaction again that another one stood in the way of', async () => {
    const opened = store(url)
    const codes = ['40001', '40P01']
    let attempts = 0
    const result = await opened.database.transaction(async (queries) => {
      attempts++
      const code = codes[attempts - 1]
      if (code !== undefined) {
        await sql.raw(`do $$ begin raise exception 'collision' using errcode = '${code}'; end $$`).execute(queries)
      }
      return (await sql`select 1 as one`.execute(queries)).rows
    })
    expect([attempts, result]).toEqual([3, [{ one: 1 }]])
    const never = opened.database.transaction((queries) =>
      sql.raw(`do $$ begin raise exception 'collision' using errcode = '40P01'; end $$`).execute(queries),
    )
    await expect(never).rejects.toMatchObject({ kind: 'overloaded', details: { retryAfterSeconds: 1 } })
  })

  it('gives up on a server that has fallen silent, and finds it again', async () => {
    const proxy = await silenceableProxy(Number(new URL(url).port))
    const opened = store(url.replace(/:\d+\//, `:${proxy.port}/`), 1)
    await one(opened)
    proxy.silence()
    await expect(one(opened)).rejects.toMatchObject(OVERLOADED)
    await eventually(() => opened.readiness.status === 'store_unreachable')
    proxy.speak()
    await eventually(() => opened.readiness.isReady)
    expect(await one(opened)).toEqual([{ one: 1 }])
    await opened.close()
    await proxy.close()
  })
})

/** Passes bytes to a port of this machine; while it is silent, it takes them and passes none. */
async function silenceableProxy(target: number) {
  let isSilent = false
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('error', () => undefined)
  }
  const server: Server = createServer((client) => {
    const upstream = keep(connect(target, '127.0.0.1'))
    keep(client).on('data', (bytes) => isSilent || upstream.write(bytes))
    upstream.on('data', (bytes) => isSilent || client.write(bytes))
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    silence: () => (isSilent = true),
    speak: () => (isSilent = false),
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
