import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { beforeEach, describe, expect, it } from '@jest/globals'
import { mergedMetricsText, Metrics } from '../../src/observability/metrics.js'
import { documentPart, startDocumentLab } from '../support/document-lab.js'
import { endlessWork, eventually } from '../support/eventually.js'
import { ask, CHAT, FULL, FullGateway, KeptAliveClient } from '../support/failing-calls.js'
import { CHAT_PATH, chatText, connectTo, openRaw, sendRaw, startGateway, TEST_KEY } from '../support/gateway.js'
import { closeAfterEach, shareLab } from '../support/lab-lifetime.js'
import { childrenOf } from '../support/parser-pools.js'
import {
  type MetricFamily,
  parseScrape,
  scrapable,
  type Scrape,
  type Scraper,
  seriesOf,
  startScraper,
  valueOf,
} from '../support/prometheus-text.js'
import { type P1Gateway, startP1Gateway } from '../support/provider-gateways.js'
import { startHoldingProxy } from '../support/proxies.js'
import { startRawUpstream } from '../support/raw-upstream.js'
import { connectRealtime, startRealtimeLab } from '../support/realtime-upstream.js'
import { startPostgres } from '../support/stores.js'
import { POLLED_OFTEN, startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { type ShownDelivery, VideoCaller } from '../support/video-caller.js'

describe('metrics', () => {
  const DELAY_MS = 120
  const CHAT = { route: CHAT_PATH, method: 'POST' }

  const opened = closeAfterEach()

  let lab: P1Gateway
  let scraper: Scraper
  beforeEach(async () => {
    lab = opened(await startP1Gateway({ withSecond: true, sections: await scrapable() }))
    scraper = opened(await startScraper(lab.gateway.application))
  })

  const post = (text: string, more: object = {}) =>
    sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText(text, more) })

  const requests = (scrape: Scrape, labels: Readonly<Record<string, string>>): number =>
    valueOf(scrape, 'gateway_requests_total', labels) ?? 0

  describe('A scrape after requests', () => {
    it('counts an answer by its route, with what it took and what it moved', async () => {
      const body = chatText('hello')
      const answer = await sendRaw(lab.gateway.url, { path: `${CHAT_PATH}?x=1`, body })
      const scrape = await scraper.untilValue('gateway_requests_total', { ...CHAT, status: '200', outcome: 'ok' }, 1)
      expect(valueOf(scrape, 'gateway_attempts_total', { channel: 'first', outcome: 'ok' })).toBe(1)
      expect(valueOf(scrape, 'gateway_received_bytes_total', { family: 'chat' })).toBe(Buffer.byteLength(body))
      expect(valueOf(scrape, 'gateway_sent_bytes_total', { family: 'chat' })).toBe(answer.body.length)
      expect(valueOf(scrape, 'gateway_requests_in_flight', { family: 'chat' })).toBe(0)
      expect(valueOf(scrape, 'gateway_breaker_state', { channel: 'first' })).toBe(0)
      expect(scrape.get('gateway_failures_total')?.samples.filter(({ value }) => value > 0)).toEqual([])
    })

    it('says how long each part took, never less than the upstream did', async () => {
      lab.simulator.queueFault({ kind: 'delay', ms: DELAY_MS })
      await post('hello')
      const counted = { route: CHAT_PATH, phase: 'total' }
      const scrape = await scraper.untilValue('gateway_request_seconds_count', counted, 1)
      const seconds = (phase: string): number =>
        valueOf(scrape, 'gateway_request_seconds_sum', { route: CHAT_PATH, phase }) ?? 0
      // Timers may ring a millisecond early.
      const leastSeconds = (DELAY_MS - 1) / 1000
      for (const phase of ['first_byte', 'upstream', 'total'])
        expect(seconds(phase)).toBeGreaterThanOrEqual(leastSeconds)
      expect(seconds('total')).toBeGreaterThanOrEqual(seconds('upstream') + seconds('receive'))
      expect(seconds('gateway')).toBeLessThanOrEqual(seconds('total') - seconds('upstream') + 1e-9)
      const faster = { route: CHAT_PATH, phase: 'upstream', le: '0.1' }
      expect(valueOf(scrape, 'gateway_request_seconds_bucket', faster)).toBe(0)
    })

    it('counts every attempt by its channel, and how it failed', async () => {
      lab.simulator.queueFault('500')
      await post('hello')
      // Of the used connection and of the new one on which it is sent once more: one attempt.
      lab.simulator.queueFault('reset')
      lab.simulator.queueFault('reset')
      await post('hello')
      const scrape = await scraper.untilValue('gateway_requests_total', { ...CHAT, status: '200', outcome: 'ok' }, 2)
      expect(valueOf(scrape, 'gateway_attempts_total', { channel: 'first', outcome: 'upstream_failed' })).toBe(2)
      expect(valueOf(scrape, 'gateway_attempts_total', { channel: 'second', outcome: 'ok' })).toBe(2)
    })

    it('distinguishes faults of the caller and of the upstream from successes', async () => {
      await post('hello', { model: 'no-such-model' })
      await post('#400')
      await post('#cut', { stream: true })
      const scrape = await scraper.untilValue(
        'gateway_requests_total',
        { ...CHAT, status: '200', outcome: 'upstream_failed' },
        1,
      )
      expect(requests(scrape, { ...CHAT, status: '404', outcome: 'refused' })).toBe(1)
      expect(requests(scrape, { ...CHAT, status: '400', outcome: 'refused' })).toBe(1)
      // The stream had begun when its upstream cut it off: the attempt that seemed to succeed did not.
      expect(valueOf(scrape, 'gateway_attempts_total', { channel: 'first', outcome: 'upstream_failed' })).toBe(1)
      expect(valueOf(scrape, 'gateway_failures_total', { kind: 'unknown_model' })).toBe(1)
    })

    it('shows what is under way, and that its caller left', async () => {
      const stream = await openRaw(lab.gateway.url, {
        path: CHAT_PATH,
        body: chatText('#chunks=10000000', { stream: true }),
      })
      await scraper.untilValue('gateway_requests_in_flight', { family: 'chat' }, 1)
      stream.destroy()
      const scrape = await scraper.untilValue('gateway_requests_in_flight', { family: 'chat' }, 0)
      expect(requests(scrape, { ...CHAT, status: '499', outcome: 'left' })).toBe(1)
      expect(valueOf(scrape, 'gateway_attempts_total', { channel: 'first', outcome: 'ok' })).toBe(1)
    })

    it('shows a breaker that has opened', async () => {
      for (let failures = 0; failures < 3; failures++) {
        lab.simulator.queueFault('500')
        await post('hello')
      }
      await scraper.untilValue('gateway_breaker_state', { channel: 'first' }, 2)
    })
  })

  describe('Hostile callers', () => {
    it('add no series, whatever paths, methods, models and ids they make up', async () => {
      const send = async (index: number): Promise<void> => {
        await sendRaw(lab.gateway.url, { method: 'GET', path: `/made/up/${index}` })
        await sendRaw(lab.gateway.url, { method: 'GET', path: `/v1/models/made-up-${index}` })
        await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('x', { model: `made-up-${index}` }) })
        await sendRaw(lab.gateway.url, {
          path: CHAT_PATH,
          headers: { authorization: `Bearer made-up-${index}` },
          body: '{}',
        })
        const method = ['PUT', 'DELETE', 'PROPFIND', 'MKCOL', 'SUBSCRIBE'][index % 5] ?? 'PUT'
        await sendRaw(lab.gateway.url, { method, path: CHAT_PATH })
      }
      const seriesIn = (scrape: Scrape): string[] =>
        [...scrape.values()].flatMap(({ samples }) => samples.map(seriesOf)).sort()
      // Each kind once, with each of the methods: from then on there is nothing new.
      for (let index = 0; index < 5; index++) await send(index)
      const other = { route: 'other', method: 'other', status: '404', outcome: 'refused' }
      // What the event loop and the garbage collector are like is watched from the first scrape on.
      await scraper.scrape()
      await scraper.untilValue('gateway_requests_total', other, 5)
      // Records of use are written behind.
      const isRecorded = (scrape: Scrape): boolean => scrape.get('gateway_usage_records_total')?.samples.length !== 0
      const before = seriesIn(await scraper.scrapeUntil(isRecorded))
      for (let index = 5; index < 205; index++) await send(index)
      const after = await scraper.untilValue('gateway_requests_total', other, 205)
      expect(seriesIn(after)).toEqual(before)
      expect(JSON.stringify([...after.values()])).not.toContain('made')
      expect(requests(after, { route: CHAT_PATH, method: 'other', status: '405', outcome: 'refused' })).toBe(205)
    })
  })
})

describe('metrics refusals', () => {
  /** The least that can be set, and less than any process of Node has. */
  const SHORT_OF_MEMORY = { admission: { memoryBytes: 67_108_864 } }
  /** Served at once while memory is short. */
  /** What one caller has: of sixteen, two are for others. */
  const PLACES_IN_SHORTAGE = 14
  const NONE = { concurrency: 0, loop_delay: 0, memory: 0, bytes: 0 }

  const opened = closeAfterEach()

  interface Lab {
    readonly lab: FullGateway
    readonly scraper: Scraper
  }

  async function start(sections: object): Promise<Lab> {
    const lab = opened(await FullGateway.start({ ...(await scrapable()), ...sections }))
    return { lab, scraper: opened(await startScraper(lab.gateway.application)) }
  }

  /** As many calls as that, one after the other: their statuses. */
  async function statusesOf({ lab }: Lab, count: number): Promise<number[]> {
    const statuses: number[] = []
    for (let call = 0; call < count; call++) statuses.push((await sendRaw(lab.url, CHAT)).status)
    return statuses
  }

  /** What stands in the scrape of requests that were refused because the process could not keep up, by reason. */
  function refusedIn(scrape: Scrape): Record<string, number> {
    const samples = scrape.get('gateway_admission_refused_total')?.samples ?? []
    return Object.fromEntries(samples.map(({ labels, value }) => [labels['reason'] ?? '', value]))
  }

  describe('A scrape after requests that the process could not keep up with', () => {
    it('tells that none was refused before one was', async () => {
      const { lab, scraper } = await start(FULL)
      expect((await sendRaw(lab.url, CHAT)).status).toBe(200)
      expect(refusedIn(await scraper.scrape())).toEqual(NONE)
    })

    it('counts those that were too many at once', async () => {
      const started = await start(FULL)
      const { answered } = await started.lab.fill()
      expect(await statusesOf(started, 3)).toEqual([503, 503, 503])
      expect(refusedIn(await started.scraper.scrape())).toEqual({ ...NONE, concurrency: 3 })
      started.lab.empty()
      expect((await answered).status).toBe(200)
      expect(refusedIn(await started.scraper.scrape())).toEqual({ ...NONE, concurrency: 3 })
    })

    it('counts those that came while memory was short', async () => {
      const started = await start(SHORT_OF_MEMORY)
      const { lab, scraper } = started
      await eventually(() => lab.admission.memoryLoad.isHigh)
      lab.hold()
      const answers = Array.from({ length: PLACES_IN_SHORTAGE }, () => sendRaw(lab.url, CHAT))
      await eventually(() => lab.held.length === PLACES_IN_SHORTAGE)
      expect(await statusesOf(started, 2)).toEqual([503, 503])
      expect(refusedIn(await scraper.scrape())).toEqual({ ...NONE, memory: 2 })
      lab.empty()
      await Promise.all(answers)
    })

    it('counts those for which the turns of the event loop were too long', async () => {
      const { lab, scraper } = await start({ admission: { loopDelayHighMs: 30, loopDelayLowMs: 10 } })
      const clients = Array.from({ length: 30 }, () => new KeptAliveClient(lab.url))
      const askAll = (): Promise<number[]> => Promise.all(clients.map(async (client) => (await client.ask()).status))
      const statuses = await askAll()
      const work = endlessWork(60)
      try {
        await eventually(
          async () => {
            statuses.push(...(await askAll()))
            return statuses.includes(503)
          },
          () => statuses,
        )
      } finally {
        work.stop()
      }
      for (const { socket } of clients) socket.destroy()
      const refused = statuses.filter((status) => status === 503).length
      expect(refusedIn(await scraper.scrape())).toEqual({ ...NONE, loop_delay: refused })
    })

    it('counts those whose bodies had no room beside what others send', async () => {
      const started = await start({ admission: { bytesInFlight: 500_000 } })
      const { lab, scraper } = started
      const stalled = connectTo(lab)
      const head = `POST ${CHAT.path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${TEST_KEY}\r\n`
      stalled.write(`${head}content-type: application/json\r\ncontent-length: 500000\r\n\r\n${'x'.repeat(499_000)}`)
      await eventually(() => lab.admission.memory.bytes === 500_000)
      expect(await statusesOf(started, 2)).toEqual([503, 503])
      expect(refusedIn(await scraper.scrape())).toEqual({ ...NONE, bytes: 2 })
      stalled.destroy()
      await eventually(() => lab.admission.memory.bytes === 0)
      expect(await statusesOf(started, 1)).toEqual([200])
      expect(refusedIn(await scraper.scrape())).toEqual({ ...NONE, bytes: 2 })
    })
  })
})

describe('metrics states', () => {
  const opened = closeAfterEach()

  /** The number of each channel's state. */
  const breakersIn = (scrape: Scrape): (number | undefined)[] =>
    ['first', 'second'].map((channel) => valueOf(scrape, 'gateway_breaker_state', { channel }))

  describe('A scrape while a channel fails and is well again', () => {
    it('tells that its breaker is closed (0), open (2), half open (1), and closed again', async () => {
      const sections = { ...(await scrapable()), breaker: { failures: 1, coolDownMs: 500 } }
      const lab = opened(await startP1Gateway({ withSecond: true, sections }))
      const scraper = opened(await startScraper(lab.gateway.application))
      expect(breakersIn(await scraper.scrape())).toEqual([0, 0])
      lab.simulator.queueFault('500')
      await ask(lab.gateway)
      expect(breakersIn(await scraper.scrape())).toEqual([2, 0])
      const cooled = await scraper.scrapeUntil((scrape) => breakersIn(scrape)[0] !== 2)
      expect(breakersIn(cooled)).toEqual([1, 0])
      await ask(lab.gateway)
      expect(breakersIn(await scraper.scrape())).toEqual([0, 0])
    })
  })

  describe('A scrape while callbacks fail', () => {
    it('tells how many wait for another attempt and how many were given up, in the store and by this process', async () => {
      const callbacks = { scheduleMs: [0, 3_600_000] }
      const lab = opened(await startVidgenGateway({ tasks: POLLED_OFTEN, callbacks, sections: await scrapable() }))
      const scraper = opened(await startScraper(lab.gateway.application))
      lab.receiver.answer = (response, { path }) => response.writeHead(path === '/gone' ? 410 : 500).end()
      const caller = new VideoCaller(lab.gateway)
      const create = (path: string) => caller.created({ callback_url: lab.receiver.url(path) })
      const ids = [await create('/gone'), await create('/busy'), await create('/busy')]
      const delivery = async (id: string): Promise<ShownDelivery | undefined> =>
        (await caller.deliveries(id)).body.data[0]
      for (const id of ids) lab.simulator.settle(id, 'succeed')
      // The store is counted at the first scrape, and then not for some seconds.
      await eventually(async () => {
        const deliveries = await Promise.all(ids.map(delivery))
        return deliveries.every((shown) => shown?.attempts === 1)
      })
      const scrape = await scraper.scrape()
      const stored = ['waiting', 'exhausted'].map((state) => valueOf(scrape, 'gateway_callbacks', { state }))
      expect(stored).toEqual([2, 1])
      const attempts = ['delivered', 'retry', 'exhausted'].map((outcome) =>
        valueOf(scrape, 'gateway_callback_attempts_total', { outcome }),
      )
      expect(attempts).toEqual([0, 2, 1])
    })
  })
})

describe('metrics workers', () => {
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
  shareLab(async () => (lab = await startVidgenGateway()))

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
})

describe('metrics values', () => {
  const opened = closeAfterEach()

  const scraperOf = async (application: Parameters<typeof startScraper>[0]): Promise<Scraper> =>
    opened(await startScraper(application))

  describe('A scrape after chats whose upstream says what they used', () => {
    it('tells the sums of their tokens by unit, class and channel', async () => {
      const usages = [
        { prompt_tokens: 17, completion_tokens: 5, total_tokens: 22 },
        { prompt_tokens: 4, completion_tokens: 9, total_tokens: 13, prompt_tokens_details: { cached_tokens: 3 } },
      ]
      const upstream = opened(
        await startRawUpstream((socket) => {
          const answer = JSON.stringify({ id: 'c', object: 'chat.completion', choices: [], usage: usages.shift() })
          const head = `content-type: application/json\r\ncontent-length: ${answer.length}`
          socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${answer}`)
        }),
      )
      const channel = { id: 'told', provider: 'p1', baseUrl: `http://127.0.0.1:${upstream.port}`, credentials: 'k' }
      const gateway = opened(await startGateway({ channels: [channel], sections: await scrapable() }))
      const scraper = await scraperOf(gateway.application)
      for (const text of ['one', 'two']) await sendRaw(gateway.url, { path: CHAT_PATH, body: chatText(text) })
      const of = { class: 'chat', channel: 'told' }
      const scrape = await scraper.untilValue('gateway_usage_units_total', { unit: 'completion_tokens', ...of }, 14)
      expect(valueOf(scrape, 'gateway_usage_units_total', { unit: 'prompt_tokens', ...of })).toBe(21)
      expect(valueOf(scrape, 'gateway_usage_units_total', { unit: 'cached_tokens', ...of })).toBe(3)
      expect(scrape.get('gateway_usage_units_total')?.samples.length).toBe(3)
    })
  })

  /** The one process of this gateway that reads documents. */
  function enginePid(): number {
    const engines = childrenOf(process.pid).filter((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('document-engine/dist/process.js'),
    )
    const [pid] = engines
    if (pid === undefined || engines.length > 1) throw new Error(`there are ${engines.length} engines, not one`)
    return pid
  }

  describe('A scrape while the one process that reads documents stands still', () => {
    it('tells how many documents it reads, and how many wait for it', async () => {
      const sections = { ...(await scrapable()), documents: { processes: 1, queue: 4 } }
      const lab = opened(await startDocumentLab({ sections }))
      const scraper = await scraperOf(lab.gateway.application)
      const read = async (name: string): Promise<number> =>
        (await lab.upload([documentPart(`<title>${name}</title><p>${name}</p>`, `${name}.html`, 'text/html')])).status
      expect(await read('first')).toBe(200)
      const idle = await scraper.untilValue('gateway_documents', { state: 'reading' }, 0)
      expect(valueOf(idle, 'gateway_documents', { state: 'waiting' })).toBe(0)

      const engine = enginePid()
      process.kill(engine, 'SIGSTOP')
      const held = ['second', 'third', 'fourth'].map(read)
      try {
        const full = await scraper.untilValue('gateway_documents', { state: 'waiting' }, 2)
        expect(valueOf(full, 'gateway_documents', { state: 'reading' })).toBe(1)
      } finally {
        process.kill(engine, 'SIGCONT')
      }
      expect(await Promise.all(held)).toEqual([200, 200, 200])
      const done = await scraper.untilValue('gateway_documents', { state: 'reading' }, 0)
      expect(valueOf(done, 'gateway_documents', { state: 'waiting' })).toBe(0)
    })
  })

  describe('A scrape while upstreams and receivers keep their answers back', () => {
    it('tells how many tasks are being asked for, and how many callbacks are on their way', async () => {
      const tasks = { pollIntervalMs: 50 }
      const lab = opened(await startVidgenGateway({ tasks, sections: await scrapable() }))
      const scraper = await scraperOf(lab.gateway.application)
      const held: ServerResponse[] = []
      lab.receiver.answer = (response) => held.push(response)
      const caller = new VideoCaller(lab.gateway)
      const ids = [await caller.created({ callback_url: lab.receiver.url() }), await caller.created()]
      lab.proxy.hold()
      const asking = await scraper.untilValue('gateway_background_work', { kind: 'polls' }, 2)
      expect(valueOf(asking, 'gateway_background_work', { kind: 'callbacks' })).toBe(0)

      for (const id of ids) lab.simulator.settle(id, 'succeed')
      lab.proxy.release()
      await lab.receiver.has(1)
      const telling = await scraper.untilValue('gateway_background_work', { kind: 'polls' }, 0)
      expect(valueOf(telling, 'gateway_background_work', { kind: 'callbacks' })).toBe(1)

      for (const response of held) response.writeHead(204).end()
      await scraper.untilValue('gateway_background_work', { kind: 'callbacks' }, 0)
    })
  })
})

describe('metrics background', () => {
  const opened = closeAfterEach()

  describe('A scrape during a realtime session', () => {
    it('shows the session and what has passed through it so far', async () => {
      const { gateway, upstream } = opened(await startRealtimeLab({ sections: await scrapable() }))
      const scraper = opened(await startScraper(gateway.application))
      const client = connectRealtime(gateway)
      await once(client, 'open')
      const open = await scraper.untilValue('gateway_realtime_sessions', {}, 1)
      expect(valueOf(open, 'gateway_requests_in_flight', { family: 'realtime' })).toBe(1)

      const event = JSON.stringify({ type: 'input_audio_buffer.commit' })
      const received = once(client, 'message')
      client.send(event)
      upstream.sockets[0]?.send('{"type":"response.created"}')
      upstream.sockets[0]?.send('{"type":"response.done"}')
      await received
      const running = await scraper.untilValue('gateway_realtime_events_total', { from: 'upstream' }, 2)
      expect(valueOf(running, 'gateway_realtime_bytes_total', { from: 'upstream' })).toBe(27 + 24)
      await scraper.untilValue('gateway_realtime_bytes_total', { from: 'client' }, event.length)

      client.close()
      const ended = await scraper.untilValue('gateway_requests_in_flight', { family: 'realtime' }, 0)
      expect(valueOf(ended, 'gateway_realtime_sessions')).toBe(0)
      expect(valueOf(ended, 'gateway_received_bytes_total', { family: 'realtime' })).toBe(event.length)
      const labels = { route: '/v1/realtime', method: 'GET', status: '101', outcome: 'ok' }
      expect(valueOf(ended, 'gateway_requests_total', labels)).toBe(1)
    })
  })

  describe('A scrape of a gateway with tasks', () => {
    it('shows how many stand where, and what became of tasks and callbacks', async () => {
      const tasks = { pollIntervalMs: 50 }
      const lab = opened(await startVidgenGateway({ tasks, sections: await scrapable() }))
      const scraper = opened(await startScraper(lab.gateway.application))
      const caller = new VideoCaller(lab.gateway)
      const [first] = [await caller.created({ callback_url: lab.receiver.url() }), await caller.created()]
      const scrape = await scraper.untilValue('gateway_tasks', { state: 'submitted' }, 2)
      expect(valueOf(scrape, 'gateway_store_up')).toBe(1)
      expect(valueOf(scrape, 'gateway_tasks', { state: 'processing' })).toBe(0)
      expect(valueOf(scrape, 'gateway_callbacks', { state: 'exhausted' })).toBe(0)
      lab.simulator.settle(first, 'succeed')
      await lab.receiver.has(1)
      const later = await scraper.untilValue('gateway_callback_attempts_total', { outcome: 'delivered' }, 1)
      expect(valueOf(later, 'gateway_tasks_ended_total', { state: 'succeed' })).toBe(1)
      expect(valueOf(later, 'gateway_tasks_ended_total', { state: 'failed' })).toBe(0)
    })
  })

  describe('A scrape while the store does not answer', () => {
    it('is answered all the same, without the counts, which are there once it answers', async () => {
      const postgres = opened(await startPostgres())
      const url = new URL(await postgres.emptyDatabase())
      const proxy = opened(await startHoldingProxy(Number(url.port)))
      url.port = String(proxy.port)
      const sections = { ...(await scrapable()), database: { url: url.href } }
      const lab = opened(await startVidgenGateway({ sections }))
      const scraper = opened(await startScraper(lab.gateway.application))
      opened(() => {
        proxy.release()
      })
      await new VideoCaller(lab.gateway).created()
      proxy.hold()
      const without = await scraper.scrape()
      expect(without.get('gateway_tasks')?.samples).toEqual([])
      expect(without.get('gateway_requests_total')?.samples.length).toBeGreaterThan(0)
      expect(valueOf(without, 'gateway_collect_failures_total')).toBe(0)
      proxy.release()
      await scraper.untilValue('gateway_tasks', { state: 'submitted' }, 1)
    })
  })
})
