import 'reflect-metadata'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { INestApplication } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import { pino } from 'pino'
import { parseConfig } from '../../test/support/config.js'
import { contextAt } from '../../test/support/endpoints.js'
import { eventually } from '../../test/support/eventually.js'
import { type MemoryRepositories, memoryRepositories } from '../../test/support/memory-tasks.js'
import {
  CALLBACK_URL,
  callOf,
  find,
  made,
  taskLab,
  type TaskLab,
  taskWorld,
  TEAM_A,
  TEAM_B,
  videoChannel,
} from '../../test/support/task-lab.js'
import { CollectedUsageModule, FakeVideoUpstream } from '../../test/support/task-rows.js'
import { PROVIDERS } from '../app/providers.js'
import { ConfigurationModule } from '../config/config-store.js'
import { type Caller, KeyRevocation } from '../core/caller.js'
import { GatewayError } from '../core/errors.js'
import { attachContext } from '../core/request-context.js'
import { ObservabilityModule } from '../observability/observability.module.js'
import { Readiness } from '../observability/readiness.js'
import { RequestHooks } from '../observability/request-hooks.js'
import { ProviderRegistry } from '../routing/channel-selection.js'
import { ProvidersModule } from '../routing/providers.module.js'
import { ProviderRouter } from '../routing/router.js'
import { GatewayExceptionFilter } from '../server/error-filter.js'
import { GatewayHttpAdapter } from '../server/http-adapter.js'
import { Database } from '../storage/database.js'
import { videoTaskEvents } from '../video/video.service.js'
import type { Task } from './task.js'
import { CallbackRepository } from './callback.repository.js'
import { TaskRepository } from './task.repository.js'
import { Tasks } from './contract.js'
import { TasksModule } from './tasks.module.js'

const LOST = new GatewayError('upstream_failed', 'Lost.', { attempt: { phase: 'sent' } })

describe('A task asked for', () => {
  it('by either of its ids is shown as its upstream shows it now', async () => {
    const lab = taskLab()
    await made(lab, 'order-1')
    lab.upstream.move('processing')
    expect(await find(lab, 'order-1')).toMatchObject({ state: 'processing', upstreamTaskId: '830000' })
    lab.clock.advance(1000)
    lab.upstream.move('succeed')
    const task = await find(lab, '830000')
    expect(task?.state).toBe('succeed')
    expect(task?.object).toContain('"external_task_id":"order-1"')
    expect(task?.object).toContain('"seed":12345678901234567890,"weight":1.0')
  })

  it('again and again costs its upstream one call a second', async () => {
    const lab = taskLab()
    await made(lab, 'order-1')
    await Promise.all(Array.from({ length: 50 }, () => find(lab, 'order-1')))
    expect(lab.upstream.reads).toHaveLength(1)
    lab.clock.advance(999)
    await find(lab, 'order-1')
    expect(lab.upstream.reads).toHaveLength(1)
    lab.clock.advance(1)
    await find(lab, 'order-1')
    expect(lab.upstream.reads).toHaveLength(2)
  })

  it('is shown as stored while its upstream fails, has forgotten it, or is configured no more', async () => {
    const lab = taskLab({ laterChannels: [videoChannel('other')] })
    await made(lab, 'order-1')
    lab.upstream.readFault = () => LOST
    expect(await find(lab, 'order-1')).toMatchObject({ state: 'submitted' })
    lab.upstream.readFault = () => undefined
    lab.upstream.hidden.add('830000')
    for (let times = 0; times < 3; times++) {
      lab.clock.advance(1000)
      expect(await find(lab, 'order-1')).toMatchObject({ state: 'submitted', misses: 0 })
    }
    await lab.reload()
    lab.clock.advance(1000)
    expect(await find(lab, 'order-1')).toMatchObject({ state: 'submitted' })
    expect(lab.upstream.reads).toHaveLength(4)
  })

  it('that has ended is never asked for again', async () => {
    const lab = taskLab()
    await made(lab, 'order-1')
    lab.upstream.move('failed')
    await find(lab, 'order-1')
    lab.upstream.move('succeed')
    lab.clock.advance(60_000)
    expect(await find(lab, 'order-1')).toMatchObject({ state: 'failed' })
    expect(lab.upstream.reads).toHaveLength(1)
  })

  it('of another caller is not there, by whatever id', async () => {
    const lab = taskLab()
    await made(lab, 'order-1')
    const upstreamExternalId = lab.upstream.creates[0]?.externalId ?? ''
    for (const id of ['order-1', '830000', upstreamExternalId]) {
      await expect(find(lab, id, TEAM_B)).rejects.toMatchObject({ kind: 'not_found' })
    }
    await expect(lab.engine.find('multi-image2video', '830000', callOf())).resolves.toBeUndefined()
  })

  it('that this gateway never saw has no owner', async () => {
    expect(await find(taskLab(), '831200000000000001')).toBeUndefined()
  })
})

describe('A task whose create was lost', () => {
  it('is found by its external id at once, once only, and its caller is told', async () => {
    const lab = taskLab()
    lab.upstream.createFaults.push({ when: 'after', error: LOST })
    await expect(made(lab, 'order-1', TEAM_A, { callbackUrl: CALLBACK_URL })).rejects.toBeInstanceOf(GatewayError)
    lab.upstream.move('processing')
    const task = await find(lab, 'order-1')
    expect(task).toMatchObject({ state: 'processing', upstreamTaskId: '830000' })
    expect(lab.upstream.creates).toHaveLength(1)
    expect(await lab.engine.deliveries(task as Task)).toMatchObject([{ body: task?.object, url: CALLBACK_URL }])
  })

  it('is not there as long as the upstream does not know it, but worth asking for again', async () => {
    const lab = taskLab()
    lab.upstream.createFaults.push({ when: 'before', error: LOST })
    await expect(made(lab, 'order-1')).rejects.toBeInstanceOf(GatewayError)
    for (const isFailing of [false, true]) {
      lab.clock.advance(1000)
      if (isFailing) lab.upstream.readFault = () => LOST
      await expect(find(lab, 'order-1')).rejects.toMatchObject({
        kind: 'not_found',
        details: { retryAfterSeconds: 5, retryable: true },
      })
    }
    expect(await lab.store.tasks.countByState()).toEqual({ unknown: 1 })
  })

  it('is left to the process that makes it while that still waits and the upstream knows nothing of it', async () => {
    const lab = taskLab()
    lab.upstream.hidden.add('830000')
    const release = lab.upstream.holdCreates()
    const create = made(lab, 'order-1')
    await eventually(() => lab.upstream.made.length === 1)
    await expect(find(lab, 'order-1')).rejects.toMatchObject({ kind: 'not_found' })
    expect(await lab.store.tasks.countByState()).toEqual({ creating: 1 })
    release()
    await create
  })

  it('is found while the process that made it still waits for its answer, which then says the same', async () => {
    const lab = taskLab()
    const release = lab.upstream.holdCreates()
    const create = made(lab, 'order-1')
    await eventually(() => lab.upstream.made.length === 1)
    const task = await find(lab, 'order-1')
    release()
    const answer = await create
    expect(answer.body).toContain(`"data":${task?.object ?? 'nothing'}}`)
    expect(await lab.store.tasks.countByState()).toEqual({ submitted: 1 })
  })
})

describe('A task asked for twice at once', () => {
  it('by two replicas is changed once and announced once', async () => {
    const world = taskWorld()
    const labs = [taskLab({ world }), taskLab({ world })] as const
    await made(labs[0], 'order-1', TEAM_A, { callbackUrl: CALLBACK_URL })
    world.upstream.move('succeed')
    const release = world.upstream.holdReads()
    const finds = Promise.all(labs.map((lab) => find(lab, 'order-1')))
    await eventually(() => world.upstream.readsUnderWay === 2)
    release()
    const [first, second] = await finds
    expect([first?.state, second]).toEqual(['succeed', first])
    expect(await labs[0].engine.deliveries(first as Task)).toHaveLength(1)
  })
})

describe('The list of tasks', () => {
  it('holds the callers own, newest first, in pages, without creates in doubt', async () => {
    const lab = taskLab()
    for (const id of ['one', 'two', 'three']) {
      await made(lab, id)
      lab.clock.advance(1)
    }
    await made(lab, 'foreign', TEAM_B)
    lab.upstream.createFaults.push({ when: 'after', error: LOST })
    await expect(made(lab, 'lost')).rejects.toBeInstanceOf(GatewayError)
    const page = async (offset: number, limit: number) =>
      (await lab.engine.list('text2video', { offset, limit }, TEAM_A)).map((task) => task.externalTaskId)
    expect(await page(0, 30)).toEqual(['three', 'two', 'one'])
    expect(await page(1, 1)).toEqual(['two'])
    expect(await lab.engine.list('multi-image2video', { offset: 0, limit: 30 }, TEAM_A)).toEqual([])
  })
})

describe('The events of a task', () => {
  it('can be sent again by their owner alone', async () => {
    const lab = taskLab()
    await made(lab, 'order-1', TEAM_A, { callbackUrl: CALLBACK_URL })
    lab.upstream.move('succeed')
    const [delivery] = await lab.engine.deliveries((await find(lab, 'order-1')) as Task)
    const webhookId = delivery?.webhookId ?? ''
    await lab.store.callbacks.recordOutcome(webhookId, { outcome: 'exhausted', atMs: 1, error: 'No.' })
    expect(await lab.engine.redeliver(webhookId, TEAM_B)).toBe(false)
    expect(lab.wakes()).toBe(1)
    expect(await lab.engine.redeliver(webhookId, TEAM_A)).toBe(true)
    expect(lab.wakes()).toBe(2)
    expect(await lab.store.callbacks.nextDueAtMs()).toBe(lab.clock.nowMs())
  })
})

describe('Watching a task', () => {
  interface Watch {
    readonly states: string[]
    readonly stop: AbortController
    readonly ended: Promise<void>
  }

  async function watch(lab: TaskLab, id: string, caller: Caller = TEAM_A): Promise<Watch> {
    const call = callOf(caller)
    const task = await lab.engine.find('text2video', id, call)
    const states: string[] = []
    const stop = new AbortController()
    const ended = lab.engine.watch(task as Task, call, stop.signal, ({ state }) => states.push(state))
    return { states, stop, ended }
  }

  it('shows it at once, then every change, and ends with it', async () => {
    const lab = taskLab()
    await made(lab, 'order-1')
    const { states, ended } = await watch(lab, 'order-1')
    expect(states).toEqual(['submitted'])
    for (const state of ['processing', 'succeed'] as const) {
      lab.upstream.move(state)
      lab.clock.advance(1000)
      await find(lab, 'order-1')
      await eventually(() => states.at(-1) === state)
    }
    await ended
    expect(states).toEqual(['submitted', 'processing', 'succeed'])
  })

  it('shows changes that another replica made', async () => {
    const world = taskWorld()
    const [here, there] = [taskLab({ world, rereadMs: 1 }), taskLab({ world })]
    await made(here, 'order-1')
    const { states, ended } = await watch(here, 'order-1')
    world.upstream.move('succeed')
    await find(there, 'order-1')
    await ended
    expect(states).toEqual(['submitted', 'succeed'])
  })

  it('ends at once for a task that has ended, and when it is stopped, or was before it began', async () => {
    const lab = taskLab()
    await made(lab, 'order-1')
    const leaving = await watch(lab, 'order-1')
    leaving.stop.abort()
    await leaving.ended
    expect(leaving.states).toEqual(['submitted'])
    const [call, gone] = [callOf(TEAM_A), AbortSignal.abort()]
    await lab.engine.watch((await lab.engine.find('text2video', 'order-1', call)) as Task, call, gone, () => undefined)
    lab.upstream.move('failed')
    lab.clock.advance(1000)
    const over = await watch(lab, 'order-1')
    await over.ended
    expect(over.states).toEqual(['failed'])
  })

  it('ends with the stream it is shown in, also where that ends because its key is revoked', async () => {
    const lab = taskLab({ rereadMs: 1 })
    await made(lab, 'order-1')
    const revocation = new KeyRevocation()
    const call = callOf({ ...TEAM_A, revocation })
    const task = (await lab.engine.find('text2video', 'order-1', call)) as Task
    const frames: string[] = []
    const failures: unknown[] = []
    const sink = {
      data: (chunk: Buffer) => frames.push(chunk.toString()),
      end: () => undefined,
      fail: (error: unknown) => failures.push(error),
    }
    let hasEnded = false
    const watch: Tasks['watch'] = (...parameters) =>
      lab.engine.watch(...parameters).finally(() => {
        hasEnded = true
      })
    videoTaskEvents({ watch } as Tasks, task, call).start(sink)
    expect([frames.length, hasEnded]).toEqual([1, false])
    revocation.end()
    expect(failures).toMatchObject([{ kind: 'unauthorized' }])
    await eventually(() => hasEnded, undefined, 5_000)
  })

  it('outlives a store that is away for a while', async () => {
    const lab = taskLab({ rereadMs: 1 })
    await made(lab, 'order-1')
    const { states, ended } = await watch(lab, 'order-1')
    lab.store.setReachable(false)
    const { refusals } = lab.store
    await eventually(() => refusals() > 0)
    lab.store.setReachable(true)
    lab.upstream.move('succeed')
    lab.clock.advance(1000)
    await find(lab, 'order-1')
    await ended
    expect(states).toEqual(['submitted', 'succeed'])
  })

  it('asks the upstream where only this callers key may', async () => {
    const own = { keyId: 'caller', bearer: 'ak|sk' }
    const lab = taskLab({ channels: [videoChannel('own', { credentials: 'caller' })], rereadMs: 1 })
    await made(lab, 'order-1', own)
    const { states, ended } = await watch(lab, 'order-1', own)
    lab.upstream.move('succeed')
    lab.clock.advance(1000)
    await ended
    expect(states).toEqual(['submitted', 'succeed'])
  })
})

describe('tasks module', () => {
  const refused = (): Promise<never> => Promise.reject(new Error('the repositories are in memory'))

  /** Opens on request. */
  class LateDatabase extends Database {
    run = refused
    transaction = refused
    private listeners: (() => void)[] = []

    open(): Promise<void> {
      for (const listener of this.listeners.splice(0)) listener()
      return Promise.resolve()
    }

    whenOpen(listener: () => void): void {
      this.listeners.push(listener)
    }
  }

  const config = parseConfig(
    JSON.stringify({
      auth: { keys: [{ id: 'team-a', key: 'k-a' }] },
      channels: [videoChannel('main')],
      server: { publicUrl: 'https://gateway.example/base' },
      tasks: { pollIntervalMs: 600_000 },
    }),
    {},
  )

  let store: MemoryRepositories
  let upstream: FakeVideoUpstream
  let database: LateDatabase
  let application: INestApplication
  let base: string

  beforeEach(async () => {
    store = memoryRepositories()
    upstream = new FakeVideoUpstream()
    database = new LateDatabase()
    const module = await Test.createTestingModule({
      imports: [
        ConfigurationModule.forRoot({ config }),
        ObservabilityModule.forRoot(new Readiness(), new RequestHooks(), pino({ level: 'silent' })),
        CollectedUsageModule,
        ProvidersModule.forManifests(PROVIDERS),
        TasksModule,
      ],
    })
      .overrideProvider(Database)
      .useValue(database)
      .overrideProvider(TaskRepository)
      .useValue(store.tasks)
      .overrideProvider(CallbackRepository)
      .useValue(store.callbacks)
      .overrideProvider(ProviderRegistry)
      .useValue(new ProviderRegistry(PROVIDERS, { vidgen: { video: upstream } }))
      .compile()
    const adapter = new GatewayHttpAdapter((request) => {
      attachContext(request, contextAt(request.method ?? '', request.url ?? ''))
    })
    application = module.createNestApplication(adapter, { bodyParser: false })
    application.useGlobalFilters(new GatewayExceptionFilter())
    await application.listen(0, '127.0.0.1')
    base = `http://127.0.0.1:${((application.getHttpServer() as Server).address() as AddressInfo).port}`
  })

  afterEach(() => application.close())

  async function create(): Promise<string> {
    await application.get(Tasks).create(
      {
        kind: 'text2video',
        model: 'test-video',
        route: application.get(ProviderRouter).route('video', 'test-video', TEAM_A),
        fingerprint: 'a'.repeat(64),
        send: (provider, context, ids) => provider.create('text2video', [Buffer.from(JSON.stringify(ids))], context),
      },
      callOf(),
    )
    const address = new URL(upstream.creates[0]?.callbackUrl ?? '')
    expect(address.origin + address.pathname).toMatch(
      /^https:\/\/gateway\.example\/base\/vidgen\/callbacks\/[\w-]{32}$/,
    )
    return address.pathname.replace('/base', '')
  }

  async function post(path: string, body: string | Buffer): Promise<{ status: number; body: unknown }> {
    const response = await fetch(base + path, { method: 'POST', body })
    return { status: response.status, body: await response.json() }
  }

  const state = async (): Promise<unknown> => Object.keys(await store.tasks.countByState())

  describe('The address an upstream calls back', () => {
    it('brings the next poll forward, which finds out what is true', async () => {
      await database.open()
      const path = await create()
      expect(await post(path, '{"task_status":"failed"}')).toEqual({ status: 200, body: {} })
      await eventually(() => upstream.reads.length > 0 && upstream.readsUnderWay === 0)
      expect(await state()).toEqual(['submitted'])
      upstream.move('succeed')
      expect(await post(path, 'whatever it is')).toEqual({ status: 200, body: {} })
      await eventually(async () => String(await state()) === 'succeed')
      expect(await post(path, '')).toMatchObject({ status: 404, body: { code: 1203 } })
    })

    it('is of no use to a stranger who guesses, and takes no large bodies', async () => {
      const path = await create()
      for (const wrong of [
        `${path}x`,
        path.slice(0, -1),
        '/vidgen/callbacks/%00',
        `/vidgen/callbacks/${'a'.repeat(32)}`,
      ]) {
        expect(await post(wrong, '{}')).toMatchObject({ status: 404, body: { code: 1203 } })
      }
      expect(await post(path, Buffer.alloc(65_537))).toMatchObject({ status: 413, body: { code: 1200 } })
    })
  })

  describe('Background work', () => {
    it('begins when the store is open, and not before', async () => {
      await create()
      expect(store.tasks.claims).toBe(0)
      await database.open()
      await eventually(() => store.tasks.claims > 0)
    })

    it('has ended when the application is closed', async () => {
      await database.open()
      await eventually(() => store.tasks.claims > 0)
      await application.close()
      const { claims } = store.tasks
      store.setReachable(false)
      await create().catch(() => undefined)
      expect(store.tasks.claims).toBe(claims)
    })
  })
})
