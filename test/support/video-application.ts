import 'reflect-metadata'
import { unused, UnusedRouter } from './unused-router.js'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { AuthModule } from '../../src/auth/auth.module.js'
import { ConfigurationModule } from '../../src/config/config-store.js'
import type { ModelCapability } from '../../src/config/model-classes.js'
import type { Caller } from '../../src/core/caller.js'
import { GatewayError } from '../../src/core/errors.js'
import { attachContext, RequestContext } from '../../src/core/request-context.js'
import { createLogging } from '../../src/observability/logger.js'
import { ObservabilityModule } from '../../src/observability/observability.module.js'
import { Readiness } from '../../src/observability/readiness.js'
import { RequestHooks } from '../../src/observability/request-hooks.js'
import { BudgetLease, MemoryBudget } from '../../src/overload/memory-budget.js'
import type {
  AttemptContext,
  RoutedProviderOf,
  UpstreamVideoTask,
  VideoKind,
  VideoProvider,
} from '../../src/providers/contract.js'
import { type PinnedRoute, ProviderRouter, type Route } from '../../src/routing/router.js'
import { GatewayExceptionFilter } from '../../src/server/error-filter.js'
import { GatewayHttpAdapter } from '../../src/server/http-adapter.js'
import { isTerminal, type Task } from '../../src/tasks/task.js'
import { type CreateTaskResponse, type CreateTaskRequest, Tasks } from '../../src/tasks/contract.js'
import { MultiImageVideoController, TextVideoController } from '../../src/video/video.controller.js'
import { UnknownTasks, VideoService } from '../../src/video/video.service.js'
import { pngText } from './byte-streams.js'
import { parseConfig } from './config.js'
import { contextAt } from './endpoints.js'
import { attemptOf } from './raw-upstream.js'

/** A channel that remembers what it was asked, and knows the tasks that it was given. */
export class StandInChannel implements VideoProvider, PinnedRoute<VideoProvider> {
  readonly modelClass = 'video'
  readonly bodies: string[] = []
  readonly reads: string[] = []
  readonly known = new Map<string, UpstreamVideoTask>()
  failure: GatewayError | undefined
  /** While it is set, creates wait for it. */
  heldUntil: Promise<void> | undefined

  constructor(
    readonly channelId: string,
    readonly options: Readonly<Record<string, unknown>> = {},
  ) {}

  attempt<Result>(
    call: RequestContext,
    _policy: unknown,
    run: (provider: VideoProvider, context: AttemptContext) => Promise<Result>,
  ): Promise<Result> {
    return run(this, {
      ...attemptOf(call, this.channelId),
      channelId: this.channelId,
      upstreamModel: 'upstream-name',
    } as AttemptContext)
  }

  async create(_kind: VideoKind, body: readonly Buffer[]): Promise<UpstreamVideoTask> {
    this.bodies.push(Buffer.concat(body).toString())
    await this.heldUntil
    const object =
      '{"task_id":"900719925474099312","task_status":"submitted","created_at":1,"updated_at":1,"later":1.0}'
    return { id: '900719925474099312', status: 'submitted', object, message: 'SUCCEED' }
  }

  read(_kind: VideoKind, id: string): Promise<UpstreamVideoTask | undefined> {
    this.reads.push(id)
    return this.failure === undefined ? Promise.resolve(this.known.get(id)) : Promise.reject(this.failure)
  }
}

/** Routes every model but `unknown` to the first channel. */
class StandInRouter extends UnusedRouter {
  readonly asked: string[] = []

  constructor(private readonly channels: readonly StandInChannel[]) {
    super()
  }

  /** Its providers are those of videos alone, whatever capability is named. */
  override route<C extends ModelCapability>(_capability: C, model: string): Route<RoutedProviderOf<C>> {
    this.asked.push(model)
    const [channel] = this.channels
    if (channel === undefined || model === 'unknown') throw new GatewayError('unknown_model', 'No such model.')
    return channel as Route<object> as Route<RoutedProviderOf<C>>
  }

  override videoChannels(): readonly StandInChannel[] {
    return this.channels
  }
}

/** Tasks without a store: asks upstream, keeps what came of it, and says it in the words of the contract. */
export class StandInTasks extends Tasks {
  readonly orders: CreateTaskRequest[] = []
  readonly kept: Task[] = []
  readonly pages: object[] = []
  /** Ids of tasks of another owner. */
  readonly foreign = new Set<string>()
  replayed = false
  private readonly watchers = new Map<string, (task: Task) => void>()
  private wake: (() => void)[] = []

  async create(order: CreateTaskRequest, call: RequestContext): Promise<CreateTaskResponse> {
    this.orders.push(order)
    const made = await order.route.attempt(call, { canRetryAfterSend: false }, (provider, context) =>
      order.send(provider, context, { externalId: 'owner.id' }),
    )
    return { status: 200, body: `{"data":${made.object}}`, replayed: this.replayed }
  }

  find(kind: VideoKind, id: string): Promise<Task | undefined> {
    if (this.foreign.has(`${kind}/${id}`))
      return Promise.reject(new GatewayError('not_found', 'There is no such task.'))
    return Promise.resolve(this.kept.find((task) => task.kind === kind && task.upstreamTaskId === id))
  }

  list(kind: VideoKind, page: object, caller: Caller): Promise<readonly Task[]> {
    this.pages.push({ kind, page, keyId: caller.keyId })
    return Promise.resolve(this.kept.filter((task) => task.kind === kind))
  }

  async watch(task: Task, _call: RequestContext, stop: AbortSignal, onChange: (task: Task) => void): Promise<void> {
    let last = task
    this.watchers.set(task.id, (changed) => {
      last = changed
      onChange(changed)
      this.stir()
    })
    stop.addEventListener('abort', () => {
      this.stir()
    })
    onChange(task)
    while (!isTerminal(last.state) && !stop.aborted) await new Promise<void>((done) => this.wake.push(done))
    this.watchers.delete(task.id)
    this.stir()
  }

  /** Publishes a change to the watchers of the task. */
  announce(task: Task): void {
    this.watchers.get(task.id)?.(task)
  }

  /** Resolves once as many watchers are there. */
  async watched(count: number): Promise<void> {
    while (this.watchers.size !== count) await new Promise((done) => setImmediate(done))
  }

  deliveries = unused
  redeliver = unused

  private stir(): void {
    for (const done of this.wake.splice(0)) done()
  }
}

export const keptTask = (over: Partial<Task>): Task => ({
  id: 'ours',
  kind: 'text2video',
  ownerId: 'test',
  channelId: 'first',
  model: 'vidgen-v1',
  state: 'submitted',
  upstreamTaskId: '1',
  upstreamExternalId: 'owner.id',
  object: '{"task_id":"1"}',
  callbackToken: 'token',
  nextPollAtMs: 0,
  polls: 0,
  misses: 0,
  createdAtMs: 0,
  updatedAtMs: 0,
  deadlineAtMs: 0,
  ...over,
})

export const upstreamTask = (id: string): UpstreamVideoTask => ({
  id,
  status: 'succeed',
  object: `{"task_id":"${id}","big":900719925474099312345}`,
  message: 'SUCCEED',
})

export const VIDEO_KEY = 'test-gateway-key'

export const MULTI_IMAGE_PATH = '/vidgen/v1/videos/multi-image2video'
export const TEXT_PATH = '/vidgen/v1/videos/text2video'
export const VIDEO_HEADERS = { authorization: `Bearer ${VIDEO_KEY}`, 'content-type': 'application/json' }

export const multiImageBody = (image = pngText()): string => JSON.stringify({ prompt: 'x', image_list: [{ image }] })

export interface VideoReply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: Record<string, unknown>
}

export interface VideoApplication {
  readonly url: string
  readonly tasks: StandInTasks
  readonly router: StandInRouter
  /** Calls that have begun, newest last. */
  readonly calls: readonly RequestContext[]
  readonly get: (path: string) => Promise<VideoReply>
  readonly post: (path: string, body: string, headers?: Record<string, string>) => Promise<VideoReply>
  readonly close: () => Promise<void>
}

/** The video routes as they stand in the gateway, on stand-ins for what is behind them. */
export async function startVideoApplication(
  channels: readonly StandInChannel[],
  sections: object = {},
): Promise<VideoApplication> {
  const config = parseConfig(JSON.stringify({ auth: { keys: [{ id: 'test', key: VIDEO_KEY }] }, ...sections }), {})
  const tasks = new StandInTasks()
  const router = new StandInRouter(channels)
  const calls: RequestContext[] = []

  @Module({
    imports: [
      ConfigurationModule.forRoot({ config }),
      ObservabilityModule.forRoot(new Readiness(), new RequestHooks(), createLogging('silent').logger),
      AuthModule,
    ],
    controllers: [MultiImageVideoController, TextVideoController],
    providers: [
      VideoService,
      UnknownTasks,
      { provide: Tasks, useValue: tasks },
      { provide: ProviderRouter, useValue: router },
    ],
  })
  class VideoApplicationModule {}

  const memory = new MemoryBudget(() => config.admission)
  const adapter = new GatewayHttpAdapter((request, response) => {
    calls.push(begin(request, response, memory))
  })
  const application = await NestFactory.create(VideoApplicationModule, adapter, { bodyParser: false, logger: false })
  application.useGlobalFilters(new GatewayExceptionFilter())
  await application.listen(0, '127.0.0.1')
  const server = application.getHttpServer() as Server
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    tasks,
    router,
    calls,
    get: (path) => replyTo(`${url}${path}`, { headers: VIDEO_HEADERS }),
    post: (path, body, headers = {}) =>
      replyTo(`${url}${path}`, { method: 'POST', body, headers: { ...VIDEO_HEADERS, ...headers } }),
    close: async () => {
      server.closeAllConnections()
      await application.close()
    },
  }
}

async function replyTo(url: string, init: RequestInit): Promise<VideoReply> {
  const response = await fetch(url, init)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as Record<string, unknown> }
}

function begin(request: IncomingMessage, response: ServerResponse, memory: MemoryBudget): RequestContext {
  const call = contextAt(request.method ?? '', (request.url ?? '').split('?')[0] ?? '', 'req_1', performance.now())
  const lease = new BudgetLease(memory, call)
  call.memory = lease
  attachContext(request, call)
  response.once('close', () => {
    if (!response.writableFinished) call.disconnect.abort()
    lease.close()
  })
  return call
}
