import { execFileSync, spawn } from 'node:child_process'
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as passTime } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { deserialize, serialize } from 'node:v8'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { Counter, Gauge } from 'prom-client'
import { parseConfig } from '../../test/support/config.js'
import { ConfigStore, handedOver } from '../config/config-store.js'
import type { GatewayConfig } from '../config/settings.js'
import { BatchedOutput } from '../observability/log-writer.js'
import { createLogging } from '../observability/logger.js'
import { mergedMetricsText, Metrics } from '../observability/metrics.js'
import {
  completed,
  EndedWorkers,
  numberedLines,
  type ReloadResult,
  RestartDelay,
  WorkerLines,
} from './cluster-child.js'
import { assertAlone, WorkerPool, withWorkers, workersNote, workersOf } from './cluster-primary.js'
import { ReceivedConfig } from './cluster-worker.js'

/** Of a worker that counted so many requests. */
function worker(requests: number): Metrics {
  const metrics = new Metrics()
  const registers = [metrics.registry]
  new Counter({ name: 'gateway_requests_total', help: 'h', labelNames: ['status'], registers }).inc(
    { status: '200' },
    requests,
  )
  new Gauge({ name: 'gateway_in_flight', help: 'h', registers }).set(requests)
  return metrics
}

describe('workers that have ended', () => {
  it('leave what they counted to the sums, and nothing of what they were doing', async () => {
    const ended = new EndedWorkers()
    for (const requests of [5, 7]) ended.add(await worker(requests).collectSnapshot())
    const text = await mergedMetricsText([await worker(1).collectSnapshot(), await ended.snapshot()])
    expect(text).toMatch(/^gateway_requests_total\{status="200"\} 13$/m)
    expect(text).toMatch(/^gateway_in_flight 1$/m)
  })

  it('that never told anything leave nothing', async () => {
    const ended = new EndedWorkers()
    ended.add([])
    expect(await ended.snapshot()).toEqual([])
  })
})

describe('what a worker tells', () => {
  it('is made up from what it told before, where it could not tell a counter in time', async () => {
    const before = await worker(5).collectSnapshot()
    const late = (await worker(6).collectSnapshot()).filter((metric) => Reflect.get(metric, 'type') !== 'counter')
    expect(await mergedMetricsText([completed(late, before)])).toMatch(/^gateway_requests_total\{status="200"\} 5$/m)
    const text = await mergedMetricsText([completed(await worker(7).collectSnapshot(), before)])
    expect(text).toMatch(/^gateway_requests_total\{status="200"\} 7$/m)
    expect(await mergedMetricsText([completed([], before)])).not.toContain('gateway_in_flight')
  })
})

describe('the log of a worker', () => {
  it('has its number in every line', () => {
    const lines: string[] = []
    const { logger, sink } = createLogging('info', numberedLines(3, { write: (line) => lines.push(line) }))
    logger.info({ status: 1 }, 'from pino')
    sink.write('{"level":30,"msg":"past pino"}\n')
    expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
      expect.objectContaining({ worker: 3, status: 1, msg: 'from pino' }),
      { worker: 3, level: 30, msg: 'past pino' },
    ])
    expect(lines.every((line) => line.endsWith('}\n'))).toBe(true)
  })

  it('is left alone where it is no object', () => {
    const lines: string[] = []
    const sink = numberedLines(3, { write: (line) => lines.push(line) })
    for (const line of ['plain words\n', '\n', '{}\n']) sink.write(line)
    expect(lines).toEqual(['plain words\n', '\n', '{}\n'])
  })
})

describe('the delay of a restart', () => {
  it('doubles with every worker that dies young, up to half a minute', () => {
    const delay = new RestartDelay()
    const delays = Array.from({ length: 11 }, () => delay.after(59_999))
    expect(delays).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000])
  })

  it('is short again after a worker that had settled', () => {
    const delay = new RestartDelay()
    delay.after(10)
    delay.after(10)
    expect([delay.after(60_000), delay.after(10), delay.after(10)]).toEqual([100, 100, 200])
  })
})

describe('cluster primary', () => {
  const STAND_IN = fileURLToPath(new URL('../../test/support/worker-stand-in.mjs', import.meta.url))
  const KILLED = 'a worker did not end in time and is killed'

  let fleet: WorkerPool | undefined
  afterEach(() => fleet?.end())

  /** Two workers that listen, and every line of the log as it comes. */
  async function startTwo(manner: 'obedient' | 'orderly' | 'deaf') {
    const lines: Record<string, unknown>[] = []
    const { logger, sink } = createLogging('info', {
      write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>),
    })
    cluster.setupPrimary({ exec: STAND_IN, args: [manner], execArgv: [] })
    const store = new ConfigStore(parseConfig('{server: {port: 4321}}', {}))
    fleet = new WorkerPool({ workers: 2, store, logger, sink })
    return { fleet, lines, address: await fleet.start() }
  }

  /** Those that run, by their places. */
  function running(): readonly [Worker, Worker] {
    const [first, second] = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
    if (first === undefined || second === undefined) throw new Error('there are no two workers')
    return [first, second]
  }

  /** What the fleet says that all have counted, and hold. */
  async function sums(fleet: WorkerPool): Promise<readonly (string | undefined)[]> {
    const text = await mergedMetricsText(await fleet.snapshots())
    return [/^counted_total (\d+)$/m, /^held (\d+)$/m].map((pattern) => pattern.exec(text)?.[1])
  }

  /** Two that have counted 5 and 7, and have told so once. */
  async function startCounting() {
    const { fleet } = await startTwo('deaf')
    const [first, second] = running()
    first.send({ order: 'count', by: 5 })
    second.send({ order: 'count', by: 7 })
    expect(await sums(fleet)).toEqual(['12', '12'])
    return { fleet, first, second }
  }

  describe('a fleet of workers', () => {
    it('hands every worker the configuration with its place', async () => {
      expect((await startTwo('obedient')).address).toBe('http://port-of-4321')
    })

    it('ends well, and has the last words of all in its log', async () => {
      const { fleet, lines } = await startTwo('obedient')
      expect(await fleet.drain('SIGTERM', 20_000)).toBe(true)
      expect(lines.map(({ worker, msg }) => [worker, msg]).sort()).toEqual([
        [1, 'last words'],
        [2, 'last words'],
      ])
    })

    it('kills a worker that has not ended in time, says so, and does not call that a good end', async () => {
      const { fleet, lines } = await startTwo('deaf')
      expect(await fleet.drain('SIGTERM', 300)).toBe(false)
      const killed = { level: 50, afterMs: 300, msg: KILLED }
      expect(lines).toMatchObject([
        { ...killed, ofWorker: 1 },
        { ...killed, ofWorker: 2 },
      ])
      expect(Object.values(cluster.workers ?? {})).toEqual([])
    })

    it('lets those that are overdue keep what they have, and waits for it', async () => {
      const { fleet, lines } = await startTwo('orderly')
      expect(await fleet.drain('SIGTERM', 300)).toBe(false)
      expect(lines.map(({ msg }) => msg).sort()).toEqual([KILLED, KILLED, 'kept', 'kept'])
    })

    it('lets all keep what they have when it is to end now, also amid a drain, and has their last words', async () => {
      const { fleet, lines } = await startTwo('orderly')
      const drained = fleet.drain('SIGTERM', 60_000)
      await fleet.end()
      expect(lines.map(({ worker, msg }) => [worker, msg]).sort()).toEqual([
        [1, 'kept'],
        [2, 'kept'],
      ])
      expect(await drained).toBe(false)
    })

    it('ends those that do not listen any more', async () => {
      const { fleet } = await startTwo('deaf')
      await fleet.end()
      expect(Object.keys(cluster.workers ?? {})).toEqual([])
    })

    it('starts no worker once it drains', async () => {
      const { fleet } = await startTwo('obedient')
      expect(await fleet.drain('SIGTERM', 20_000)).toBe(true)
      expect(await fleet.start()).toBeUndefined()
      expect(Object.keys(cluster.workers ?? {})).toEqual([])
    })
  })

  describe('the metrics of a fleet', () => {
    it('keep what a worker had counted that does not tell in time, and forget what it holds', async () => {
      const { fleet, first, second } = await startCounting()
      first.send({ order: 'count', by: 1 })
      second.send({ order: 'be-silent' })
      expect(await sums(fleet)).toEqual(['13', '6'])
      expect(await sums(fleet)).toEqual(['13', '6'])
    })

    it('count once what a worker told that dies before all others have', async () => {
      const { fleet, first, second } = await startCounting()
      second.send({ order: 'be-silent' })
      const told = once(first, 'message')
      const summed = sums(fleet)
      await told
      const died = once(first, 'exit')
      first.process.kill('SIGKILL')
      await died
      expect((await summed)[0]).toBe('12')
    })

    it('do not wait for a worker that dies in between', async () => {
      const { fleet, first, second } = await startCounting()
      second.send({ order: 'be-silent' })
      const order: string[] = []
      const replaced = once(cluster, 'fork').then(() => order.push('replaced'))
      const firstTold = once(first, 'message')
      const summed = sums(fleet).then((told) => {
        order.push('told')
        return told
      })
      await firstTold
      second.process.kill('SIGKILL')
      expect(await summed).toEqual(['12', '5'])
      await replaced
      // Another worker comes long before the patience with one that is silent is over, but never at once.
      expect(order).toEqual(['told', 'replaced'])
    })
  })
})

describe('lines of several workers', () => {
  /** The built log writer: Node runs no sources. */
  const LOG_WRITER = new URL('../../dist/observability/log-writer.js', import.meta.url)

  /** Each line says how long it is, most are short, some longer than any pipe takes at once. */
  const WRITER = `
import { BatchedOutput } from '${LOG_WRITER.href}'
const output = new BatchedOutput(1)
const [writer] = process.argv.slice(1)
let count = 0
const timer = setInterval(() => {
  for (let line = 0; line < 30; line++) {
    const length = [100, 300, 2500, 700, 20000][count % 5]
    output.write(JSON.stringify({ writer, count: count++, text: 'é'.repeat(length) }) + '\\n')
  }
  if (count === 150) clearInterval(timer)
}, 5)`

  const COUNTS = Array.from({ length: 150 }, (_, count) => count)
  const END_MARK = 'end\n'

  let directory = ''
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'worker-lines-'))
    writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
  })
  afterAll(() => {
    rmSync(directory, { recursive: true })
  })

  /** Reads a pipe a little at a time, so that it is full nearly always; resolves with everything before the end mark. */
  async function readSlowly(readEnd: number): Promise<string> {
    const reader = new Socket({ fd: readEnd, readable: true, writable: false }).setEncoding('utf8')
    let text = ''
    for await (const chunk of reader) {
      text += String(chunk)
      if (text.endsWith(END_MARK)) break
      await passTime(1)
    }
    return text.slice(0, -END_MARK.length)
  }

  it('are whole, complete and in the order of each in a full pipe that is read slowly, however long they are', async () => {
    const path = join(directory, 'pipe')
    execFileSync('mkfifo', [path])
    const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const writeEnd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    const output = new BatchedOutput(writeEnd)
    const lines = new WorkerLines(output)
    for (const [index, writer] of ['a', 'b', 'c', 'd'].entries()) {
      const options = ['--input-type=module', '--eval', WRITER, writer]
      const child = spawn(process.execPath, options, { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] })
      lines.follow(child.stdout, index + 1)
    }
    const text = readSlowly(readEnd)
    await lines.ended()
    output.write(END_MARK)
    const counts: Record<string, number[]> = {}
    for (const line of (await text).trimEnd().split('\n')) {
      const { worker, writer, count } = JSON.parse(line) as { worker: number; writer: string; count: number }
      ;(counts[`${writer}${worker}`] ??= []).push(count)
    }
    closeSync(writeEnd)
    expect(counts).toEqual({ a1: COUNTS, b2: COUNTS, c3: COUNTS, d4: COUNTS })
  })

  it('end where a worker was killed over one', async () => {
    const told: string[] = []
    const lines = new WorkerLines({ write: (line) => told.push(line) })
    const [killed, other] = [new PassThrough(), new PassThrough()]
    for (const [index, output] of [killed, other].entries()) lines.follow(output, index + 1)
    killed.write('{"msg":"o')
    other.end('{"msg":"other"}\n')
    killed.write('ne"}\n{"msg":"tw')
    killed.destroy()
    await lines.ended()
    expect(told.sort()).toEqual([
      '{"worker":1,"msg":"one"}\n',
      '{"worker":1,"msg":"tw\n',
      '{"worker":2,"msg":"other"}\n',
    ])
  })
})

describe('the configuration that the primary hands over', () => {
  const polling = (everyMs: number) => parseConfig(`{tasks: {pollIntervalMs: ${everyMs}}}`, {})
  const accepted = (everyMs: number, needsRestart: readonly string[] = []): ReloadResult =>
    // As it comes from another process.
    deserialize(serialize({ config: polling(everyMs), needsRestart })) as ReloadResult
  const REFUSED: ReloadResult = { faults: ['auth: must be a map'] }

  function worker() {
    const first = handedOver(deserialize(serialize(polling(1))) as GatewayConfig)
    let asked = 0
    const handed = new ReceivedConfig({ config: first }, () => {
      asked++
    })
    const store = new ConfigStore(first, handed.readAgain)
    return { handed, store, asked: () => asked, everyMs: () => store.current.tasks.pollIntervalMs }
  }

  it('answers who asked for it, with what needs a restart, and cannot be changed', async () => {
    const { handed, store, asked, everyMs } = worker()
    const reload = store.reload()
    await Promise.resolve()
    expect(asked()).toBe(1)
    handed.settle(accepted(2, ['redis']))
    expect(await reload).toEqual({ applied: true, needsRestart: ['redis'], listenerErrors: [] })
    expect([everyMs(), Object.isFrozen(store.current.tasks)]).toEqual([2, true])
  })

  it('is refused in the words of the primary, and the old one stays', async () => {
    const { handed, store, everyMs } = worker()
    const reload = store.reload()
    await Promise.resolve()
    handed.settle(REFUSED)
    expect(await reload).toEqual({ applied: false, faults: ['auth: must be a map'] })
    expect(await store.reload(handed.receive(REFUSED))).toEqual({ applied: false, faults: ['auth: must be a map'] })
    expect(everyMs()).toBe(1)
  })

  it('is never an older one, although it came while a reload here waited for the newer one', async () => {
    const { handed, store, everyMs } = worker()
    const asked = store.reload()
    await Promise.resolve()
    const heard = store.reload(handed.receive(accepted(2)))
    handed.settle(accepted(3))
    await Promise.all([asked, heard])
    expect(everyMs()).toBe(3)
  })

  it('is taken over although what a reload here had asked for is refused', async () => {
    const { handed, store, everyMs } = worker()
    const asked = store.reload()
    await Promise.resolve()
    const heard = store.reload(handed.receive(accepted(2)))
    handed.settle(REFUSED)
    await Promise.all([asked, heard])
    expect(everyMs()).toBe(2)
  })

  it('is what was heard last where no caller asked', async () => {
    const { handed, store, everyMs } = worker()
    await Promise.all([2, 3, 4].map((ms) => store.reload(handed.receive(accepted(ms)))))
    expect(everyMs()).toBe(4)
  })
})

const config = (workers: string, database = '') =>
  parseConfig(`{server: {workers: ${workers}}, database: {${database}}}`, {})
const POSTGRES = 'url: "postgres://db/gateway"'

describe('the number of workers', () => {
  it('is what the configuration says, auto being the number of processors, where the store is PostgreSQL', () => {
    expect(['1', '3', 'auto'].map((workers) => workersOf(config(workers, POSTGRES), 6))).toEqual([1, 3, 6])
  })

  it('is one on the embedded store, and the log says why auto is', () => {
    expect(['1', 'auto'].map((workers) => workersOf(config(workers), 6))).toEqual([1, 1])
    expect(workersNote(config('auto'))).toMatch(/^one worker, as the embedded store belongs to one process/)
    expect([workersNote(config('1')), workersNote(config('auto', POSTGRES))]).toEqual([undefined, undefined])
  })

  it('above one is refused on the embedded store, with the reason and a way out', () => {
    expect(() => workersOf(config('2'), 6)).toThrow(/WORKERS\) is 2, but the embedded store.*DATABASE_URL/)
  })

  it('that auto comes to is one where limits are counted without Redis, and the log says why', () => {
    const limited = (more: string) =>
      parseConfig(
        `{server: {workers: auto}, database: {${POSTGRES}}, auth: {defaultLimits: {concurrency: 4}}${more}}`,
        {},
      )
    expect(workersOf(limited(''), 6)).toBe(1)
    expect(workersNote(limited(''))).toMatch(
      /^one worker, as several would each count limits by themselves; with REDIS/,
    )
    const shared = limited(', redis: {url: "redis://h"}')
    expect([workersOf(shared, 6), workersNote(shared)]).toEqual([6, undefined])
    expect(withWorkers(shared, 6).server.workers).toBe(6)
    expect(withWorkers(limited(''), 1).server.workers).toBe(1)
  })

  it('above one is refused in the sandbox, whatever the store', () => {
    for (const workers of ['1', 'auto'])
      expect(() => {
        assertAlone(config(workers))
      }).not.toThrow()
    expect(() => {
      assertAlone(config('2', POSTGRES))
    }).toThrow(/WORKERS is 2.*sandbox.*gateway\.yaml/)
  })

  it('stands in the configuration that everything else sees', () => {
    expect(withWorkers(config('auto', POSTGRES), 6).server).toMatchObject({ workers: 6, port: 8080 })
  })
})
