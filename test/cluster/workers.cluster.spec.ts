import { readdir, readFile, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import { freePort } from '../support/free-port.js'
import { emptyDirectory, type GatewayProcess } from '../support/gateway-process.js'
import { TEST_KEY } from '../support/gateway.js'
import type { TestPostgres } from '../support/postgres.js'
import { NEVER_MS } from '../support/process-labs.js'
import { sendRaw } from '../support/raw-http.js'
import { CLUSTER_START_MS } from './cluster.js'
import { comesTrue, until } from './daemon.js'
import { startClusterPostgres } from './debian-postgres.js'
import { openStream } from './running-stream.js'
import { chat, WorkerLab } from './worker-lab.js'
import { childrenOf, gone } from './worker-processes.js'

let postgres: TestPostgres
let simulator: Simulator
let databaseUrl: string
beforeAll(async () => {
  postgres = await startClusterPostgres()
  databaseUrl = await postgres.emptyDatabase()
}, CLUSTER_START_MS)
afterAll(() => postgres.close())

let lab: WorkerLab
let gateway: GatewayProcess
beforeEach(async () => {
  simulator = await startP1Simulator({ apiKey: 'upstream-canary-key', paceMs: 20 })
})
afterEach(async () => {
  await gateway.close()
  await simulator.close()
})

const configuration = (key: string, sections: object = {}): string =>
  JSON.stringify({
    auth: { keys: [{ id: 'test', key }] },
    channels: [{ id: 'only', provider: 'p1', baseUrl: simulator.url, credentials: 'upstream-canary-key' }],
    ...sections,
  })

/** Not listening yet. */
async function run(variables: Readonly<Record<string, string>>, sections: object = {}): Promise<void> {
  const directory = await emptyDirectory()
  await writeFile(join(directory, 'gateway.yaml'), configuration(TEST_KEY, sections))
  lab = new WorkerLab(directory)
  lab.start(variables)
  gateway = lab.gateway
}

/** Resolves with the address when both workers listen. */
async function startTwo(variables: Readonly<Record<string, string>> = {}, sections: object = {}): Promise<string> {
  await run({ WORKERS: '2', DATABASE_URL: databaseUrl, ...variables }, sections)
  return lab.listening()
}

/** Rows of usage that wait in files. */
async function keptRows(): Promise<number> {
  const folder = join(gateway.directory, 'data', 'unstored-usage')
  const texts = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), 'utf8')))
  return texts.flatMap((text) => text.split('\n')).filter(Boolean).length
}

const countIn = (text: string, pattern: RegExp): number => [...text.matchAll(pattern)].length

describe('WORKERS=2', () => {
  it('serves one port by both, each of which names itself in the log, and announces itself once', async () => {
    await startTwo()
    expect(await lab.chats(20)).toEqual(Array.from({ length: 20 }, () => 200))
    await until(
      () => Promise.resolve(lab.servedBy(1) + lab.servedBy(2) === 20 || undefined),
      () => gateway.output(),
    )
    expect(Math.min(lab.servedBy(1), lab.servedBy(2))).toBeGreaterThan(0)
    expect(countIn(gateway.output(), /listens at/g)).toBe(1)
    expect(await childrenOf(gateway.child.pid)).toHaveLength(2)
  })

  it('replaces a worker that is killed, while the other serves on', async () => {
    await startTwo()
    const [victim = 0, other] = await childrenOf(gateway.child.pid)
    process.kill(victim, 'SIGKILL')
    await gateway.said(/"ofWorker":1,"code":null,"signal":"SIGKILL".*a worker died and is replaced/)
    expect(await lab.chats(10)).toEqual(Array.from({ length: 10 }, () => 200))
    await until(
      async () => {
        await lab.chats(2)
        return lab.servedBy(1) > 0 || undefined
      },
      () => `the new worker serves nothing:\n${gateway.output()}`,
    )
    const workers = await childrenOf(gateway.child.pid)
    expect(workers).toHaveLength(2)
    expect(workers).toContain(other)
    expect(workers).not.toContain(victim)
  })

  it('reloads the configuration of all at SIGHUP', async () => {
    await startTwo()
    await writeFile(join(gateway.directory, 'gateway.yaml'), configuration('second-key'))
    gateway.child.kill('SIGHUP')
    await Promise.all([1, 2].map((worker) => gateway.said(new RegExp(`"worker":${worker},.*configuration reloaded`))))
    expect(new Set(await lab.chats(10, 'second-key'))).toEqual(new Set([200]))
    expect(new Set(await lab.chats(10))).toEqual(new Set([401]))
    expect(gateway.output()).not.toMatch(/needs a restart/)
  })

  it('reloads the configuration of all when the administrator asks one of them', async () => {
    const adminKey = 'sk-gw-admin-Wm3vQx8LrT5kZ0pYb7NcJ2sHd9FgAe4'
    const sections = { auth: { adminKey, keys: [{ id: 'test', key: TEST_KEY }] } }
    const url = await startTwo({}, sections)
    const changed = { auth: { adminKey, keys: [{ id: 'test', key: 'second-key' }] } }
    await writeFile(join(gateway.directory, 'gateway.yaml'), configuration('second-key', changed))
    const headers = { authorization: `Bearer ${adminKey}` }
    expect((await sendRaw(url, { path: '/admin/v1/config/reload', headers })).status).toBe(200)
    await Promise.all([1, 2].map((worker) => gateway.said(new RegExp(`"worker":${worker},.*configuration reloaded`))))
    expect(new Set(await lab.chats(10, 'second-key'))).toEqual(new Set([200]))
    expect(new Set(await lab.chats(10))).toEqual(new Set([401]))
  })

  it('drains all at SIGTERM: streams end, new connections are refused, the code is 0', async () => {
    const url = await startTwo()
    const streams = await Promise.all([openStream(url, 60), openStream(url, 60), openStream(url, 60)])
    gateway.child.kill('SIGTERM')
    await Promise.all([1, 2].map((worker) => gateway.said(new RegExp(`"worker":${worker},.*"draining"`))))
    await until(
      async () => (await chat(url)) === 0 || undefined,
      () => 'connections are still accepted',
    )
    for (const { text } of streams) expect(await text).toContain('data: [DONE]')
    expect(await gateway.exited).toMatchObject({ code: 0, signal: null, errors: '' })
  })

  it('drains once when a terminal sends its signal to every process', async () => {
    const url = await startTwo()
    const { text } = await openStream(url, 40)
    for (const pid of [...(await childrenOf(gateway.child.pid)), gateway.child.pid ?? 0]) process.kill(pid, 'SIGINT')
    expect(await text).toContain('data: [DONE]')
    expect((await gateway.exited).code).toBe(0)
  })

  it('ends at once with all its workers at a second signal', async () => {
    const url = await startTwo()
    const workers = await childrenOf(gateway.child.pid)
    const { text } = await openStream(url, 100_000)
    gateway.child.kill('SIGTERM')
    await gateway.said(/"worker":1,.*"draining"/)
    gateway.child.kill('SIGTERM')
    expect((await gateway.exited).code).toBe(1)
    expect(await text).not.toContain('[DONE]')
    await Promise.all(workers.map(gone))
  })

  it('keeps what no worker has stored yet at a second signal, all of it, for the next start', async () => {
    await startTwo({ DRAIN_DELAY_MS: '60000' }, { usage: { batchMs: NEVER_MS } })
    expect(await lab.chats(20)).toEqual(Array.from({ length: 20 }, () => 200))
    await comesTrue(() => Promise.resolve(lab.servedBy(1) + lab.servedBy(2) === 20))
    expect(Math.min(lab.servedBy(1), lab.servedBy(2))).toBeGreaterThan(0)
    gateway.child.kill('SIGTERM')
    await Promise.all([1, 2].map((worker) => gateway.said(new RegExp(`"worker":${worker},.*"draining"`))))
    gateway.child.kill('SIGTERM')
    expect((await gateway.exited).code).toBe(1)
    expect(await keptRows()).toBe(20)
  })

  it('ends well when it is told to stop while its workers start', async () => {
    await run({ WORKERS: '2', DATABASE_URL: databaseUrl })
    await until(
      async () => (await childrenOf(gateway.child.pid)).length > 0 || undefined,
      () => 'no worker begins',
    )
    gateway.child.kill('SIGTERM')
    expect(await gateway.exited).toMatchObject({ code: 0, signal: null, errors: '' })
    expect(gateway.output()).toMatch(/"stopped"/)
    expect(gateway.output()).not.toMatch(/listens at/)
  })

  it('lets what runs end when the primary is killed, and leaves no worker behind', async () => {
    const url = await startTwo()
    const workers = await childrenOf(gateway.child.pid)
    const { text } = await openStream(url, 60)
    gateway.child.kill('SIGKILL')
    expect(await text).toContain('data: [DONE]')
    await Promise.all(workers.map(gone))
  })

  it('tells the metrics of both as those of one, and forgets nothing when one of them dies', async () => {
    const port = await freePort()
    await startTwo({ METRICS_PORT: String(port) })
    const requests = async (): Promise<number> => {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      return [...text.matchAll(/^gateway_requests_total\{.*\} (\d+)$/gm)].reduce((sum, [, n]) => sum + Number(n), 0)
    }
    await lab.chats(20)
    await until(
      async () => (await requests()) === 20 || undefined,
      () => gateway.output(),
    )
    process.kill((await childrenOf(gateway.child.pid))[0] ?? 0, 'SIGKILL')
    await gateway.said(/a worker died and is replaced/)
    expect(await requests()).toBe(20)
  })

  it('explains once why it cannot start, with code 1', async () => {
    await run({ WORKERS: '2', DATABASE_URL: databaseUrl, METRICS_PORT: '0', PORT: new URL(simulator.url).port })
    const { code, errors } = await gateway.exited
    expect([code, errors]).toEqual([1, 'The port is in use. Choose another with PORT=<number>.\n'])
  })
})

describe('WORKERS=auto', () => {
  it('is a worker for each processor where PostgreSQL is the store, all of which serve', async () => {
    await run({ WORKERS: 'auto', DATABASE_URL: databaseUrl })
    await lab.listening()
    const workers = availableParallelism()
    if (workers === 1) throw new Error('One processor cannot show what auto does with several: give this suite two.')
    expect(await childrenOf(gateway.child.pid)).toHaveLength(workers)
    await comesTrue(async () => {
      expect(new Set(await lab.chats(4 * workers))).toEqual(new Set([200]))
      return Array.from({ length: workers }, (_, index) => lab.servedBy(index + 1)).every(Boolean)
    })
  })
})

describe('on the embedded store', () => {
  it('two workers are refused with the reason', async () => {
    await run({ WORKERS: '2' })
    const { code, errors } = await gateway.exited
    expect(code).toBe(1)
    expect(errors).toMatch(/^server\.workers \(WORKERS\) is 2, but the embedded store.*DATABASE_URL.*\n$/)
  })

  it('auto is one, and the log says so', async () => {
    await run({ WORKERS: 'auto' })
    const url = await gateway.listening()
    expect(await chat(url)).toBe(200)
    expect(await childrenOf(gateway.child.pid)).toEqual([])
    await gateway.said(/one worker, as the embedded store belongs to one process/)
  })
})
