import { readdir } from 'node:fs/promises'
import {
  constants,
  type IntervalHistogram,
  monitorEventLoopDelay,
  type PerformanceEntry,
  PerformanceObserver,
} from 'node:perf_hooks'
import { Injectable, type OnApplicationShutdown } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { gatewayVersion } from './logger.js'
import { byLabel, Metrics, type Reading, registerCounter, registerGauge, single } from './metrics.js'
import { Readiness } from './readiness.js'

/** Metrics of the gateway as a whole: its version, its configuration, its readiness. */
@Injectable()
export class GatewayMetrics {
  constructor(store: ConfigStore, readiness: Readiness, metrics: Metrics) {
    const version = gatewayVersion()
    const build = { name: 'gateway_build_info', help: 'Always 1; what runs here.', labelNames: ['version', 'node'] }
    registerGauge(metrics, { ...build, aggregator: 'first' }, () => [
      { labels: { version, node: process.version }, value: 1 },
    ])
    const ready = { name: 'gateway_ready', help: '1 when traffic is welcome, as /health/ready says.', labelNames: [] }
    registerGauge(metrics, { ...ready, aggregator: 'min' }, () => single(readiness.isReady ? 1 : 0))
    const failures = { name: 'gateway_collect_failures_total', help: 'Metrics left out of a scrape.', labelNames: [] }
    registerCounter(metrics, failures, () => single(metrics.collectFailures))
    registerReloads(store, metrics)
  }
}

function registerReloads(store: ConfigStore, metrics: Metrics): void {
  registerCounter(
    metrics,
    { name: 'gateway_config_reloads_total', help: 'Reloads of the configuration.', labelNames: ['outcome'] },
    () => {
      const { applied, refused } = store.reloads
      return byLabel('outcome', { applied, refused })
    },
  )
  registerGauge(
    metrics,
    {
      name: 'gateway_config_applied_timestamp_seconds',
      help: 'When the configuration in force was read.',
      labelNames: [],
      aggregator: 'min',
    },
    () => single(store.reloads.lastAppliedAtMs / 1000),
  )
}

/** Resolution of the event loop delay; each sample wakes an idle process. */
const LOOP_RESOLUTION_MS = 20

const COLLECTIONS: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weak_callback',
}

/** CPU, memory and event loop delay of the process, measured from the first scrape on. */
@Injectable()
export class ProcessMetrics implements OnApplicationShutdown {
  private loop: IntervalHistogram | undefined
  private collections: PerformanceObserver | undefined
  private readonly collectionMs: Record<string, number> = { major: 0, minor: 0, incremental: 0, weak_callback: 0 }

  constructor(metrics: Metrics) {
    this.registerLoop(metrics)
    this.registerMemory(metrics)
    this.registerProcess(metrics)
  }

  onApplicationShutdown(): void {
    this.loop?.disable()
    this.collections?.disconnect()
  }

  /** Since the previous scrape. */
  private loopDelays(): readonly Reading[] {
    const { loop } = this
    if (loop === undefined) {
      this.loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
      this.loop.enable()
      return []
    }
    const seconds = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - LOOP_RESOLUTION_MS / 1e3)
    const delays = {
      median: seconds(loop.percentile(50)),
      p99: seconds(loop.percentile(99)),
      max: loop.count === 0 ? 0 : seconds(loop.max),
    }
    loop.reset()
    return byLabel('statistic', delays)
  }

  private collectionSeconds(): readonly Reading[] {
    if (this.collections === undefined) {
      this.collections = new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) {
          const name = COLLECTIONS[kindOf(entry)]
          if (name !== undefined) this.collectionMs[name] = (this.collectionMs[name] ?? 0) + entry.duration
        }
      })
      this.collections.observe({ entryTypes: ['gc'] })
    }
    return byLabel('kind', this.collectionMs).map(({ labels, value }) => ({ labels, value: value / 1000 }))
  }

  private registerLoop(metrics: Metrics): void {
    registerGauge(
      metrics,
      {
        name: 'gateway_event_loop_delay_seconds',
        help: 'How late the event loop was, since the last scrape.',
        labelNames: ['statistic'],
        aggregator: 'max',
      },
      () => this.loopDelays(),
    )
    registerCounter(
      metrics,
      {
        name: 'gateway_garbage_collection_seconds_total',
        help: 'Time spent collecting garbage, since the first scrape.',
        labelNames: ['kind'],
      },
      () => this.collectionSeconds(),
    )
  }

  private registerMemory(metrics: Metrics): void {
    const resident = { name: 'process_resident_memory_bytes', help: 'Resident memory.', labelNames: [] }
    registerGauge(metrics, resident, () => single(process.memoryUsage.rss()))
    const heap = { name: 'gateway_memory_bytes', help: 'Memory of JavaScript, by use.', labelNames: ['use'] }
    registerGauge(metrics, heap, () => {
      const { heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage()
      return byLabel('use', { heap_used: heapUsed, heap_total: heapTotal, external, array_buffers: arrayBuffers })
    })
  }

  private registerProcess(metrics: Metrics): void {
    const cpu = { name: 'process_cpu_seconds_total', help: 'Processor time, user and system.', labelNames: [] }
    registerCounter(metrics, cpu, () => {
      const { user, system } = process.cpuUsage()
      return single((user + system) / 1e6)
    })
    const startSeconds = Math.round(performance.timeOrigin) / 1000
    const start = { name: 'process_start_time_seconds', help: 'When the process started.', labelNames: [] }
    registerGauge(metrics, { ...start, aggregator: 'min' }, () => single(startSeconds))
    const files = { name: 'process_open_fds', help: 'Open file descriptors; on Linux only.', labelNames: [] }
    registerGauge(metrics, files, async () => single(await openFiles()))
  }
}

/** The details of a garbage collection, which Node's types lack. */
function kindOf(entry: PerformanceEntry): number {
  const detail: unknown = Reflect.get(entry, 'detail')
  return typeof detail === 'object' && detail !== null ? Number(Reflect.get(detail, 'kind')) : 0
}

async function openFiles(): Promise<number> {
  const entries = await readdir('/proc/self/fd').catch(() => [])
  return entries.length
}
