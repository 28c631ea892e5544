import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { parseConfig } from '../../test/support/config.js'
import { parseScrape, valueOf } from '../../test/support/prometheus-text.js'
import { attemptRecord } from '../../test/support/raw-upstream.js'
import { ConfigError } from '../config/faults.js'
import { ConfigStore } from '../config/config-store.js'
import { type ErrorKind, GatewayError } from '../core/errors.js'
import { RequestContext } from '../core/request-context.js'
import { metricsAddress, MetricsPortInUse, MetricsServer } from './metrics-server.js'
import {
  BucketCounts,
  byLabel,
  mergedMetricsText,
  Metrics,
  registerCounter,
  registerGauge,
  registerHistogram,
  single,
} from './metrics.js'
import { GatewayMetrics, ProcessMetrics } from './process-metrics.js'
import { Readiness } from './readiness.js'
import { RequestHooks } from './request-hooks.js'
import { AttemptMetrics } from './request-metrics.js'

const shown = (durations: readonly number[]): Metrics => {
  const metrics = new Metrics()
  const boundsMs = [10, 250]
  const counts = new BucketCounts(boundsMs)
  for (const duration of durations) counts.observe(duration)
  registerHistogram(metrics, { name: 'gateway_test_seconds', help: 'Test.', labelNames: ['route'], boundsMs }, () => [
    { labels: { route: '/a' }, counts },
  ])
  return metrics
}

describe('Counted durations', () => {
  it('are shown in seconds, each bucket with the shorter ones, its bound included', async () => {
    const text = await shown([0, 10, 10.5, 250, 250.5, 4000]).collectText()
    expect(text.trimEnd().split('\n')).toEqual([
      '# HELP gateway_test_seconds Test.',
      '# TYPE gateway_test_seconds histogram',
      'gateway_test_seconds_bucket{route="/a",le="0.01"} 2',
      'gateway_test_seconds_bucket{route="/a",le="0.25"} 4',
      'gateway_test_seconds_bucket{route="/a",le="+Inf"} 6',
      'gateway_test_seconds_sum{route="/a"} 4.521',
      'gateway_test_seconds_count{route="/a"} 6',
    ])
  })

  it('of several processes are added up, bucket by bucket', async () => {
    const snapshots = await Promise.all([shown([5, 20]), shown([5])].map((metrics) => metrics.collectSnapshot()))
    // As they come over a channel between processes.
    const text = await mergedMetricsText(JSON.parse(JSON.stringify(snapshots)) as object[][])
    expect(text).toContain('gateway_test_seconds_bucket{route="/a",le="0.01"} 2')
    expect(text).toContain('gateway_test_seconds_bucket{route="/a",le="+Inf"} 3')
    expect(text).toContain('gateway_test_seconds_sum{route="/a"} 0.03')
    expect(text).toContain('gateway_test_seconds_count{route="/a"} 3')
  })
})

const metric = (name: string, labelNames: readonly string[] = []) => ({ name, help: `${name}.`, labelNames })
const valuesIn = (text: string): string[] => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))

describe('The metrics of a process', () => {
  it('are read when a scrape asks, and what is no longer read is no longer shown', async () => {
    const metrics = new Metrics()
    let channels: Record<string, number> = { one: 1, two: 2 }
    registerCounter(metrics, metric('gateway_a_total', ['channel']), () => byLabel('channel', channels))
    expect(valuesIn(await metrics.collectText())).toEqual([
      'gateway_a_total{channel="one"} 1',
      'gateway_a_total{channel="two"} 2',
    ])
    channels = { two: 5 }
    expect(valuesIn(await metrics.collectText())).toEqual(['gateway_a_total{channel="two"} 5'])
  })

  it('escape what labels may hold', async () => {
    const metrics = new Metrics()
    registerGauge(metrics, metric('gateway_a', ['channel']), () => byLabel('channel', { 'a"b\\c\nd': 1 }))
    expect(valuesIn(await metrics.collectText())).toEqual(['gateway_a{channel="a\\"b\\\\c\\nd"} 1'])
  })

  it('are told without the one that fails, which is counted', async () => {
    const metrics = new Metrics()
    registerGauge(metrics, metric('gateway_bad'), () => {
      throw new Error('broken')
    })
    registerGauge(metrics, metric('gateway_good'), () => single(1))
    expect(valuesIn(await metrics.collectText())).toEqual(['gateway_good 1'])
    expect(metrics.collectFailures).toBe(1)
    expect(await metrics.collectSnapshot()).toHaveLength(1)
    expect(metrics.collectFailures).toBe(2)
  })

  it('are told without the one that does not answer, after two seconds', async () => {
    jest.useFakeTimers()
    try {
      const metrics = new Metrics()
      registerGauge(metrics, metric('gateway_hanging'), () => new Promise<never>(() => undefined))
      registerGauge(metrics, metric('gateway_good'), () => single(1))
      const text = metrics.collectText()
      await jest.advanceTimersByTimeAsync(2_000)
      expect(valuesIn(await text)).toEqual(['gateway_good 1'])
      expect(metrics.collectFailures).toBe(1)
    } finally {
      jest.useRealTimers()
    }
  })

  it('are collected once for those who ask at the same time', async () => {
    const metrics = new Metrics()
    let reads = 0
    registerGauge(metrics, metric('gateway_a'), () => single(++reads))
    const [one, other] = await Promise.all([metrics.collectText(), metrics.collectText()])
    expect([one === other, reads]).toEqual([true, 1])
    await metrics.collectText()
    expect(reads).toBe(2)
  })

  it('are those of one gateway when several processes are told together: added up, or as each has it', async () => {
    const snapshots = await Promise.all(
      [1, 3].map((value) => {
        const metrics = new Metrics()
        registerCounter(metrics, metric('gateway_a_total', ['route']), () => byLabel('route', { '/x': value }))
        registerGauge(metrics, { ...metric('gateway_b'), aggregator: 'max' }, () => single(value))
        registerGauge(metrics, { ...metric('gateway_c'), aggregator: 'min' }, () => single(value))
        return metrics.collectSnapshot()
      }),
    )
    const text = await mergedMetricsText(JSON.parse(JSON.stringify(snapshots)) as object[][])
    expect(valuesIn(text)).toEqual(['gateway_a_total{route="/x"} 4', 'gateway_b 3', 'gateway_c 1'])
  })
})

describe('Readiness', () => {
  it('is ready once it is announced, and not any more once the drain begins', () => {
    const readiness = new Readiness()
    expect(readiness).toMatchObject({ isReady: false, status: 'starting' })
    readiness.markReady()
    expect(readiness).toMatchObject({ isReady: true, status: 'ready' })
    readiness.markDraining()
    expect(readiness).toMatchObject({ isReady: false, isDraining: true, status: 'draining' })
  })

  it('is not ready any more while it serves on, which probes cannot tell from the drain', () => {
    const readiness = new Readiness()
    readiness.markReady()
    expect(readiness.isLeaving).toBe(false)
    readiness.markLeaving()
    expect(readiness).toMatchObject({ isReady: false, isLeaving: true, isDraining: false, status: 'draining' })
    readiness.markDraining()
    expect(readiness).toMatchObject({ isReady: false, isLeaving: true, isDraining: true, status: 'draining' })
  })

  it('tells listeners when the drain begins, and others when its grace time is over', () => {
    const readiness = new Readiness()
    const told: string[] = []
    readiness.onGraceOver(() => told.push('grace over'))
    readiness.onDraining(() => told.push('draining'))
    readiness.markLeaving()
    expect(told).toEqual([])
    readiness.markDraining()
    expect(told).toEqual(['draining'])
    readiness.markGraceOver()
    expect(told).toEqual(['draining', 'grace over'])
  })

  it('is not ready without its store, and says so unless there is a better reason', () => {
    const readiness = new Readiness()
    readiness.markStoreLost()
    expect(readiness).toMatchObject({ isReady: false, status: 'starting' })
    readiness.markReady()
    expect(readiness).toMatchObject({ isReady: false, status: 'store_unreachable' })
    readiness.markStoreBack()
    expect(readiness).toMatchObject({ isReady: true, status: 'ready' })
  })
})

const configOf = (...ids: readonly string[]) => {
  const channels = ids.map((id) => ({ id, provider: 'p1', baseUrl: 'http://127.0.0.1:1', credentials: 'key' }))
  return parseConfig(JSON.stringify({ channels }), {})
}

/** The metrics of a gateway with the channels `one` and `two`, of which a reload leaves `two`. */
function counting() {
  const metrics = new Metrics()
  const hooks = new RequestHooks()
  const store = new ConfigStore(configOf('one', 'two'), () =>
    Promise.resolve({ config: configOf('two', 'three'), file: '' }),
  )
  new AttemptMetrics(store, hooks, metrics)
  const end = (tried: readonly (readonly [channelId: string, failure?: ErrorKind])[], failure?: unknown): void => {
    const call = new RequestContext('req_1', 'POST', '/v1/chat/completions', 0)
    call.log.failure = failure
    for (const [channelId, kind] of tried) {
      call.log.attempts.push(attemptRecord(channelId, 0, { failure: kind }))
    }
    hooks.over(call, { status: 200, left: false, totalMs: 1, gatewayMs: 1 })
  }
  const attempts = async (): Promise<Record<string, number>> => {
    const family = parseScrape(await metrics.collectText()).get('gateway_attempts_total')
    return Object.fromEntries(
      (family?.samples ?? []).map(({ labels, value }) => [
        `${String(labels['channel'])} ${String(labels['outcome'])}`,
        value,
      ]),
    )
  }
  return { metrics, store, end, attempts }
}

describe('Attempts', () => {
  it('are counted by channel and outcome', async () => {
    const { end, attempts } = counting()
    end([['one']])
    end([['one', 'upstream_failed'], ['two']])
    end([['one', 'upstream_timeout']], new GatewayError('upstream_timeout', 'late'))
    expect(await attempts()).toEqual({ 'one ok': 1, 'one upstream_failed': 1, 'one upstream_timeout': 1, 'two ok': 1 })
  })

  it('that seemed to succeed have failed when their upstream broke the answer off', async () => {
    const { end, attempts } = counting()
    end([['one', 'upstream_failed'], ['two']], new GatewayError('upstream_failed', 'cut'))
    end([['two']], new GatewayError('caller_left', 'left'))
    expect(await attempts()).toEqual({ 'one upstream_failed': 1, 'two upstream_failed': 1, 'two ok': 1 })
  })

  it('of a channel that a reload has taken away are forgotten, and those of calls that end later not begun', async () => {
    const { end, attempts, store } = counting()
    end([['one'], ['two']])
    await store.reload()
    end([['one']])
    end([['three']])
    expect(await attempts()).toEqual({ 'two ok': 1, 'three ok': 1 })
  })

  it('that failed for an unknown reason are faults of the gateway', async () => {
    const { end, metrics } = counting()
    end([], new Error('odd'))
    const scrape = parseScrape(await metrics.collectText())
    expect(valueOf(scrape, 'gateway_failures_total', { kind: 'internal' })).toBe(1)
    expect(valueOf(scrape, 'gateway_failures_total', { kind: 'rate_limited' })).toBe(0)
  })
})

describe('What the gateway says of itself', () => {
  it('is how its reloads went, and since when its configuration is in force', async () => {
    const config = parseConfig('{}', {})
    const outcomes = [
      () => Promise.reject(new ConfigError([{ path: 'server', message: 'is wrong' }])),
      () => Promise.resolve({ config, file: '' }),
      () => Promise.resolve(undefined),
    ]
    const store = new ConfigStore(config, () => outcomes.shift()?.() ?? Promise.resolve(undefined))
    const metrics = new Metrics()
    new GatewayMetrics(store, new Readiness(), metrics)
    const scrape = async () => parseScrape(await metrics.collectText())
    const started = valueOf(await scrape(), 'gateway_config_applied_timestamp_seconds') ?? 0
    for (let reloads = 0; reloads < 3; reloads++) await store.reload()
    const after = await scrape()
    expect(valueOf(after, 'gateway_config_reloads_total', { outcome: 'applied' })).toBe(1)
    expect(valueOf(after, 'gateway_config_reloads_total', { outcome: 'refused' })).toBe(2)
    expect(valueOf(after, 'gateway_config_applied_timestamp_seconds')).toBeGreaterThanOrEqual(started)
    expect(started).toBeGreaterThan(1_700_000_000)
  })

  it('is its version, and whether it is ready', async () => {
    const readiness = new Readiness()
    const metrics = new Metrics()
    new GatewayMetrics(new ConfigStore(parseConfig('{}', {})), readiness, metrics)
    const read = async (name: string) => parseScrape(await metrics.collectText()).get(name)?.samples[0]
    expect((await read('gateway_build_info'))?.labels).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      node: process.version,
    })
    expect((await read('gateway_ready'))?.value).toBe(0)
    readiness.markReady()
    expect((await read('gateway_ready'))?.value).toBe(1)
    readiness.markStoreLost()
    expect((await read('gateway_ready'))?.value).toBe(0)
  })
})

describe('metrics server', () => {
  const TEXT = '# HELP gateway_a A, with ü.\n# TYPE gateway_a gauge\ngateway_a 1\n'
  const HOST = '127.0.0.1'

  const running: MetricsServer[] = []

  afterEach(async () => {
    for (const server of running.splice(0)) await server.close()
  })

  function metricsServer(port?: number, collect: () => Promise<string> = () => Promise.resolve(TEXT)): MetricsServer {
    const server = new MetricsServer({ host: HOST, ...(port === undefined ? {} : { port }) }, collect)
    running.push(server)
    return server
  }

  async function listening(collect?: () => Promise<string>): Promise<string> {
    const server = metricsServer(0, collect)
    await server.listen()
    return `http://${HOST}:${String(server.port)}`
  }

  describe('The server of the metrics', () => {
    it('answers a scraper in the text format, whatever query it sends', async () => {
      const url = await listening()
      for (const path of ['/metrics', '/metrics?name=x']) {
        const answer = await fetch(`${url}${path}`)
        expect([answer.status, answer.headers.get('content-type')]).toEqual([
          200,
          'text/plain; version=0.0.4; charset=utf-8',
        ])
        expect(await answer.text()).toBe(TEXT)
      }
      const head = await fetch(`${url}/metrics`, { method: 'HEAD' })
      expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([
        200,
        String(Buffer.byteLength(TEXT)),
        '',
      ])
    })

    it('has nothing else, and nothing to write to', async () => {
      const url = await listening()
      const statuses = ['/', '/metrics/', '/v1/models', '/health/live'].map(
        async (path) => (await fetch(url + path)).status,
      )
      expect(await Promise.all(statuses)).toEqual([404, 404, 404, 404])
      const written = await fetch(`${url}/metrics`, { method: 'POST', body: 'x' })
      expect([written.status, written.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    })

    it('says so when nothing can be collected, without saying why', async () => {
      const url = await listening(() => Promise.reject(new Error('canary')))
      const answer = await fetch(`${url}/metrics`)
      expect(answer.status).toBe(500)
      expect(await answer.text()).not.toContain('canary')
    })

    it('names the port, and what to do, when another server listens there', async () => {
      const first = metricsServer(0)
      await first.listen()
      const second = metricsServer(first.port)
      const refused = await second.listen().catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(MetricsPortInUse)
      expect(String(refused)).toMatch(new RegExp(`\\(${String(first.port)}\\) is in use.*METRICS_PORT=<number>`))
      expect(second.port).toBeUndefined()
    })

    it('is off without a port', async () => {
      const server = metricsServer()
      await server.listen()
      expect(server.port).toBeUndefined()
    })

    it('listens once, may be closed twice, and cuts who is still there', async () => {
      const server = metricsServer(0, () => new Promise<never>(() => undefined))
      await server.listen()
      const port = server.port
      await server.listen()
      expect(server.port).toBe(port)
      const scraper = connect(port ?? 0, HOST).on('error', () => undefined)
      await once(scraper, 'connect')
      scraper.write(`GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n`)
      const ended = new Promise((resolve) => scraper.once('close', resolve))
      await server.close()
      await server.close()
      await ended
      expect(server.port).toBeUndefined()
    })
  })

  describe('Its address', () => {
    it.each([
      ['this machine alone, on 9090', {}, {}, { host: '127.0.0.1', port: 9090 }],
      ['off with port 0', { server: { metricsPort: 0 } }, {}, { host: '127.0.0.1' }],
      ['that of the variable', {}, { METRICS_HOST: '10.0.0.1' }, { host: '10.0.0.1', port: 9090 }],
      ['any in a container', {}, { GATEWAY_CONTAINER: 'true' }, { host: '0.0.0.0', port: 9090 }],
      [
        'one of its own',
        { server: { host: '10.0.0.1', metricsPort: 9100 }, observability: { metricsHost: '10.0.0.2' } },
        { GATEWAY_CONTAINER: 'true' },
        { host: '10.0.0.2', port: 9100 },
      ],
    ])('is %s', (_what, sections, variables, address) => {
      expect(metricsAddress(parseConfig(JSON.stringify(sections), variables))).toEqual(address)
    })
  })
})

const BLOCK_MS = 150

async function blockLoop(): Promise<void> {
  const untilMs = performance.now() + BLOCK_MS
  while (performance.now() < untilMs);
  await nextTurn()
}

describe('What a scrape says of the process', () => {
  it('is how late the event loop was since the scrape before, and nothing of the time before that', async () => {
    const metrics = new Metrics()
    const watch = new ProcessMetrics(metrics)
    const worst = async (): Promise<number | undefined> =>
      valueOf(parseScrape(await metrics.collectText()), 'gateway_event_loop_delay_seconds', { statistic: 'max' })
    try {
      expect(await worst()).toBeUndefined()
      // Only what comes between two of its looks is counted, and it has looked at nothing yet.
      for (let blocks = 0; blocks < 3; blocks++) await blockLoop()
      expect(await worst()).toBeGreaterThan((BLOCK_MS - 50) / 1000)
      // A machine that is busy with others may be late again, but not every time.
      while (((await worst()) ?? 0) > (BLOCK_MS - 50) / 1000);
    } finally {
      watch.onApplicationShutdown()
    }
  })

  it('is what it takes of the machine', async () => {
    const metrics = new Metrics()
    const watch = new ProcessMetrics(metrics)
    const scrape = parseScrape(await metrics.collectText())
    watch.onApplicationShutdown()
    expect(valueOf(scrape, 'process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
    expect(valueOf(scrape, 'gateway_memory_bytes', { use: 'heap_used' })).toBeGreaterThan(1_000_000)
    expect(valueOf(scrape, 'process_cpu_seconds_total')).toBeGreaterThan(0)
    expect(valueOf(scrape, 'process_open_fds')).toBeGreaterThan(2)
    expect(valueOf(scrape, 'process_start_time_seconds')).toBeLessThan(Date.now() / 1000)
  })
})
