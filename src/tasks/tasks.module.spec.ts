import 'reflect-metadata'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import type { INestApplication } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import { pino } from 'pino'
import { CollectedUsageModule } from '../../test/support/collected-usage.js'
import { eventually } from '../../test/support/eventually.js'
import { FakeVideoUpstream } from '../../test/support/fake-video-upstream.js'
import { type MemoryRepositories, memoryRepositories } from '../../test/support/memory-repositories.js'
import { callOf, TEAM_A, videoChannel } from '../../test/support/task-lab.js'
import { ConfigurationModule } from '../config/config.module.js'
import { parseConfig } from '../config/load-config.js'
import { attachCall, Call } from '../core/request-context.js'
import { ObservabilityModule } from '../observability/observability.module.js'
import { Readiness } from '../observability/readiness.js'
import { CallEndings } from '../observability/request-hooks.js'
import { ProviderRegistry } from '../routing/provider-registry.js'
import { ProviderRouter } from '../routing/router.js'
import { GatewayExceptionFilter } from '../server/gateway-exception.filter.js'
import { GatewayHttpAdapter } from '../server/http-adapter.js'
import { Database } from '../storage/database.js'
import { CallbackRepository } from './callback.repository.js'
import { TaskRepository } from './task.repository.js'
import { Tasks } from './tasks.js'
import { TasksModule } from './tasks.module.js'

const refused = (): Promise<never> => Promise.reject(new Error('the repositories are in memory'))

/** Opens when it is told to. */
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
      ObservabilityModule.forRoot(new Readiness(), new CallEndings(), pino({ level: 'silent' })),
      CollectedUsageModule,
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
    .useValue(new ProviderRegistry({ vidgen: { video: upstream } }))
    .compile()
  const adapter = new GatewayHttpAdapter((request) => {
    attachCall(request, new Call('req_1', request.method ?? '', request.url ?? '', 0))
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
      route: application.get(ProviderRouter).video('test-video', TEAM_A),
      fingerprint: 'a'.repeat(64),
      send: (provider, context, ids) => provider.create('text2video', Buffer.from(JSON.stringify(ids)), context),
    },
    callOf(),
  )
  const address = new URL(upstream.creates[0]?.callbackUrl ?? '')
  expect(address.origin + address.pathname).toMatch(/^https:\/\/gateway\.example\/base\/vidgen\/callbacks\/[\w-]{32}$/)
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

  it('is of no use to whoever guesses, and takes no large bodies', async () => {
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
