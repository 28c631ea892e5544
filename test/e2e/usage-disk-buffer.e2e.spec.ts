import { randomBytes } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { emptyDirectory, type GatewayProcess } from '../support/gateway-process.js'
import { CHAT_PATH, chatText, openRaw } from '../support/gateway.js'
import { chats, NEVER_MS, requestIds, storedIn, UsageProcesses } from '../support/process-labs.js'
import { startSilentProxy } from '../support/proxies.js'
import { startPostgres, type TestPostgres } from '../support/stores.js'
import { promised } from '../support/eventually.js'

/** What docs/operations.md promises, beside the time that running requests get. */
const LONGEST_STOP_MS = 10_000
const START_AND_EXIT_MS = 2_000

const CHATS = 30

let postgres: TestPostgres
let lab: UsageProcesses
let directory: string

beforeAll(async () => {
  postgres = await startPostgres()
  lab = await UsageProcesses.prepare()
})
beforeEach(async () => {
  directory = await emptyDirectory()
})
afterEach(() => lab.end())
afterAll(async () => {
  await lab.close()
  await postgres.close()
})

const unstoredFolder = (): string => join(directory, 'data', 'unstored-usage')
const sections = (url: string): object => ({ database: { url }, usage: { batchMs: NEVER_MS } })

async function withoutDatabase<Result>(work: () => Promise<Result>): Promise<Result> {
  await postgres.kill()
  try {
    return await work()
  } finally {
    await postgres.start()
  }
}

/** Starts again on the same data, and ends it once it has read what lay there. */
async function startNext(url: string): Promise<GatewayProcess> {
  const next = await lab.start(sections(url), directory)
  await next.said(/"usage is stored that an earlier process could not store any more"/)
  next.child.kill('SIGTERM')
  expect(await next.exited).toMatchObject({ code: 0, errors: '' })
  return next
}

describe('What was used while the database is away', () => {
  it.each(['info', 'silent'])('is stored by the next start after SIGTERM, at any log level: %s', async (level) => {
    const url = await postgres.emptyDatabase()
    const gateway = await lab.start(sections(url), directory, { LOG_LEVEL: level })
    const address = await gateway.listening()
    const before = await chats(address, 5, 'before')
    const during = await withoutDatabase(async () => {
      const ids = await chats(address, CHATS)
      gateway.child.kill('SIGTERM')
      expect(await gateway.exited).toMatchObject({ code: 0, errors: '' })
      return ids
    })
    const [file = ''] = await readdir(unstoredFolder())
    expect((await stat(join(unstoredFolder(), file))).mode & 0o777).toBe(0o600)
    await startNext(url)
    expect(requestIds(await storedIn({ url }))).toEqual([...before, ...during].sort())
    expect(await readdir(unstoredFolder())).toEqual([])
  })

  it('is stored by the next start when a second signal ends the gateway at once', async () => {
    const url = await postgres.emptyDatabase()
    const gateway = await lab.start(sections(url), directory)
    const address = await gateway.listening()
    const ids = await chats(address, CHATS)
    const stream = await openRaw(address, { path: CHAT_PATH, body: chatText('#chunks=100000', { stream: true }) })
    stream.on('error', () => undefined).resume()
    gateway.child.kill('SIGTERM')
    await gateway.said(/"draining"/)
    gateway.child.kill('SIGTERM')
    const { code, output } = await gateway.exited
    expect(code).toBe(1)
    expect(output).toContain('"usage waits in a file for the next start"')
    await startNext(url)
    expect(requestIds(await storedIn({ url }))).toEqual(expect.arrayContaining(ids))
  })

  it('is on standard error, record by record, where no file can be written, and the log is silent', async () => {
    const url = await postgres.emptyDatabase()
    const variables = { LOG_LEVEL: 'silent', GATEWAY_DATA: '/dev/null/data' }
    const gateway = await lab.start(sections(url), directory, variables)
    const address = await gateway.listening()
    await withoutDatabase(async () => {
      const ids = await chats(address, CHATS)
      gateway.child.kill('SIGTERM')
      const { code, errors } = await gateway.exited
      expect(code).toBe(0)
      const [head, ...lines] = errors
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { rows?: number; record?: { requestId: string } })
      expect(head).toMatchObject({ level: 50, rows: CHATS })
      expect(lines.map(({ record }) => record?.requestId).sort()).toEqual(ids.sort())
    })
  })
})

describe('A database that has fallen silent', () => {
  it('keeps the gateway from ending no longer than is promised, and costs no usage', async () => {
    const url = new URL(await postgres.emptyDatabase())
    const proxy = await startSilentProxy(Number(url.port))
    const own = url.href
    url.port = String(proxy.port)
    const gateway = await lab.start({ ...sections(url.href), auth: AUTH }, directory)
    const address = await gateway.listening()
    const ids = await chats(address, 5, 'before')
    proxy.silence()
    ids.push(...(await chats(address, CHATS)))
    const startedAtMs = performance.now()
    gateway.child.kill('SIGTERM')
    expect(await gateway.exited).toMatchObject({ code: 0, errors: '' })
    expect(performance.now() - startedAtMs).toBeLessThan(promised(LONGEST_STOP_MS + START_AND_EXIT_MS))
    await proxy.close()
    await startNext(own)
    expect(requestIds(await storedIn({ url: own }))).toEqual(ids.sort())
  })
})

/** With a key of its own for operators there are keys in the store, which are read again and again. */
const AUTH = {
  keys: [{ id: 'test', key: 'test-gateway-key' }],
  adminKey: randomBytes(32).toString('hex'),
  keyRefreshMs: 100,
}
