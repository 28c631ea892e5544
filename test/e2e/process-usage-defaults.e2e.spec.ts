import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import type { GatewayProcess } from '../support/gateway-process.js'
import { CHAT_PATH, chatText, openRaw } from '../support/gateway.js'
import { chats, requestIds, storedIn, UsageProcesses } from '../support/process-labs.js'
import { p1Channel } from '../support/provider-gateways.js'
import { dataDirectory } from '../support/stores.js'
import { getUsage, recordsOf } from '../support/usage-lab.js'
import { bufferedIds } from '../support/usage-writer-lab.js'
import { VideoCaller } from '../support/video-caller.js'

/** Keys and a channel for chat alone: nothing is said of a store, and no task needs one. */
const defaults = (): object => ({ channels: [p1Channel('first', lab.p1)] })

const STORED = /"usage is stored that an earlier process could not store any more"/

let lab: UsageProcesses
/** With an empty store in it, so that no test has to wait for one to be made. */
let directory: string

beforeAll(async () => {
  lab = await UsageProcesses.prepare()
})
beforeEach(async () => {
  directory = await dataDirectory()
})
afterEach(() => lab.end())
afterAll(() => lab.close())

const unstoredFolder = (): string => join(directory, 'unstored-usage')
const start = (sections: object = defaults()): Promise<GatewayProcess> =>
  lab.start(sections, directory, { GATEWAY_DATA: directory })

async function stop(gateway: GatewayProcess): Promise<void> {
  gateway.child.kill('SIGTERM')
  expect(await gateway.exited).toMatchObject({ code: 0, errors: '' })
}

/** Starts, serves a number of chats, and gets SIGTERM; resolves with their request ids. */
async function servedBy(count: number, name: string, sections: object = {}): Promise<string[]> {
  const gateway = await start({ ...defaults(), ...sections })
  const ids = await chats(await gateway.listening(), count, name)
  await stop(gateway)
  expect(gateway.output()).not.toContain('opening the store')
  return ids
}

const shown = async (url: string): Promise<string[]> =>
  (await recordsOf({ url })).map(({ request_id: id }) => id ?? '').sort()

describe('A gateway that is not configured to store usage', () => {
  it('shows after a restart what it served before, each call once, to the first who asks', async () => {
    const before = await servedBy(45, 'before')
    const next = await start()
    const url = await next.listening()
    const after = await chats(url, 5, 'after')
    // A start, and calls, open no store for the sake of what lies there.
    expect(next.output()).not.toContain('opening the store')
    expect(await bufferedIds(unstoredFolder())).toHaveLength(45)
    const { status, body } = await getUsage<{ data: readonly object[] }>({ url })
    expect([status, body.data]).toMatchObject([200, [{ records: 50 }]])
    expect(await shown(url)).toEqual([...before, ...after].sort())
    expect(await readdir(unstoredFolder())).toEqual([])
    await stop(next)
    expect(requestIds(await storedIn({ directory }))).toEqual([...before, ...after].sort())
  })

  it('keeps one file, readable by its user only, over any number of restarts, and loses none of it', async () => {
    const ids = [...(await servedBy(7, 'one')), ...(await servedBy(6, 'two')), ...(await servedBy(5, 'three'))]
    // Nothing was served: nothing changes.
    await servedBy(0, 'none')
    const [file = '', ...others] = await readdir(unstoredFolder())
    expect([others, (await stat(join(unstoredFolder(), file))).mode & 0o777]).toEqual([[], 0o600])
    const last = await start()
    expect(await shown(await last.listening())).toEqual(ids.sort())
  })

  it('keeps it as well when a second signal ends it at once', async () => {
    const gateway = await start()
    const url = await gateway.listening()
    const ids = await chats(url, 20)
    const stream = await openRaw(url, { path: CHAT_PATH, body: chatText('#chunks=100000', { stream: true }) })
    stream.on('error', () => undefined).resume()
    gateway.child.kill('SIGTERM')
    await gateway.said(/"draining"/)
    gateway.child.kill('SIGTERM')
    expect((await gateway.exited).code).toBe(1)
    const next = await start()
    expect(await shown(await next.listening())).toEqual(expect.arrayContaining(ids))
  })

  it('stores it once anything else opens the store: tasks, in this case', async () => {
    const before = await servedBy(10, 'before')
    const next = await start({})
    await new VideoCaller({ url: await next.listening() }).created()
    await next.said(STORED)
    await stop(next)
    const stored = requestIds(await storedIn({ directory }))
    expect(stored).toEqual(expect.arrayContaining(before))
    expect(new Set(stored).size).toBe(stored.length)
    expect(await readdir(unstoredFolder())).toEqual([])
  })

  it('drops it if its folder cannot be written, with one log line: no store is configured', async () => {
    const gateway = await lab.start(defaults(), directory, { GATEWAY_DATA: '/dev/null/data' })
    await chats(await gateway.listening(), 45)
    await stop(gateway)
    const lines = gateway
      .output()
      .split('\n')
      .filter((line) => line.includes('forgotten'))
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { level: 40, rows: 45, folder: '/dev/null/data/unstored-usage', err: { code: 'ENOTDIR' } },
    ])
    expect(gateway.output()).not.toMatch(/"msg":"usage"|waits in a file/)
  })

  it('keeps nothing where the configuration says that usage is not stored', async () => {
    await servedBy(5, 'off', { usage: { store: false } })
    expect(await readdir(unstoredFolder()).catch(() => 'no folder')).toBe('no folder')
  })
})
