import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { ADMIN_KEY, type AdminAnswer, adminCaller } from '../support/admin-lab.js'
import { emptyDirectory, freePort, type GatewayProcess } from '../support/gateway-process.js'
import { CHAT_PATH, chatText, sendRaw, TEST_KEY } from '../support/gateway.js'
import { NEVER_MS } from '../support/process-labs.js'
import type { TestPostgres } from '../support/stores.js'
import { openStream } from './callers.js'
import { CLUSTER_START_MS } from './cluster.js'
import { childrenOf, comesTrue, gone, until } from './daemon.js'
import { requestUsage, startClusterPostgres } from './debian-postgres.js'
import { chat, startWorkerPair, WorkerLab, type WorkerPair } from './worker-lab.js'

describe('workers', () => {
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

    it('exits with 0 at SIGTERM while its workers start', async () => {
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
})

describe('workers configuration', () => {
  let postgres: TestPostgres
  let simulator: Simulator
  let databaseUrl: string
  let lab: WorkerLab
  beforeAll(async () => {
    postgres = await startClusterPostgres()
    databaseUrl = await postgres.emptyDatabase()
    simulator = await startP1Simulator({ apiKey: 'upstream-canary-key' })
  }, CLUSTER_START_MS)
  afterAll(async () => {
    await simulator.close()
    await postgres.close()
  })
  beforeEach(async () => {
    lab = new WorkerLab(await emptyDirectory())
    await configure(TEST_KEY)
    lab.start({ WORKERS: '2', DATABASE_URL: databaseUrl })
    await lab.listening()
  })
  afterEach(() => lab.gateway.close())

  const configuration = (key: string): string =>
    JSON.stringify({
      auth: { keys: [{ id: 'test', key }], adminKey: ADMIN_KEY },
      channels: [{ id: 'only', provider: 'p1', baseUrl: simulator.url, credentials: 'upstream-canary-key' }],
    })

  /** The whole file at once, so that no reader sees half of it. */
  async function writeConfiguration(text: string): Promise<void> {
    const file = join(lab.directory, 'gateway.yaml')
    await writeFile(`${file}.new`, text)
    await rename(`${file}.new`, file)
  }
  const configure = (key: string): Promise<void> => writeConfiguration(configuration(key))

  const FAULTY = 'auth: 1\n'

  const reloaded = (worker: number): Promise<unknown> =>
    lab.gateway.said(new RegExp(`"worker":${worker},.*"configuration reloaded`))

  async function reloadTo(key: string): Promise<void> {
    await configure(key)
    lab.gateway.child.kill('SIGHUP')
    await Promise.all([reloaded(1), reloaded(2)])
  }

  describe('the configuration of workers', () => {
    it.each([
      ['has been changed', (): Promise<void> => configure('newer-key')],
      ['has a fault', (): Promise<void> => writeConfiguration(FAULTY)],
      [
        'is gone',
        (): Promise<void> => rename(join(lab.directory, 'gateway.yaml'), join(lab.directory, 'elsewhere.yaml')),
      ],
    ])('is the accepted one for those that replace others while the file %s', async (_what, spoil) => {
      await reloadTo('accepted-key')
      await spoil()
      for (let count = 0; count < 2; count += 1) {
        expect(await lab.replaceOldest('accepted-key')).toEqual(new Set([200]))
      }
      expect(new Set(await lab.chats(10, 'accepted-key'))).toEqual(new Set([200]))
      for (const key of [TEST_KEY, 'newer-key']) expect(new Set(await lab.chats(10, key))).toEqual(new Set([401]))
    })

    it('stays what it is for all when a reload is refused, also for those that replace others', async () => {
      await writeConfiguration(FAULTY)
      lab.gateway.child.kill('SIGHUP')
      await Promise.all(
        [1, 2].map((worker) => lab.gateway.said(new RegExp(`"worker":${worker},.*not reloaded, the old`))),
      )
      const asked = await adminCaller(lab.url).call('POST', '/config/reload')
      expect(asked).toMatchObject({ status: 422, json: { error: { faults: ['auth: must be a map'] } } })
      expect(await lab.replaceOldest(TEST_KEY)).toEqual(new Set([200]))
    })

    it('is reported to all after a refused reload', async () => {
      await writeConfiguration(FAULTY)
      lab.gateway.child.kill('SIGHUP')
      await Promise.all(
        [1, 2].map((worker) => lab.gateway.said(new RegExp(`"worker":${worker},.*not reloaded, the old`))),
      )
      await configure('second-key')
      expect(await adminCaller(lab.url).call('POST', '/config/reload')).toMatchObject({ status: 200 })
      await Promise.all([reloaded(1), reloaded(2)])
      expect(new Set(await lab.chats(10, 'second-key'))).toEqual(new Set([200]))
      expect(new Set(await lab.chats(10, TEST_KEY))).toEqual(new Set([401]))
    })

    it('is the newest for all after reloads by signal and by the administrator that overlap', async () => {
      for (let round = 0; round < 5; round += 1) {
        const asked: Promise<AdminAnswer>[] = []
        for (let turn = 0; turn < 10; turn += 1) {
          await configure(`key-${round}-${turn}`)
          lab.gateway.child.kill('SIGHUP')
          asked.push(adminCaller(lab.url).call('POST', '/config/reload'))
        }
        expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([200]))
        const all = new Set([200])
        await comesTrue(async () => isDeepStrictEqual(new Set(await lab.chats(20, `key-${round}-9`)), all))
      }
    })

    it('takes no limits that the workers which run cannot count together, although the file names a Redis', async () => {
      const auth = { keys: [{ id: 'test', key: 'limited-key', limits: { concurrency: 1 } }], adminKey: ADMIN_KEY }
      const redis = { url: 'redis://127.0.0.1:1' }
      await writeConfiguration(JSON.stringify({ ...JSON.parse(configuration(TEST_KEY)), auth, redis }))
      lab.gateway.child.kill('SIGHUP')
      await Promise.all(
        [1, 2].map((worker) =>
          lab.gateway.said(new RegExp(`"worker":${worker},.*not reloaded, the old.*server\\.workers: 2 workers run`)),
        ),
      )
      expect(new Set(await lab.chats(10, 'limited-key'))).toEqual(new Set([401]))
      expect(new Set(await lab.chats(10, TEST_KEY))).toEqual(new Set([200]))
    })

    it('names to the administrator what needs a restart, and a new worker keeps to it as the others do', async () => {
      await writeConfiguration(JSON.stringify({ ...JSON.parse(configuration(TEST_KEY)), redis: { timeoutMs: 77 } }))
      for (let count = 0; count < 2; count += 1) {
        const asked = await adminCaller(lab.url).call('POST', '/config/reload')
        expect(asked).toMatchObject({ status: 200, json: { needs_restart: ['redis'] } })
        expect(await lab.replaceOldest(TEST_KEY)).toEqual(new Set([200]))
      }
    })
  })
})

describe('workers store', () => {
  /** What is promised for every process. */
  const DEAD_WITHIN_MS = 5_000

  let pair: WorkerPair
  const started: WorkerPair[] = []
  afterEach(async () => {
    for (const each of started.splice(0)) await each.close()
  })

  async function start(sections: object, auth: object = {}): Promise<void> {
    pair = await startWorkerPair(sections, auth)
    started.push(pair)
  }

  /** A chat on a connection of its own. */
  async function chatAs(id: string, key = TEST_KEY): Promise<number> {
    const headers = { authorization: `Bearer ${key}`, 'x-request-id': id }
    return (await sendRaw(pair.lab.url, { path: CHAT_PATH, headers, body: chatText('Hello') })).status
  }

  /** By the log, which comes after the answer: who served these requests. */
  async function workersOf(ids: readonly string[]): Promise<readonly number[]> {
    const workerOf = (id: string): number =>
      Number(new RegExp(`^\\{"worker":(\\d),[^\\n]*"requestId":"${id}"`, 'm').exec(pair.lab.gateway.output())?.[1])
    await comesTrue(() => !ids.map(workerOf).some(Number.isNaN))
    return ids.map(workerOf)
  }

  let asked = 0
  interface Answer {
    readonly status: number
    /** By `performance.now()`. */
    readonly sentAtMs: number
  }

  /** Asks on fresh connections until every worker has answered; resolves with all answers of each. */
  async function answersOfEach(key: string): Promise<ReadonlyMap<number, readonly Answer[]>> {
    const answers = new Map<number, Answer[]>()
    await until(
      async () => {
        const ids = Array.from({ length: 4 }, () => `asked-${++asked}`)
        const sentAtMs = performance.now()
        const statuses = await Promise.all(ids.map((id) => chatAs(id, key)))
        for (const [index, worker] of (await workersOf(ids)).entries())
          answers.set(worker, [...(answers.get(worker) ?? []), { status: statuses[index] ?? 0, sentAtMs }])
        return answers.size === 2 || undefined
      },
      () => `not every worker was met:\n${pair.lab.gateway.output().slice(-2000)}`,
    )
    return answers
  }

  /**
   * Resolves once every worker gives this answer to each of the keys, and no other, with how long after the call the last
   * question was sent that got another one; 0 where none did. The duration of the search itself has no bound.
   */
  async function become(keys: readonly string[], wanted: number): Promise<number> {
    const startedAtMs = performance.now()
    let lastWrongAtMs = startedAtMs
    for (const key of keys)
      await comesTrue(async () => {
        const wrong = [...(await answersOfEach(key)).values()].flat().filter(({ status }) => status !== wanted)
        lastWrongAtMs = Math.max(lastWrongAtMs, ...wrong.map(({ sentAtMs }) => sentAtMs))
        return wrong.length === 0
      })
    return lastWrongAtMs - startedAtMs
  }

  describe('server.workers: 2 on PostgreSQL', () => {
    it(
      'serves keys that one worker has issued, and refuses those that one has revoked, on both within five seconds',
      async () => {
        await start({}, { adminKey: ADMIN_KEY })
        const admin = adminCaller(pair.lab.url)
        const revokers = new Set<number>()
        // The replica that revokes a key applies it at once: each does, and the other must learn of it.
        while (revokers.size < 2) {
          const issued = await Promise.all([1, 2, 3, 4].map(() => admin.issue()))
          const keys = issued.map(({ key }) => key)
          expect(await become(keys, 200)).toBeLessThan(DEAD_WITHIN_MS)
          const revoked = await Promise.all(issued.map(({ id }) => admin.call('DELETE', `/keys/${id}`)))
          expect(await become(keys, 401)).toBeLessThan(DEAD_WITHIN_MS)
          expect(revoked.map(({ status }) => status)).toEqual([200, 200, 200, 200])
          for (const worker of await workersOf(revoked.map(({ headers }) => String(headers['x-request-id']))))
            revokers.add(worker)
          const served = [...(await answersOfEach(TEST_KEY)).values()]
          expect(served.map((each) => new Set(each.map(({ status }) => status)))).toEqual([
            new Set([200]),
            new Set([200]),
          ])
        }
      },
      CLUSTER_START_MS,
    )

    it(
      'loses no usage of a completed request at SIGTERM during traffic',
      async () => {
        // Nothing is written because its time has come: all of it is written at the end.
        await start({ usage: { batchMs: NEVER_MS } })
        const { lab, simulator, proxy, databaseUrl } = pair
        const names = Array.from({ length: 60 }, (_, index) => `call-${String(index).padStart(2, '0')}`)
        const [before, during] = [names.slice(0, 20), names.slice(20)]
        for (const id of before) expect(await chatAs(id)).toBe(200)
        proxy.hold()
        const answers = during.map((id) => chatAs(id))
        await comesTrue(() => simulator.requests.length === names.length)
        expect(await requestUsage(databaseUrl, 'call-')).toEqual([])
        lab.gateway.child.kill('SIGTERM')
        await Promise.all([1, 2].map((worker) => lab.gateway.said(new RegExp(`"worker":${worker},.*"draining"`))))
        proxy.release()
        expect(new Set(await Promise.all(answers))).toEqual(new Set([200]))
        expect(await lab.gateway.exited).toMatchObject({ code: 0, signal: null, errors: '' })
        expect(new Set(await workersOf(during)).size).toBe(2)
        expect(await requestUsage(databaseUrl, 'call-')).toEqual(names)
      },
      CLUSTER_START_MS,
    )
  })
})
