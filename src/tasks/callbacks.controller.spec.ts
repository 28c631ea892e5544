import 'reflect-metadata'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import type { INestApplication } from '@nestjs/common'
import { Test } from '@nestjs/testing'
import { pino } from 'pino'
import { CallbackOutbox } from '../../test/support/callback-lab.js'
import { parseConfig } from '../../test/support/config.js'
import { contextAt } from '../../test/support/endpoints.js'
import { AuthModule } from '../auth/auth.module.js'
import { ConfigurationModule } from '../config/config-store.js'
import { type Caller, ownerOf } from '../core/caller.js'
import { attachContext, RequestContext } from '../core/request-context.js'
import { ObservabilityModule } from '../observability/observability.module.js'
import { Readiness } from '../observability/readiness.js'
import { RequestHooks } from '../observability/request-hooks.js'
import type { VideoKind } from '../providers/contract.js'
import { GatewayExceptionFilter } from '../server/error-filter.js'
import { GatewayHttpAdapter } from '../server/http-adapter.js'
import type { CallbackDelivery } from './callback.repository.js'
import { CallbacksController, CallbacksService } from './callbacks.controller.js'
import type { Task } from './task.js'
import { Tasks } from './contract.js'

const unused = (): Promise<never> => Promise.reject(new Error('not asked for here'))

/** One task, of the caller `ours`. */
class OneTask extends Tasks {
  create = unused
  list = unused
  watch = unused

  constructor(private readonly outbox: CallbackOutbox) {
    super()
  }

  find(kind: VideoKind, id: string, call: RequestContext): Promise<Task | undefined> {
    // As the store does: PostgreSQL has no text with a NUL in it.
    if (id.includes('\0')) return unused()
    const isIt = kind === 'text2video' && id === '831200000000000001' && call.caller.keyId === 'ours'
    return Promise.resolve(isIt ? ({ id: 'task_1', ownerId: 'ours' } as Task) : undefined)
  }

  deliveries(task: Task): Promise<readonly CallbackDelivery[]> {
    return this.outbox.ofTask(task.ownerId, task.id)
  }

  redeliver(webhookId: string, caller: Caller): Promise<boolean> {
    return this.outbox.redeliver(ownerOf(caller), webhookId, 5000)
  }
}

const EVENTS = '/vidgen/v1/videos/text2video/831200000000000001/callbacks'
const config = parseConfig(
  JSON.stringify({ auth: { keys: ['ours', 'theirs'].map((id) => ({ id, key: `k-${id}` })) } }),
  {},
)

let outbox: CallbackOutbox
let application: INestApplication
let base: string

beforeAll(async () => {
  outbox = new CallbackOutbox()
  const module = await Test.createTestingModule({
    imports: [
      ConfigurationModule.forRoot({ config }),
      ObservabilityModule.forRoot(new Readiness(), new RequestHooks(), pino({ level: 'silent' })),
      AuthModule,
    ],
    controllers: [CallbacksController],
    providers: [CallbacksService, { provide: Tasks, useFactory: () => new OneTask(outbox) }],
  }).compile()
  const adapter = new GatewayHttpAdapter((request) => {
    attachContext(request, contextAt(request.method ?? '', (request.url ?? '').split('?')[0] ?? ''))
  })
  application = module.createNestApplication(adapter, { bodyParser: false })
  application.useGlobalFilters(new GatewayExceptionFilter())
  await application.listen(0, '127.0.0.1')
  base = `http://127.0.0.1:${((application.getHttpServer() as Server).address() as AddressInfo).port}`
})
afterAll(async () => {
  await application.close()
})
beforeEach(() => {
  const event = { taskId: 'task_1', ownerId: 'ours', url: 'https://hooks.test:8443/canary?canary', createdAtMs: 1000 }
  outbox.add({ ...event, webhookId: 'msg_1', nextAttemptAtMs: 2000, lastError: 'It failed.', attempts: 2 })
})

async function ask(method: string, path: string, caller = 'ours'): Promise<{ status: number; body: unknown }> {
  const headers = caller === '' ? {} : { authorization: `Bearer k-${caller}` }
  const response = await fetch(base + path, { method, headers })
  expect(response.headers.get('content-type')).toBe('application/json')
  return { status: response.status, body: await response.json() }
}

const success = (data: unknown): object => ({
  status: 200,
  body: { code: 0, message: 'SUCCEED', request_id: 'req_1', data },
})
const unknown = { status: 404, body: { code: 1203, message: expect.any(String), request_id: 'req_1' } }

describe('The events of a task', () => {
  it.each(['%00', 'a%0Ab', 'x'.repeat(257)])(
    'are not there under what can be no id, and no upstream is asked: %s',
    async (id) => {
      expect(await ask('GET', EVENTS.replace('831200000000000001', id))).toEqual(unknown)
    },
  )

  it('are listed for its owner, with the host of the address and nothing else of it', async () => {
    const { status, body } = await ask('GET', EVENTS)
    const event = {
      webhook_id: 'msg_1',
      host: 'hooks.test:8443',
      attempts: 2,
      created_at: 1000,
      next_attempt_at: 2000,
      delivered_at: null,
      exhausted_at: null,
      last_error: 'It failed.',
    }
    expect({ status, body }).toEqual(success([event]))
    expect(JSON.stringify(body)).not.toContain('canary')
  })

  it('show that one was delivered, or given up', async () => {
    await outbox.recordOutcome('msg_1', { outcome: 'exhausted', atMs: 3000, error: 'Gone.' })
    const ended = { attempts: 3, next_attempt_at: null, delivered_at: null, exhausted_at: 3000, last_error: 'Gone.' }
    expect(await ask('GET', EVENTS)).toMatchObject(success([ended]))
    await outbox.redeliver('ours', 'msg_1', 4000)
    await outbox.recordOutcome('msg_1', { outcome: 'delivered', atMs: 4000 })
    const done = { attempts: 1, next_attempt_at: null, delivered_at: 4000, exhausted_at: null, last_error: null }
    expect(await ask('GET', EVENTS)).toMatchObject(success([done]))
  })

  it('are not there for another caller, for another kind, or without a key', async () => {
    expect(await ask('GET', EVENTS, 'theirs')).toEqual(unknown)
    expect(await ask('GET', EVENTS.replace('text2video', 'multi-image2video'))).toEqual(unknown)
    expect(await ask('GET', EVENTS.replace('text2video', 'image2video'))).toMatchObject({ status: 404 })
    expect(await ask('GET', EVENTS, '')).toMatchObject({ status: 401, body: { code: 1001 } })
  })
})

describe('An event', () => {
  it('is sent again when its owner asks for it', async () => {
    await outbox.recordOutcome('msg_1', { outcome: 'exhausted', atMs: 3000, error: 'Gone.' })
    expect(await ask('POST', '/vidgen/v1/callbacks/msg_1/redeliver')).toEqual(success({ webhook_id: 'msg_1' }))
    expect(outbox.row('msg_1')).toMatchObject({ attempts: 0, nextAttemptAtMs: 5000 })
  })

  it.each(['msg_2', 'msg%001', '%F0%9F%98%80', 'm'.repeat(200), '..%2f', "'--"])(
    'of no such id is not found: %s',
    async (id) => {
      expect(await ask('POST', `/vidgen/v1/callbacks/${id}/redeliver`)).toEqual(unknown)
    },
  )

  it('of another caller is not found, and left alone', async () => {
    expect(await ask('POST', '/vidgen/v1/callbacks/msg_1/redeliver', 'theirs')).toEqual(unknown)
    expect(await ask('POST', '/vidgen/v1/callbacks/msg_1/redeliver', '')).toMatchObject({ status: 401 })
    expect(outbox.row('msg_1')).toMatchObject({ attempts: 2, nextAttemptAtMs: 2000 })
  })
})
