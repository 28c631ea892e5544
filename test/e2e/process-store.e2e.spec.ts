import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { sql } from 'kysely'
import pg from 'pg'
import { runStoreCommand } from '../../src/admin/cli/run-store-command.js'
import type { Database } from '../../src/storage/database.js'
import { RowSum } from '../../src/storage/store-tables.js'
import { ADMIN_KEY, adminCaller, CONFIGURATION, type KeysRun } from '../support/admin-lab.js'
import { eventually } from '../support/eventually.js'
import { emptyDirectory, runGateway } from '../support/gateway-process.js'
import { dataDirectory, startPostgres, type TestPostgres, testStore } from '../support/stores.js'

const COMMAND = fileURLToPath(new URL('../../dist/store-cli.js', import.meta.url))
const USAGE_ROWS = 6000

/** Rows in every table, with what needs care in a text: quotes, backslashes, commas, brackets, line ends, nothing, empty. */
const ROWS = [
  `insert into task (id, kind, owner_id, channel_id, model, state, upstream_task_id, upstream_external_id, object,
     callback_token, next_poll_at_ms, locked_until_ms, created_at_ms, updated_at_ms, deadline_at_ms)
   select 'task-' || n, 'text2video', 'team', 'v', '', (array['succeed', 'submitted'])[1 + n % 2], 'up-' || n, 'gw-' || n,
     case when n % 3 > 0 then E'{"a": "\\\\"ü\u2028,()\\n\\\\\\\\ \\'", "big": 12345678901234567890}' end, 'token-' || n, n, 9e15, n, n, n
   from generate_series(1, 300) n`,
  `insert into callback_delivery (webhook_id, task_id, owner_id, url, host, body, created_at_ms, locked_until_ms)
   select 'msg-' || n, 'task-' || n, 'team', 'https://x.example', 'x.example', '{}', n, 9e15 from generate_series(1, 300) n`,
  `insert into idempotency_key select 'team', '/r', 'key-' || n, 'f', 'task-' || n, 200, '{}', 9e15 from generate_series(1, 300) n`,
  `insert into api_key (id, key_sha256, hint, created_at_ms, updated_at_ms) values ('Team', 'a', 'sk', 1, 1), ('team', 'b', 'sk', 1, 1)`,
  `insert into admin_audit (at_ms, actor, action, outcome, details, request_id)
   select n, 'cli', 'keys.create', 'done', '{}', '-' from generate_series(1, 9) n`,
  `delete from admin_audit where sequence > 7`,
  `insert into response_pin select 'team', 'msg_' || n, 'resp_' || n % 90, 'p1', n from generate_series(1, 300) n`,
  `insert into background_response select 'team', 'resp_' || n, 'p1', 'm', '/v1/responses', n, n, 9e15, 0 from generate_series(1, 300) n`,
  `insert into kept_response select 'team', 'resp_' || n, null, E'{"a":"\\\\\\"ü"}', 2, n from generate_series(1, 300) n`,
  `insert into kept_item select 'team', 'resp_' || n, 0, 'msg_' || n, false, true, '{}' from generate_series(1, 300) n`,
  `insert into usage_record (id, at_ms, key_id, owner_id, kind, route, model, outcome, prompt_tokens, reported, pricing, cost)
   select 'use-' || n, 1800000000000 + n * 60000, 'team', 'team', 'request', '/', 'm', 'ok', n + 0.5, E'{"x":"\\\\"}\\t', 'priced',
     n * 0.0000001 from generate_series(1, ${USAGE_ROWS}) n`,
  // Of records that retention has deleted: their hours stay, and no copy may add them up anew.
  `delete from usage_record where at_ms < 1800003600000`,
]

type Page = [table: string, ...rows: string[]]

interface Backup {
  head: { format: string; version: number; migrations: string[]; shapes: Record<string, string[]> }
  pages: Page[]
  tail: { sums: Record<string, { rows: number; checksum: string }>; sequences: Record<string, unknown> }
}

function backupOf(bytes: Buffer): Backup {
  const lines = gunzipSync(bytes)
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)
  return { head: lines.at(0), pages: lines.slice(1, -1), tail: lines.at(-1) } as Backup
}

/** With the sums of what is in it. */
function bytesOf({ head, pages, tail }: Backup): Buffer {
  const sums = Object.keys(head.shapes).map((table) => {
    const sum = new RowSum()
    for (const [name, ...rows] of pages) if (name === table) sum.add(rows)
    return [table, sum.value] as const
  })
  const lines = [head, ...pages, { ...tail, sums: Object.fromEntries(sums) }]
  return gzipSync(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
}

type Place = { readonly url: string } | { readonly directory: string }

async function inStore<Result>(place: Place, work: (database: Database) => Promise<Result>): Promise<Result> {
  const store = testStore(place)
  try {
    await store.database.open()
    return await work(store.database)
  } finally {
    await store.close()
  }
}

const rowsOf = (database: Database, query: string): Promise<unknown[]> =>
  database.run(async (queries) => (await sql.raw(query).execute(queries)).rows)

const fill = (place: Place): Promise<void> =>
  inStore(place, async (database) => {
    for (const statement of ROWS) await rowsOf(database, statement)
  })

/** Every table that the migrations have made, whole: so a table that is added later has to be moved as well. */
const contents = (place: Place): Promise<Readonly<Record<string, unknown[]>>> =>
  inStore(place, async (database) => {
    const tables = await rowsOf(
      database,
      `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by 1`,
    )
    const read: Record<string, unknown[]> = {}
    for (const { name } of tables as { name: string }[]) {
      if (name.startsWith('migration')) continue
      // The leases belong to the process that works on the other store.
      const leases = `regexp_replace(t::text, '(?<=,)(9000000000000000|0)(?=,)', 'leased', 'g')`
      const rows = (await rowsOf(database, `select ${leases} as row from ${name} t`)) as { row: string }[]
      read[name] = rows.map(({ row }) => row).sort()
    }
    return read
  })

describe('npm run store', () => {
  let postgres: TestPostgres
  /** An embedded store with rows in every table. */
  let full: string
  let expected: Readonly<Record<string, unknown[]>>
  let work: string
  const running: ChildProcess[] = []

  const command = (words: readonly string[], variables: Readonly<Record<string, string>> = {}): Promise<KeysRun> =>
    new Promise((resolve) => {
      const env = { PATH: process.env['PATH'] ?? '', ...variables }
      const child = execFile(process.execPath, [COMMAND, ...words], { cwd: work, env }, (error, output, errors) => {
        resolve({ code: error === null ? 0 : (error.code ?? error.signal), output, errors })
      })
      running.push(child)
    })

  const succeeds = async (words: readonly string[], variables?: Readonly<Record<string, string>>): Promise<string> => {
    const { code, output, errors } = await command(words, variables)
    expect([code, errors]).toEqual([0, expect.not.stringMatching(/error/i)])
    return output
  }

  beforeAll(async () => {
    work = await emptyDirectory()
    postgres = await startPostgres()
    full = await dataDirectory()
    await fill({ directory: full })
    expected = await contents({ directory: full })
  })

  afterEach(() => {
    for (const child of running.splice(0)) child.kill('SIGKILL')
  })

  afterAll(async () => {
    await postgres.close()
    for (const directory of [full, work]) await rm(directory, { recursive: true, force: true })
  })

  it('moves every table whole, with its counts, to a PostgreSQL that is a store from then on', async () => {
    const url = await postgres.emptyDatabase()
    const output = await succeeds(['copy', '--from', full, '--to', url])
    for (const name of Object.keys(expected)) expect(output).toMatch(new RegExp(`^${name} +\\d+ +[0-9a-f]{16}$`, 'm'))
    expect(output).not.toContain('postgres@')
    expect(await contents({ url })).toEqual(expected)
    await inStore({ url }, async (database) => {
      const [next] = await rowsOf(
        database,
        `insert into admin_audit (at_ms, actor, action, outcome, details, request_id)
         values (1, 'cli', 'a', 'done', '{}', '-') returning sequence`,
      )
      expect(next).toEqual({ sequence: 10 })
      expect(await rowsOf(database, `select from task where locked_until_ms > 0 and state = 'submitted'`)).toEqual([])
      await rowsOf(
        database,
        `insert into usage_record (id, at_ms, key_id, owner_id, kind, route, outcome, pricing)
         values ('new', 0, 'k', 'o', 'request', '/', 'ok', 'free')`,
      )
      expect(await rowsOf(database, 'select records from usage_hour where hour_ms = 0')).toEqual([{ records: 1 }])
    })
  })

  /** Copies a PostgreSQL, and kills the copy when it has come to the last table. */
  async function killedCopy(): Promise<{ readonly source: string; readonly url: string }> {
    const [source, url] = [await postgres.emptyDatabase(), await postgres.emptyDatabase()]
    await fill({ url: source })
    const [reader, target] = [new pg.Client(source), new pg.Client(url)]
    await Promise.all([reader.connect(), target.connect()])
    await reader.query('begin; lock table usage_record in access exclusive mode')
    const copy = spawn(process.execPath, [COMMAND, 'copy', '--from', source, '--to', url], { cwd: work })
    running.push(copy)
    await eventually(async () => {
      const { rowCount } = await target.query('select from store_filling').catch(() => ({ rowCount: 0 }))
      return rowCount === Object.keys(expected).length
    })
    copy.kill('SIGKILL')
    await once(copy, 'exit')
    await Promise.all([reader.end(), target.end()])
    return { source, url }
  }

  it('goes on where it was after a kill, and no gateway opens the store before its end', async () => {
    const { source, url } = await killedCopy()
    await expect(inStore({ url }, () => Promise.resolve())).rejects.toThrow('npm run store was filling it')
    for (const words of [
      ['copy', '--from', full, '--to', url],
      ['backup', '--from', url, '--to', 'half.backup'],
    ]) {
      expect([words, await command(words)]).toEqual([
        words,
        { code: 1, output: '', errors: expect.stringContaining('being filled') },
      ])
    }
    await succeeds(['copy', '--from', source, '--to', url])
    expect(await contents({ url })).toEqual(await contents({ url: source }))
  })

  it('says so when the source has changed between two runs, and begins anew when it is told to', async () => {
    const { source, url } = await killedCopy()
    await inStore({ url: source }, (database) => rowsOf(database, `update admin_audit set actor = 'changed'`))
    const again = await command(['copy', '--from', source, '--to', url])
    expect([again.code, again.errors]).toEqual([1, expect.stringContaining('--restart')])
    await expect(inStore({ url }, () => Promise.resolve())).rejects.toThrow('npm run store was filling it')
    await succeeds(['copy', '--from', source, '--to', url, '--restart'])
    expect(await contents({ url })).toEqual(await contents({ url: source }))
  })

  it('refuses a target that is not empty, a source that is none, and the same store twice', async () => {
    const url = await postgres.emptyDatabase()
    await inStore({ url }, (database) => rowsOf(database, ROWS[3] ?? ''))
    for (const [words, refusal] of [
      [['copy', '--from', full, '--to', url], 'is not empty (api_key)'],
      [['copy', '--from', './dtaa', '--to', url], 'There is no store of the gateway in ./dtaa'],
      [
        ['copy', '--from', await postgres.emptyDatabase(), '--to', './new'],
        'There is no store of the gateway in postgres://',
      ],
      [['copy', '--from', full, '--to', `${full}/.`], 'the same store'],
      [['copy', '--from', url, '--to', full], 'is not empty'],
    ] as const) {
      expect([words, await command(words)]).toEqual([
        words,
        { code: 1, output: '', errors: expect.stringContaining(refusal) },
      ])
    }
    expect(await readdir(work)).not.toContain('dtaa')
    expect(await contents({ directory: full })).toEqual(expected)
  })

  describe('A target with something of others under a name of the gateway', () => {
    const STORE = `create table migration (name varchar(255) primary key, timestamp varchar(255) not null);
      insert into migration values ('0001-tasks', 'once')`
    const restored = async (url: string, isRestart: boolean): Promise<unknown> => {
      const settings = { configured: { url }, adminKey: () => '', onProgress: () => undefined }
      const command = { name: 'copy', from: { directory: full }, to: { url }, isRestart } as const
      return runStoreCommand(command, settings).catch((thrown: unknown) => thrown)
    }

    it.each<[what: string, statements: string, why: string]>([
      ['a table of other migrations', 'create table migration (id int); insert into migration values (7)', 'migration'],
      ['migrations of another name', STORE.replace('0001-tasks', '2020-shop'), 'migration (2020-shop)'],
      ['a table of the migrations’ lock', 'create table migration_lock (shop text)', 'migration_lock'],
      ['a table of tasks, even without rows', 'create table task (shop text)', 'task'],
      [
        'a table of tasks beside a store of an earlier version',
        `${STORE}; create table api_key (shop text)`,
        'api_key',
      ],
      ['a view of tasks', 'create view task as select 7 as shop', 'task'],
      ['a table of a filling', 'create table store_filling (shop text)', 'store_filling'],
      [
        'a function',
        `create function add_usage_to_hours() returns int language sql as 'select 7'`,
        'add_usage_to_hours',
      ],
    ])('%s is refused, and nothing of it is touched', async (_what, statements, why) => {
      const url = await postgres.emptyDatabase()
      const client = new pg.Client(url)
      await client.connect()
      await client.query(statements)
      const things = `select relname, relkind, oid from pg_class where relnamespace = 'public'::regnamespace
        union all select proname, 'f', oid from pg_proc where pronamespace = 'public'::regnamespace order by 1`
      const before = (await client.query(things)).rows
      const refusal = { name: 'StoreUnusable', message: expect.stringContaining(`has ${why}, which is not`) as unknown }
      for (const isRestart of [false, true]) expect(await restored(url, isRestart)).toMatchObject(refusal)
      expect((await client.query(things)).rows).toEqual(before)
      await client.end()
    })

    it('a schema behind that of the target is left alone', async () => {
      const url = await postgres.emptyDatabase()
      const client = new pg.Client(url)
      await client.connect()
      await client.query(`create schema postgres; create table public.task (shop text)`)
      expect(await restored(url, false)).toMatchObject({ message: expect.stringContaining('has task, which is not') })
      expect((await client.query('select from public.task')).rowCount).toBe(0)
      await client.end()
    })

    it('a view of others on an empty store is kept', async () => {
      const url = await postgres.emptyDatabase()
      await inStore({ url }, (database) => rowsOf(database, 'create view report as select id from task'))
      expect(await restored(url, false)).toMatchObject({ message: expect.stringContaining('view report depends on') })
      await inStore({ url }, async (database) => {
        expect(await rowsOf(database, 'select from report')).toEqual([])
        await rowsOf(database, 'drop view report')
      })
      expect(await restored(url, false)).toEqual(expect.stringContaining('Copied to'))
    })
  })

  it('takes no password from its words, and repeats none', async () => {
    const { code, errors } = await command(['copy', '--from', full, '--to', 'postgres://user:hunter2@127.0.0.1/db'])
    expect([code, errors]).toEqual([2, expect.stringContaining('PGPASSWORD')])
    expect(errors).not.toContain('hunter2')
    const there = await command(['copy', '--from', full], { DATABASE_URL: 'postgres://user:hunter2@127.0.0.1:1/db' })
    expect([there.code, there.errors]).toEqual([1, expect.stringContaining('ECONNREFUSED')])
    expect(there.errors).not.toContain('hunter2')
  })

  it('backs up PostgreSQL, checks the file before it restores it, and restores it into either store', async () => {
    const url = await postgres.emptyDatabase()
    await fill({ url })
    await succeeds(['backup', '--to', 'whole.backup'], { DATABASE_URL: url })
    expect(await command(['backup', '--from', url, '--to', 'whole.backup'])).toMatchObject({
      code: 1,
      errors: expect.stringContaining('is there already'),
    })
    const bytes = await readFile(join(work, 'whole.backup'))
    await writeFile(join(work, 'half.backup'), bytes)
    await truncate(join(work, 'half.backup'), bytes.length - 20)
    await writeFile(join(work, 'text.backup'), 'no backup at all')
    for (const damaged of ['half.backup', 'text.backup']) {
      const { code, errors } = await command(['restore', '--from', damaged, '--to', './restored'])
      expect([code, errors]).toEqual([1, expect.stringContaining('it is damaged')])
    }
    expect(await readdir(work)).not.toContain('restored')
    await succeeds(['restore', '--from', 'whole.backup', '--to', './restored'])
    expect(await contents({ directory: join(work, 'restored') })).toEqual(await contents({ url }))
  })

  describe('A backup that is damaged or was made by hand', () => {
    let whole: Buffer
    let url: string
    beforeAll(async () => {
      await succeeds(['backup', '--from', full, '--to', 'base.backup'])
      whole = await readFile(join(work, 'base.backup'))
      url = await postgres.emptyDatabase()
    })

    const changed = (change: (backup: Backup) => void) => (): Buffer => {
      const backup = backupOf(whole)
      change(backup)
      return bytesOf(backup)
    }
    const withLines = (change: (lines: string[]) => void) => (): Buffer => {
      const lines = gunzipSync(whole).toString().trim().split('\n')
      change(lines)
      return gzipSync(lines.map((line) => `${line}\n`).join(''))
    }
    const taskRow = (change: (row: string) => string) =>
      changed(({ pages }) => {
        const page = pages.find(([table]) => table === 'task')
        if (page !== undefined) page[2] = change(page[2] ?? '')
      })

    it.each<[what: string, bytes: () => Buffer, why: string]>([
      ['is not compressed', () => gunzipSync(whole), 'it is not compressed with gzip'],
      ['is an empty file', () => Buffer.alloc(0), 'it breaks off before its end'],
      ['holds nothing', () => gzipSync(''), 'it is empty'],
      ['is cut', () => whole.subarray(0, whole.length / 2), 'it breaks off before its end'],
      ['lacks its last line', withLines((lines) => lines.pop()), 'its end is missing'],
      ['goes on', withLines((lines) => lines.push('["task"]')), 'it goes on after its end'],
      ['has a line that is no JSON', withLines((lines) => lines.splice(1, 1, '["task"')), 'line 2 is no JSON'],
      ['has a line of something else', withLines((lines) => (lines[1] = 'null')), 'line 2 holds neither rows nor'],
      ['has rows that are no texts', withLines((lines) => (lines[1] = '["task", 1]')), 'line 2 holds neither rows nor'],
      ['begins with nothing', withLines((lines) => (lines[0] = 'null')), 'its first line does not say'],
      ['is of another kind', changed(({ head }) => (head.format = 'x')), 'its first line does not say'],
      [
        'tells no columns',
        withLines((lines) => (lines[0] = lines[0]?.replace('"shapes"', '"s"') ?? '')),
        'its first line lacks',
      ],
      [
        'names an unknown table',
        changed(({ head }) => (head.shapes['extra'] = ['a'])),
        'names an unknown table, "extra"',
      ],
      [
        'has rows of an unknown table',
        changed(({ pages }) => pages.push(['extra', '(1)'])),
        'rows of an unknown table, "extra"',
      ],
      [
        'has a broken count',
        changed(({ tail }) => (tail.sequences = { admin_audit: { last: 'x' } })),
        'neither rows nor the sums',
      ],
      ['has other rows', withLines((lines) => lines.splice(1, 1)), 'are not those that were written'],
      [
        'lacks a column',
        changed(({ head }) => head.shapes['task']?.pop()),
        'its table task lacks the column deadline_at_ms',
      ],
      [
        'has a further column',
        changed(({ head }) => head.shapes['task']?.push('x')),
        'task has an unknown column, "x"',
      ],
      ['lacks a value', taskRow((row) => row.replace(/,[^,]*\)$/, ')')), 'of task does not fit the table'],
      ['has a value of the wrong type', taskRow((row) => row.replace(/[^,]*\)$/, 'soon)')), 'bigint: "soon"'],
    ])('that %s is refused with a sentence, and nothing is written', async (_what, bytes, why) => {
      const file = join(work, 'bad.backup')
      await writeFile(file, bytes())
      const settings = { configured: { url }, adminKey: () => '', onProgress: () => undefined }
      const restored = runStoreCommand({ name: 'restore', file, to: { url }, isRestart: false }, settings)
      const error: unknown = await restored.catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ name: 'StoreUnusable', message: expect.stringContaining(why) as unknown })
      expect((error as Error).message).toContain(`${file} cannot be restored, it is damaged: `)
      const client = new pg.Client(url)
      await client.connect()
      const { rows } = await client.query(`select relname from pg_class where relnamespace = 'public'::regnamespace`)
      await client.end()
      expect(rows).toEqual([])
    })
  })

  it('restores a backup of an earlier version, and refuses one of a later', async () => {
    const url = await postgres.emptyDatabase()
    await fill({ url })
    const hours = await contents({ url })
    const asBefore = `drop trigger usage_record_added on usage_record; drop function add_usage_to_hours;
      drop table usage_hour; drop table response_pin; drop table kept_item; drop table kept_response; drop table background_response;
      alter table usage_record drop column requests, drop column reason, drop column translation;
      alter table api_key drop column translation;
      delete from migration where name >= '0004'`
    await inStore({ url }, (database) => rowsOf(database, asBefore))
    await succeeds(['backup', '--from', url, '--to', 'early.backup'])
    await succeeds(['restore', '--from', 'early.backup', '--to', './early'])
    const restored = await contents({ directory: join(work, 'early') })
    expect(restored['usage_record']).toEqual(hours['usage_record'])
    expect(restored['usage_hour']?.length).toBeGreaterThan(50)
    await inStore({ url }, (database) => rowsOf(database, `insert into migration values ('9999-future', 'some day')`))
    expect(await command(['backup', '--from', url, '--to', 'late.backup'])).toMatchObject({
      code: 1,
      errors: expect.stringContaining('newer version of the gateway (9999-future)'),
    })
  })

  it('backs up the embedded store of a gateway at work, with all that it has acknowledged before', async () => {
    const directory = await emptyDirectory()
    await writeFile(join(directory, 'gateway.yaml'), CONFIGURATION())
    const gateway = runGateway(directory)
    try {
      const gatewayUrl = await gateway.listening()
      const admin = adminCaller(gatewayUrl)
      const before = [await admin.issue(), await admin.issue()].map(({ id }) => id)
      const inUse = await command(['backup', '--from', join(directory, 'data'), '--to', 'none.backup'])
      expect([inUse.code, inUse.errors]).toEqual([1, expect.stringContaining('--url')])
      const done = new AbortController()
      const writing = (async () => {
        while (!done.signal.aborted) await admin.issue()
      })()
      await succeeds(['backup', '--url', gatewayUrl, '--to', 'running.backup'], { GATEWAY_ADMIN_KEY: ADMIN_KEY })
      done.abort()
      await writing
      expect((await readdir(work)).filter((name) => name.includes('.files-'))).toEqual([])
      const url = await postgres.emptyDatabase()
      await succeeds(['restore', '--from', 'running.backup', '--to', url])
      const ids = await inStore({ url }, (database) => rowsOf(database, 'select id from api_key'))
      expect(ids).toEqual(expect.arrayContaining(before.map((id) => ({ id }))))
      const { json } = await admin.call('GET', '/audit?limit=1000')
      expect(json['data']).toContainEqual(expect.objectContaining({ action: 'store.backup', outcome: 'done' }))
      const wrong = await command(['backup', '--url', gatewayUrl, '--to', 'w.backup'], {
        GATEWAY_ADMIN_KEY: 'wrong-key',
      })
      expect([wrong.code, wrong.errors]).toEqual([1, expect.stringContaining('admin key is not valid')])
      // It is still at work, and its store is as good as before.
      expect((await admin.call('GET', '/keys')).status).toBe(200)
    } finally {
      await gateway.close()
    }
  })
})
