import type { Caller } from '../../src/core/caller.js'
import { GatewayError } from '../../src/core/gateway-error.js'
import type { Call } from '../../src/core/request-context.js'
import type { CallContext } from '../../src/providers/call-context.js'
import type { UpstreamVideoTask, VideoKind, VideoProvider } from '../../src/providers/video.contract.js'
import { type PinnedRoute, ProviderRouter } from '../../src/routing/router.js'
import { isTerminal, type Task } from '../../src/tasks/task.js'
import { type CreateAnswer, type TaskOrder, Tasks } from '../../src/tasks/tasks.js'

/** A channel that remembers what it was asked, and knows the tasks that it was given. */
export class StandInChannel implements VideoProvider, PinnedRoute<VideoProvider> {
  readonly modelClass = 'video'
  readonly bodies: string[] = []
  readonly reads: string[] = []
  readonly known = new Map<string, UpstreamVideoTask>()
  failure: GatewayError | undefined
  /** While it is set, creates wait for it. */
  gate: Promise<void> | undefined

  constructor(
    readonly channelId: string,
    readonly options: Readonly<Record<string, unknown>> = {},
  ) {}

  attempt<Result>(
    call: Call,
    _policy: unknown,
    run: (provider: VideoProvider, context: CallContext) => Promise<Result>,
  ): Promise<Result> {
    return run(this, { call, channelId: this.channelId, upstreamModel: 'upstream-name' } as CallContext)
  }

  async create(_kind: VideoKind, body: Buffer): Promise<UpstreamVideoTask> {
    this.bodies.push(body.toString())
    await this.gate
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
export class StandInRouter extends ProviderRouter {
  readonly asked: string[] = []

  constructor(private readonly channels: readonly StandInChannel[]) {
    super()
  }

  video(model: string): StandInChannel {
    this.asked.push(model)
    const [channel] = this.channels
    if (channel === undefined || model === 'unknown') throw new GatewayError('unknown_model', 'No such model.')
    return channel
  }

  videoChannels(): readonly StandInChannel[] {
    return this.channels
  }

  imageChannels = absent
  document = absent
  speech = absent
  transcription = absent
  translation = absent
  chat = absent
  messages = absent
  realtime = absent
  models = absent
}

function absent(): never {
  throw new Error('not in this test')
}

/** Tasks without a store: asks upstream, keeps what came of it, and says it in the words of the contract. */
export class StandInTasks extends Tasks {
  readonly orders: TaskOrder[] = []
  readonly kept: Task[] = []
  readonly pages: object[] = []
  /** Ids of tasks that belong to somebody else. */
  readonly foreign = new Set<string>()
  replayed = false
  private readonly watchers = new Map<string, (task: Task) => void>()
  private wake: (() => void)[] = []

  async create(order: TaskOrder, call: Call): Promise<CreateAnswer> {
    this.orders.push(order)
    const made = await order.route.attempt(call, { repeatableOnceSent: false }, (provider, context) =>
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

  async watch(task: Task, call: Call, onChange: (task: Task) => void): Promise<void> {
    let last = task
    this.watchers.set(task.id, (changed) => {
      last = changed
      onChange(changed)
      this.stir()
    })
    const forget = call.departure.onLeave(() => {
      this.stir()
    })
    onChange(task)
    while (!isTerminal(last.state) && !call.departure.left) await new Promise<void>((done) => this.wake.push(done))
    forget()
    this.watchers.delete(task.id)
    this.stir()
  }

  /** Shows a change to whoever watches the task. */
  announce(task: Task): void {
    this.watchers.get(task.id)?.(task)
  }

  /** Resolves once as many watchers are there. */
  async watched(count: number): Promise<void> {
    while (this.watchers.size !== count) await new Promise((done) => setImmediate(done))
  }

  deliveries = absent
  redeliver = absent

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
