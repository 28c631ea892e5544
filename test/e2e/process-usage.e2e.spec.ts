import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { runGateway } from '../support/gateway-process.js'
import { CHAT_PATH, chatText, openRaw, sendRaw } from '../support/gateway.js'
import { chats, NEVER_MS, requestIds, storedIn, UsageProcesses } from '../support/process-labs.js'
import { directoryWithStore, startPostgres, type TestPostgres } from '../support/stores.js'
import { getUsage, recordsOf } from '../support/usage-lab.js'

let postgres: TestPostgres
let lab: UsageProcesses

beforeAll(async () => {
  postgres = await startPostgres()
  lab = await UsageProcesses.prepare()
})
afterEach(() => lab.end())
afterAll(async () => {
  await lab.close()
  await postgres.close()
})

describe('A gateway after SIGTERM', () => {
  it('has written what every answered call used before it ends: PostgreSQL', async () => {
    const database = { url: await postgres.emptyDatabase() }
    const gateway = await lab.start({ database, usage: { batchMs: NEVER_MS, batchRows: 50 } })
    const url = await gateway.listening()
    const ids = await chats(url, 220)
    // One whose stream goes on while the gateway drains.
    const stream = await openRaw(url, {
      path: CHAT_PATH,
      body: chatText('#chunks=20 #pace=20', { stream: true }),
      headers: { 'x-request-id': 'process-last' },
    })
    stream.resume()
    gateway.child.kill('SIGTERM')
    expect(await gateway.exited).toMatchObject({ code: 0, errors: '' })
    expect(requestIds(await storedIn(database))).toEqual([...ids, 'process-last'].sort())
  })

  it('has written what every answered call used before it ends: the embedded store', async () => {
    const directory = await directoryWithStore()
    const gateway = await lab.start({ usage: { store: true, batchMs: NEVER_MS } }, directory)
    const ids = await chats(await gateway.listening(), 60)
    gateway.child.kill('SIGTERM')
    expect(await gateway.exited).toMatchObject({ code: 0, errors: '' })
    expect(requestIds(await storedIn({ directory: join(directory, 'data') }))).toEqual(ids.sort())
  })
})

describe('The sandbox', () => {
  it('opens its store once it listens, and has its requests in a usage report', async () => {
    const gateway = runGateway(await directoryWithStore('data/sandbox'))
    try {
      const url = await gateway.listening()
      const key = 'sandbox-demo-key'
      const headers = { authorization: `Bearer ${key}`, 'x-request-id': 'sandbox-1' }
      await sendRaw(url, { path: CHAT_PATH, body: chatText('Hello'), headers })
      await gateway.said(/opening the store/)
      expect((await getUsage({ url }, '', key)).status).toBe(200)
      expect(await recordsOf({ url }, key)).toMatchObject([{ request_id: 'sandbox-1', outcome: 'ok' }])
    } finally {
      await gateway.close()
    }
  })
})
