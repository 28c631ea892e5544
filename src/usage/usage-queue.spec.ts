import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { contextAt } from '../../test/support/endpoints.js'
import { eventually } from '../../test/support/eventually.js'
import {
  away,
  chatCall,
  endedVideo,
  idsOf,
  MemoryUsage,
  OK,
  records,
  type UsageQueueLab,
  usageQueueLab,
  type UsageQueueOptions,
} from '../../test/support/usage-writer-lab.js'
import type { LogLevel } from '../config/settings.js'
import { GatewayError } from '../core/errors.js'
import { RequestContext, type Units } from '../core/request-context.js'
import type { UsageRecord } from '../core/usage-record.js'
import { createLogging } from '../observability/logger.js'
import { Metrics } from '../observability/metrics.js'
import { PriceTable } from './prices.js'
import { RecordDelivery } from './record-delivery.js'
import { RefusalEntries } from './refusals.js'
import { entryFromRequest, type UsageEntry } from './usage-entry.js'
import { DroppedUsage, UsageMetrics } from './usage-metrics.js'

describe('The usage queue', () => {
  let lab: UsageQueueLab

  async function begin(options: UsageQueueOptions): Promise<void> {
    await lab.close()
    lab = await usageQueueLab(options)
  }

  beforeEach(async () => {
    lab = await usageQueueLab()
  })
  afterEach(() => lab.close())

  const channel = (id: string): object => ({ id, provider: 'p1', baseUrl: 'http://127.0.0.1:1', credentials: 'secret' })

  function refuse(): void {
    const call = chatCall()
    call.log.usage = undefined
    call.log.failure = new GatewayError('rate_limited', '')
    lab.hooks.over(call, { ...OK, status: 429 })
  }

  it('has a record of every call that is over', async () => {
    lab.chat()
    lab.hooks.over(contextAt('GET', '/health/live', 'req_2'), OK)
    expect(await lab.rows()).toMatchObject([{ requestId: 'req_1', model: 'gpt-4o', units: { promptTokens: 10 } }])
  })

  it('writes by itself after a while', async () => {
    await begin({ usage: { batchMs: 1 } })
    const { chat, store } = lab
    chat()
    await eventually(() => store.rows.size === 1)
    chat()
    await eventually(() => store.rows.size === 2)
  })

  it('makes no record while a call ends, however many end at once, and has all of them soon', async () => {
    await begin({ usage: { batchMs: 60_000, batchRows: 1 } })
    const { chat, store } = lab
    for (let count = 0; count < 220; count++) chat()
    expect(store.batches).toEqual([])
    // Less than a batch waits for more.
    await eventually(() => store.rows.size >= 200)
    expect(await lab.rows()).toHaveLength(220)
  })

  it('has one of every answer of a session and every transcription in it, each at its own price', async () => {
    await begin({
      prices: [
        { models: ['gpt-realtime'], kind: 'input_transcription', audioSeconds: '1' },
        { models: ['whisper-1'], kind: 'input_transcription', audioSeconds: '3' },
        { models: ['gpt-realtime'], promptTokens: '2', completionTokens: '0' },
      ],
    })
    const { hooks, queue, lines } = lab
    const call = contextAt('GET', '/v1/realtime')
    call.caller = { keyId: 'team-a' }
    const common = { call, channelId: 'p1-main', model: 'gpt-realtime', estimated: false }
    const heard = { estimate: { output_tokens: 4 } }
    queue.record({ ...common, ...heard, kind: 'response', units: { input_tokens: 1_000_000, output_tokens: 3 } })
    const transcription = { ...common, kind: 'input_transcription', sessionModel: 'gpt-realtime' } as const
    // Without a price of its own it has that of the session's model.
    queue.record({ ...transcription, model: 'other-transcribe', units: { seconds: 2 } })
    queue.record({ ...transcription, model: 'whisper-1', units: { seconds: 2 } })
    call.log.usage = { units: { input_tokens: 1_000_000 }, estimated: false }
    Object.assign(call.log, { model: 'gpt-realtime' })
    hooks.over(call, { ...OK, status: 101 })
    expect(await lab.rows()).toMatchObject([
      { kind: 'response', cost: '2', requestId: 'req_1', keyId: 'team-a', estimated: '{"output_tokens":4}' },
      { kind: 'input_transcription', cost: '2', model: 'other-transcribe', units: { audioSeconds: 2 } },
      { kind: 'input_transcription', cost: '6', model: 'whisper-1', estimated: null },
      { kind: 'request', units: {}, pricing: 'free', outcome: 'ok' },
    ])
    const logged = lines.filter(({ msg }) => msg === 'usage')
    expect(logged).toMatchObject([
      { requestId: 'req_1', kind: 'response' },
      { kind: 'input_transcription' },
      { kind: 'input_transcription' },
    ])
  })

  it('goes on after a note that cannot be made a record', async () => {
    const bad = chatCall()
    bad.log.usage = { units: { prompt_tokens: 1n as never }, estimated: false }
    lab.hooks.over(bad, OK)
    lab.chat()
    expect(await lab.rows()).toHaveLength(1)
    expect(lab.lines).toMatchObject([{ msg: 'usage could not be recorded' }])
  })

  it('counts what was used by class and channel, and costs', async () => {
    await begin({ prices: [{ models: ['*'], promptTokens: '1000000' }] })
    const { chat, hooks, samples } = lab
    chat('gpt-4o', 3)
    chat('gpt-4.1', 4)
    hooks.over(chatCall(), { ...OK, left: true })
    await lab.rows()
    expect(await samples('gateway_usage_records_total')).toEqual([
      'gateway_usage_records_total{outcome="ok"} 2',
      'gateway_usage_records_total{outcome="caller_left"} 1',
    ])
    const labels = 'class="chat",channel="p1-main"'
    expect(await samples('gateway_usage_units_total')).toEqual([
      `gateway_usage_units_total{unit="prompt_tokens",${labels}} 17`,
    ])
    expect(await samples('gateway_usage_cost_total')).toEqual([`gateway_usage_cost_total{${labels}} 17`])
  })

  it('raises an alarm for use without a price: a metric each time, a line once per model', async () => {
    await begin({
      prices: [{ models: ['known'], promptTokens: '1' }],
      laterPrices: [{ models: ['other'], promptTokens: '1' }],
    })
    const { chat, samples, lines, config } = lab
    for (const model of ['known', 'a', 'a', 'b']) chat(model)
    chat('a', 0)
    await lab.rows()
    expect(await samples('gateway_usage_unpriced_total')).toEqual([
      'gateway_usage_unpriced_total{class="chat",channel="p1-main"} 3',
    ])
    const logged = () => lines.filter(({ msg }) => String(msg).startsWith('no price')).map(({ model }) => model)
    expect(logged()).toEqual(['a', 'b'])
    // A new table is searched anew.
    await config.reload()
    chat('a')
    chat('other')
    expect((await lab.rows()).at(-1)).toMatchObject({ model: 'other', pricing: 'priced' })
    expect(logged()).toEqual(['a', 'b', 'a'])
  })

  it('is silent where there is no price table at all', async () => {
    lab.chat()
    expect(await lab.rows()).toMatchObject([{ pricing: 'unpriced', cost: null }])
    expect(await lab.samples('gateway_usage_unpriced_total')).toEqual([])
    expect(lab.lines).toEqual([])
  })

  it('has counted every call that is over when a scrape asks for the metrics, whether it is written or not', async () => {
    await begin({ prices: [{ models: ['other'], promptTokens: '1' }] })
    const { chat, samples, store } = lab
    for (let count = 0; count < 70; count++) chat()
    expect(await samples('gateway_usage_unpriced_total')).toEqual([
      'gateway_usage_unpriced_total{class="chat",channel="p1-main"} 70',
    ])
    expect(await samples('gateway_usage_records_total')).toEqual(['gateway_usage_records_total{outcome="ok"} 70'])
    expect(store.batches).toEqual([])
  })

  it('forgets what a channel has used when a reload takes the channel away, and counts it no more for that', async () => {
    await begin({ channels: [channel('p1-main'), channel('other')], laterChannels: [channel('other')] })
    const { hooks, samples, config } = lab
    for (const channelId of ['p1-main', 'other', undefined]) {
      const call = chatCall()
      Object.assign(call.log, { channelId })
      hooks.over(call, OK)
    }
    expect(await samples('gateway_usage_units_total')).toHaveLength(3)
    lab.chat()
    await config.reload()
    expect(await samples('gateway_usage_units_total')).toEqual([
      expect.stringContaining('channel="other"'),
      expect.stringContaining('channel=""'),
    ])
    expect(await samples('gateway_usage_records_total')).toEqual(['gateway_usage_records_total{outcome="ok"} 4'])
  })

  it('makes no records where usage is not to be stored, and counts all the same', async () => {
    await begin({ usage: { store: false }, prices: [{ models: ['*'], promptTokens: '1000000' }] })
    const { chat, samples, queue, store } = lab
    for (let count = 0; count < 70; count++) chat('gpt-4o', 2)
    await queue.flush()
    expect(store.rows.size).toBe(0)
    expect(await samples('gateway_usage_cost_total')).toEqual([
      'gateway_usage_cost_total{class="chat",channel="p1-main"} 140',
    ])
  })

  it('prices every call by the table that was in force when it ended', async () => {
    await begin({
      prices: [{ models: ['*'], promptTokens: '1000000' }],
      laterPrices: [{ models: ['*'], promptTokens: '3000000' }],
    })
    const { chat, config } = lab
    for (let count = 0; count < 60; count++) chat('gpt-4o', 1)
    await config.reload()
    for (let count = 0; count < 60; count++) chat('gpt-4o', 1)
    const costs = (await lab.rows()).map(({ cost }) => cost)
    expect(costs).toEqual([...Array<string>(60).fill('1'), ...Array<string>(60).fill('3')])
  })

  it('has one row of the refusals of a minute, although the event loop was late at its start', async () => {
    jest.useFakeTimers({ now: 59_900, doNotFake: ['setImmediate', 'performance', 'nextTick', 'queueMicrotask'] })
    try {
      refuse()
      // The timer of the first minute is due, and has not fired.
      jest.setSystemTime(60_010)
      refuse()
      jest.advanceTimersByTime(1_000)
      refuse()
    } finally {
      jest.useRealTimers()
    }
    expect((await lab.rows()).map(({ requests = 1 }) => requests)).toEqual([1, 2])
  })

  it('writes the refusals of a minute once it is over, although no call follows', async () => {
    jest.useFakeTimers({ now: 59_900, doNotFake: ['setImmediate', 'performance', 'nextTick', 'queueMicrotask'] })
    try {
      refuse()
      jest.advanceTimersByTime(1_000)
      refuse()
      jest.setSystemTime(120_010)
      // The timer of the second minute is due, and has not fired.
      refuse()
    } finally {
      jest.useRealTimers()
    }
    await eventually(() => lab.store.rows.size === 2)
  })

  describe('The end of the process', () => {
    it('writes everything before the end', async () => {
      const { chat, queue, store } = lab
      for (let count = 0; count < 123; count++) chat()
      await queue.beforeApplicationShutdown()
      expect(store.rows.size).toBe(123)
      // A task that ended while loops were stopping.
      queue.taskEnded(endedVideo())
      await eventually(() => store.rows.size === 124)
    })

    it('begins to write before any other work ends, and waits no longer than for the store', async () => {
      const { chat, queue, store } = lab
      for (let count = 0; count < 3; count++) chat()
      queue.onModuleDestroy()
      await eventually(() => store.rows.size === 3)
      await queue.beforeApplicationShutdown()
    })

    it('keeps what was noted a moment before, in whatever way it comes', async () => {
      const others = process.listeners('exit')
      await begin({})
      const own = process.listeners('exit').filter((listener) => !others.includes(listener))
      expect(own).toHaveLength(1)
      const { chat, queue, store, buffered } = lab
      store.before = away
      for (let count = 0; count < 70; count++) chat()
      for (const listener of own) listener(1)
      expect(await buffered()).toHaveLength(70)
      queue.onApplicationShutdown()
      expect(process.listeners('exit').filter((listener) => own.includes(listener))).toEqual([])
    })
  })

  describe('An ended task', () => {
    it('is recorded once, costs nothing when it failed, and is not free where it is not known what it has used', async () => {
      await begin({ prices: [{ models: ['*'], videos: '0.35', images: '0.05' }] })
      const { queue, store } = lab
      const used = (units: Units) => ({ usage: { units, estimated: false } })
      queue.taskEnded(endedVideo(used({ final_unit_deduction: 2, videos: 1 })))
      queue.taskEnded(
        endedVideo({ id: 'video 2', outcome: 'upstream_failed', ...used({ final_unit_deduction: 0, videos: 0 }) }),
      )
      const image = { id: 'image 3', ownerId: 'bearer:12', usageClass: 'image', ...used({ images: 1 }) } as const
      queue.taskEnded(endedVideo(image))
      queue.taskEnded(endedVideo({ id: 'response 4', outcome: 'caller_left', usage: undefined }))
      queue.taskEnded(endedVideo())
      expect(await lab.rows()).toMatchObject([
        { id: 'task video 1', kind: 'task', outcome: 'ok', units: { videos: 1 }, cost: '0.35', keyId: 'team-a' },
        { id: 'task video 2', outcome: 'upstream_failed', units: { videos: 0 }, pricing: 'free', cost: '0' },
        { id: 'task image 3', units: { images: 1 }, cost: '0.05', keyId: 'caller', ownerId: 'bearer:12' },
        {
          id: 'task response 4',
          outcome: 'caller_left',
          units: {},
          reported: null,
          estimated: null,
          pricing: 'unpriced',
          cost: null,
        },
      ])
      expect(store.rows.get('task video 1')?.reported).toBe('{"final_unit_deduction":2,"videos":1}')
      // No row of the table is missing.
      expect(await lab.samples('gateway_usage_unpriced_total')).not.toContainEqual(expect.stringMatching(/[1-9]$/))
      expect(lab.lines).toEqual([])
    })

    it('is priced at once for the store that writes its end down, and counts when that is written', async () => {
      await begin({ prices: [{ models: ['*'], videos: '0.35' }] })
      const { queue, samples } = lab
      const settled = queue.settleTask(endedVideo())
      expect(settled?.record).toMatchObject({ id: 'task video 1', kind: 'task', cost: '0.35', units: { videos: 1 } })
      expect(await samples('gateway_usage_records_total')).toEqual([])
      settled?.whenWritten()
      expect(await samples('gateway_usage_records_total')).toEqual(['gateway_usage_records_total{outcome="ok"} 1'])
      // Nothing else writes it.
      expect(await lab.rows()).toEqual([])
    })

    it('has no record where usage is not to be stored, and counts all the same', async () => {
      await begin({ usage: { store: false } })
      const settled = lab.queue.settleTask(endedVideo())
      expect(settled).toMatchObject({ record: undefined })
      settled?.whenWritten()
      expect(await lab.samples('gateway_usage_records_total')).toEqual(['gateway_usage_records_total{outcome="ok"} 1'])
    })

    it('of which no record can be made is told of, and is none', () => {
      const usage = { units: { units: 1n as never }, estimated: false }
      expect(lab.queue.settleTask(endedVideo({ usage }))).toBeUndefined()
      expect(lab.lines).toMatchObject([{ msg: 'usage could not be recorded' }])
    })
  })
})

function lostUsage(level: LogLevel) {
  const metrics = new Metrics()
  const lines: unknown[] = []
  const { logger } = createLogging(level, { write: (line) => lines.push(JSON.parse(line)) })
  const dropped = async (): Promise<string[]> =>
    (await metrics.registry.metrics()).split('\n').filter((line) => line.startsWith('gateway_usage_dropped_total{'))
  return { lost: new DroppedUsage(new UsageMetrics(metrics), logger), lines, dropped }
}

describe('Usage that is lost', () => {
  it('is in the log, each record whole in a line of its own, and counted by its reason', async () => {
    const { lost, lines, dropped } = lostUsage('info')
    const [many, refused] = [records(3), records(1)]
    lost.log('overflow', many)
    lost.log('refused', refused)
    const line = (reason: string) => (record: object) => ({ level: 40, msg: 'usage', reason, record })
    expect(lines).toMatchObject([...many.map(line('overflow')), ...refused.map(line('refused'))])
    expect(await dropped()).toEqual([
      'gateway_usage_dropped_total{reason="overflow"} 3',
      'gateway_usage_dropped_total{reason="refused"} 1',
    ])
  })

  it('is counted where the log tells nothing of it', async () => {
    const { lost, lines, dropped } = lostUsage('error')
    lost.log('overflow', records(2))
    expect([lines, await dropped()]).toEqual([[], ['gateway_usage_dropped_total{reason="overflow"} 2']])
  })
})

describe('A batch of usage records', () => {
  const saying = (code: string): Error => Object.assign(new Error('said the server'), { code })

  let store: MemoryUsage
  let refused: string[]
  let logged: unknown[]
  let delivery: RecordDelivery

  beforeEach(() => {
    store = new MemoryUsage()
    refused = []
    logged = []
    const { logger } = createLogging('info', {
      write: (line) => logged.push((JSON.parse(line) as Record<string, unknown>)['msg']),
    })
    // A log of its own, so that `logged` holds only the delivery's lines.
    const lostLogging = createLogging('info', {
      write: (line) => {
        const { reason, record } = JSON.parse(line) as { readonly reason: string; readonly record: UsageRecord }
        refused.push(reason === 'refused' ? record.id : `${record.id} is told as ${reason}`)
      },
    })
    delivery = new RecordDelivery(store, new DroppedUsage(new UsageMetrics(new Metrics()), lostLogging.logger), logger)
  })

  const written = (): string[] => [...store.rows.keys()]

  it.each(['22001', '22P02', '23502', '23514'])(
    'is not kept back by a row that the store does not take: %s',
    async (code) => {
      const many = records(20)
      const bad = many[7]?.id ?? ''
      store.before = (batch) => (idsOf(batch).includes(bad) ? saying(code) : undefined)
      expect(await delivery.deliver(many)).toEqual([])
      expect(written()).toEqual(idsOf(many).filter((id) => id !== bad))
      expect(refused).toEqual([bad])
      // Bisection finds it: far fewer than twenty attempts.
      expect(store.batches.length).toBeLessThan(12)
      expect(logged).toEqual(['a usage record was refused by the store'])
    },
  )

  it.each(['25006', '40P01', '40001', '42501', '42P01', '54000', 'XX000'])(
    'that the store does not take as it stands comes again, whole: %s',
    async (code) => {
      const many = records(20)
      let attempts = 0
      store.before = () => (attempts++ < 1 ? saying(code) : undefined)
      expect(await delivery.deliver(many)).toEqual([])
      expect(written()).toEqual(idsOf(many))
      expect(store.batches.map(({ length }) => length)).toEqual([20, 20])
      expect(refused).toEqual([])
      expect(logged).toEqual(['usage waits: the store does not take it'])
    },
  )

  it('comes again whatever else went wrong, which is said once, and nothing is said of a store that is away', async () => {
    const failures = [new TypeError('no code'), saying('25006'), away()]
    store.before = () => failures.shift()
    expect(await delivery.deliver(records(2))).toEqual([])
    expect(logged).toEqual(['usage waits: the store does not take it'])
  })

  it('is returned when the delivery is stopped, as far as it was not delivered', async () => {
    const many = records(8)
    const [bad, waiting] = [many[1]?.id ?? '', many[6]?.id ?? '']
    store.before = (batch) => {
      if (idsOf(batch).includes(bad)) return saying('22P02')
      return idsOf(batch).includes(waiting) ? away() : undefined
    }
    const delivered = delivery.deliver(many)
    await eventually(() => written().length === 3)
    delivery.stop(performance.now())
    expect(idsOf(await delivered)).toEqual(idsOf(many.slice(4)))
    expect(refused).toEqual([bad])
  })
})

describe('What a call leaves to be recorded', () => {
  const PRICES = new PriceTable([])
  const OK = { status: 200, left: false, totalMs: 12.3, gatewayMs: 1 }

  function callTo(method: string, path: string, keyId = 'team-a'): RequestContext {
    const call = contextAt(method, path)
    call.caller = { keyId }
    call.log.model = 'gpt-4o'
    call.log.channelId = 'p1-main'
    return call
  }

  it('is who asked for what, where it went, and what was used', () => {
    const call = callTo('POST', '/v1/chat/completions')
    call.log.modelClass = 'chat-audio'
    call.log.usage = { units: { prompt_tokens: 3 }, estimated: false }
    expect(entryFromRequest(call, OK, PRICES)).toMatchObject({
      requestId: 'req_1',
      keyId: 'team-a',
      ownerId: 'team-a',
      kind: 'request',
      route: '/v1/chat/completions',
      model: 'gpt-4o',
      usageClass: 'chat-audio',
      channelId: 'p1-main',
      outcome: 'ok',
      durationMs: 12.3,
      usage: { units: { prompt_tokens: 3 }, estimated: false },
    })
  })

  it('holds no more of an invented name than any model has', () => {
    const call = callTo('POST', '/v1/chat/completions')
    call.log.model = 'x'.repeat(4_000_000)
    expect(entryFromRequest(call, { ...OK, status: 400 }, PRICES)?.model).toBe('x'.repeat(256))
  })

  it('belongs to one bearer alone where callers bring keys of their own', () => {
    const call = callTo('POST', '/v1/chat/completions')
    call.caller = { keyId: 'caller', bearer: 'secret' }
    const entry = entryFromRequest(call, OK, PRICES)
    expect(entry).toMatchObject({ keyId: 'caller', ownerId: expect.stringMatching(/^bearer:[0-9a-f]{32}$/) })
    expect(JSON.stringify(entry)).not.toContain('secret')
  })

  it.each([
    ['GET', '/v1/models'],
    ['GET', '/v1/usage'],
    ['GET', '/vidgen/v1/videos/text2video/1'],
    ['GET', '/vidgen/v1/videos/text2video'],
    ['GET', '/v1/chat/completions'],
    ['POST', '/v1/chat/completions/'],
    ['POST', '/v1/Chat/completions'],
    ['GET', '/health/live'],
  ])('is nothing for %s %s', (method, path) => {
    expect(entryFromRequest(callTo(method, path), OK, PRICES)).toBeUndefined()
  })

  it('is nothing for unknown callers', () => {
    expect(entryFromRequest(callTo('POST', '/v1/chat/completions', '-'), OK, PRICES)).toBeUndefined()
  })

  it('leaves the units of a session to its responses', () => {
    const call = callTo('GET', '/v1/realtime')
    call.log.usage = { units: { input_tokens: 5 }, estimated: false }
    expect(entryFromRequest(call, { ...OK, status: 101 }, PRICES)).toMatchObject({ outcome: 'ok', usage: undefined })
  })

  it('names documents by what they are', () => {
    const call = callTo('POST', '/v1/document/parse')
    call.log.modelClass = 'chat'
    expect(entryFromRequest(call, OK, PRICES)).toMatchObject({ model: 'documents', usageClass: 'document' })
  })

  it.each<[string, unknown, Partial<typeof OK>, string]>([
    ['all went well', undefined, {}, 'ok'],
    ['the caller left', undefined, { left: true, status: 499 }, 'caller_left'],
    [
      'the caller left and the upstream failed of it',
      new GatewayError('upstream_failed', ''),
      { left: true },
      'caller_left',
    ],
    ['the caller left before anything was sent', new GatewayError('caller_left', ''), {}, 'caller_left'],
    ['the upstream failed', new GatewayError('upstream_failed', ''), { status: 502 }, 'upstream_failed'],
    ['the upstream fell silent', new GatewayError('upstream_timeout', ''), { status: 504 }, 'upstream_failed'],
    ['the stream broke behind its first byte', new GatewayError('upstream_failed', ''), {}, 'upstream_failed'],
    ['the request was wrong', new GatewayError('invalid_request', ''), { status: 400 }, 'refused'],
    ['a limit was reached', new GatewayError('rate_limited', ''), { status: 429 }, 'refused'],
    ['the gateway had too much to do', new GatewayError('overloaded', ''), { status: 503 }, 'refused'],
    ['the gateway broke', new Error('bug'), { status: 500 }, 'refused'],
    ['an error was answered without a word', undefined, { status: 400 }, 'refused'],
  ])('has an outcome when %s', (_what, failure, changes, outcome) => {
    const call = callTo('POST', '/v1/chat/completions')
    call.log.failure = failure
    expect(entryFromRequest(call, { ...OK, ...changes }, PRICES)?.outcome).toBe(outcome)
  })
})

describe('Refused requests', () => {
  const MINUTE = 60_000
  const refusal = (more: Partial<UsageEntry> = {}): UsageEntry => ({
    id: undefined,
    atMs: 0,
    requestId: 'req_1',
    keyId: 'team-a',
    ownerId: 'team-a',
    kind: 'request',
    route: '/v1/chat/completions',
    model: 'gpt-4o',
    sessionModel: undefined,
    usageClass: 'chat',
    channelId: undefined,
    outcome: 'refused',
    reason: 'rate_limit_exceeded',
    durationMs: 1,
    usage: undefined,
    unitsText: undefined,
    estimate: undefined,
    prices: new PriceTable([]),
    ...more,
  })
  const added = (refusals: RefusalEntries, entries: readonly UsageEntry[]): readonly UsageEntry[] =>
    entries.flatMap((entry) => refusals.add(entry))

  it('of one caller, reason and minute are one entry with their number', () => {
    const refusals = new RefusalEntries()
    expect(
      added(
        refusals,
        Array.from({ length: 1485 }, (_none, n) => refusal({ requestId: `req_${n}` })),
      ),
    ).toEqual([])
    expect(refusals.take()).toMatchObject([{ requestId: 'req_0', requests: 1485 }])
    expect(refusals.take()).toEqual([])
  })

  it('are told apart by caller, reason, route and channel, and by minute', () => {
    const refusals = new RefusalEntries()
    const others = [{ ownerId: 'b' }, { reason: 'concurrency' }, { route: '/v1/messages' }, { channelId: 'p1' }]
    added(refusals, [{}, ...others].map(refusal))
    expect(refusals.add(refusal({ atMs: MINUTE }))).toHaveLength(5)
    expect(refusals.take()).toMatchObject([{ atMs: MINUTE, requests: 1 }])
  })

  it('with names and bearers that are invented by the thousand are few entries, and none is forgotten', () => {
    const refusals = new RefusalEntries()
    added(
      refusals,
      Array.from({ length: 1000 }, (_none, n) => refusal({ model: `m${n}` })),
    )
    const models = refusals.take()
    expect(models).toHaveLength(17)
    expect(models.at(-1)).toMatchObject({ model: undefined, requests: 984 })
    added(
      refusals,
      Array.from({ length: 1000 }, (_none, n) => refusal({ keyId: 'caller', ownerId: `bearer:${n}` })),
    )
    const bearers = refusals.take()
    expect(bearers).toHaveLength(101)
    expect(bearers.at(-1)).toMatchObject({ ownerId: 'bearer:others', requests: 900 })
  })
})
