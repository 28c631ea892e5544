import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { mergedMetricsText, Metrics } from '../../src/observability/metrics.js'
import { eventually } from '../support/eventually.js'
import { type MetricFamily, parseScrape, valueOf } from '../support/prometheus-text.js'
import { STORE_START_MS } from '../support/stores.js'
import { startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'

/** What each process has for itself, so that all of them together have the sum. */
const ADDED_UP = [
  'gateway_admission_bytes',
  'gateway_admission_requests',
  'gateway_background_work',
  'gateway_channel_waiting',
  'gateway_documents',
  'gateway_memory_bytes',
  'gateway_realtime_sessions',
  'gateway_requests_in_flight',
  'gateway_usage_queue_rows',
  'process_open_fds',
  'process_resident_memory_bytes',
]

const WORKERS = 3

let lab: VidgenGateway
beforeAll(async () => {
  lab = await startVidgenGateway()
}, STORE_START_MS)
afterAll(() => lab.close())

const snapshot = () => lab.gateway.application.get(Metrics).collectSnapshot()

/** As the primary tells it of workers that all find the same. */
const mergedScrape = async (): Promise<ReadonlyMap<string, MetricFamily>> =>
  parseScrape(await mergedMetricsText(Array<Awaited<ReturnType<typeof snapshot>>>(WORKERS).fill(await snapshot())))

describe('The metrics of several workers on one store', () => {
  it('count every task and callback once', async () => {
    const caller = new VideoCaller(lab.gateway)
    lab.receiver.answer = (response) => response.writeHead(500).end()
    const task = await caller.created({ callback_url: lab.receiver.url() })
    await caller.created()
    lab.simulator.settle(task, 'succeed')
    await caller.read(task)
    // The store is counted once in a while only, so it has to be done before the first scrape.
    await eventually(async () =>
      (await caller.deliveries(task)).body.data.some(({ exhausted_at: exhaustedAt }) => exhaustedAt !== null),
    )
    const scrape = await mergedScrape()
    expect(valueOf(scrape, 'gateway_callbacks', { state: 'exhausted' })).toBe(1)
    expect(valueOf(scrape, 'gateway_tasks', { state: 'submitted' })).toBe(1)
    expect(valueOf(scrape, 'gateway_tasks_ended_total', { state: 'succeed' })).toBe(WORKERS)
  })

  it('add up nothing but what each worker has for itself', async () => {
    const gauges = (await snapshot()).filter((metric) => Reflect.get(metric, 'type') === 'gauge')
    const names = gauges
      .filter((gauge) => Reflect.get(gauge, 'aggregator') === 'sum')
      .map((gauge) => String(Reflect.get(gauge, 'name')))
    expect(names.sort()).toEqual(ADDED_UP)
    expect(gauges.length).toBeGreaterThan(ADDED_UP.length + 8)
  })
})
