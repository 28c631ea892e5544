import { pino } from 'pino'
import { PROVIDERS } from '../../src/app/providers.js'
import { ConfigStore } from '../../src/config/config-store.js'
import type { Caller } from '../../src/core/caller.js'
import { RequestContext } from '../../src/core/request-context.js'
import { Metrics } from '../../src/observability/metrics.js'
import { ChannelRouter } from '../../src/routing/channel-router.js'
import { ProviderRegistry } from '../../src/routing/channel-selection.js'
import { ChannelHealth } from '../../src/routing/circuit-breaker.js'
import { RetryBudget } from '../../src/routing/retry.js'
import { Translations } from '../../src/routing/translations.js'
import { UnknownUpstreamWords } from '../../src/routing/unknown-words.js'
import { CallbackAddress } from '../../src/tasks/callback-attempt.js'
import { IdempotentReplays, TaskCreation, TaskIntents } from '../../src/tasks/create-task.js'
import { TaskPoller } from '../../src/tasks/poller.js'
import { TaskRecorder, TaskRefresher, TaskWatchers } from '../../src/tasks/task-updates.js'
import type { Task, TaskState } from '../../src/tasks/task.js'
import { RefreshThrottle, TaskService } from '../../src/tasks/task.service.js'
import type { CreateTaskRequest } from '../../src/tasks/contract.js'
import { TransitionSettings } from '../../src/tasks/transitions.js'
import { UpstreamCallbacksService } from '../../src/tasks/callbacks.controller.js'
import { Clock, PollWakeTimer } from '../../src/tasks/background-work.js'
import { SafeFetchClient } from '../../src/upstream/safe-fetch.js'
import { UpstreamClient } from '../../src/upstream/upstream-client.js'
import { parseConfig } from './config.js'
import { eventually } from './eventually.js'
import { type MemoryRepositories, memoryRepositories } from './memory-tasks.js'
import { CollectedUsage, FakeVideoUpstream } from './task-rows.js'

/** A clock that stands until it is moved. */
export class ManualClock extends Clock {
  private timeMs = 1_750_000_000_000

  nowMs(): number {
    return this.timeMs
  }

  advance(milliseconds: number): void {
    this.timeMs += milliseconds
  }
}

/** An address callbacks may go to in the lab; nothing listens there. */
export const CALLBACK_URL = 'http://127.0.0.1:9/hook'

export const TEAM_A: Caller = { keyId: 'team-a' }
export const TEAM_B: Caller = { keyId: 'team-b' }

/** What replicas share. */
export interface TaskWorld {
  readonly store: MemoryRepositories
  readonly upstream: FakeVideoUpstream
  readonly clock: ManualClock
}

/** One process of the engine with its real parts, over a store in memory and a scripted upstream. */
export interface TaskLab extends TaskWorld {
  readonly config: ConfigStore
  readonly router: ChannelRouter
  readonly health: ChannelHealth
  readonly engine: TaskService
  readonly creation: TaskCreation
  readonly poller: TaskPoller
  readonly wakeTimer: PollWakeTimer
  readonly intake: UpstreamCallbacksService
  readonly usage: CollectedUsage
  /** How often the sender of events was woken. */
  readonly wakes: () => number
  /** A text2video create; what is given replaces the defaults. */
  readonly order: (changes?: Partial<CreateTaskRequest>, caller?: Caller) => CreateTaskRequest
  readonly reload: () => Promise<unknown>
}

interface TaskLabOptions {
  readonly channels?: readonly object[]
  /** What the configuration file holds after a reload. */
  readonly laterChannels?: readonly object[]
  readonly sections?: { readonly tasks?: object; readonly server?: object }
  readonly world?: TaskWorld
  /** How soon a watcher sees what another replica did. */
  readonly rereadMs?: number
}

export const videoChannel = (id: string, changes: object = {}): object => ({
  id,
  provider: 'vidgen',
  baseUrl: 'http://127.0.0.1:1',
  credentials: `access-${id}|secret-${id}`,
  models: ['test-video'],
  ...changes,
})

export const taskWorld = (): TaskWorld => ({
  store: memoryRepositories(),
  upstream: new FakeVideoUpstream(),
  clock: new ManualClock(),
})

export function taskLab({
  channels = [videoChannel('main')],
  laterChannels = channels,
  sections = {},
  world = taskWorld(),
  // So long that only events, never the reread, end a wait.
  rereadMs = 3_600_000,
}: TaskLabOptions = {}): TaskLab {
  // No pace by default: a clock moved by the test would advance between two polls.
  const tasksSection = { pollsPerSecond: 1_000_000, ...sections.tasks }
  const parse = (list: readonly object[]) =>
    parseConfig(
      JSON.stringify({ channels: list, ssrf: { allow: ['127.0.0.1:9'] }, ...sections, tasks: tasksSection }),
      {},
    )
  const config = new ConfigStore(parse(channels), () => Promise.resolve({ config: parse(laterChannels), file: '' }))
  const { store, clock, upstream } = world
  const { tasks, callbacks } = store
  const registry = new ProviderRegistry(PROVIDERS, { vidgen: { video: upstream } })
  const health = new ChannelHealth(config)
  const router = new ChannelRouter(
    config,
    new UpstreamClient(),
    registry,
    health,
    new RetryBudget(),
    new Translations(config, new UnknownUpstreamWords(new Metrics(), { warn: () => undefined })),
  )
  const logger = pino({ level: 'silent' })
  let wakes = 0
  const sender = {
    wake: () => {
      wakes++
    },
  }
  const watchers = new TaskWatchers(rereadMs)
  const transitionSettings = new TransitionSettings(config, clock)
  const usage = new CollectedUsage()
  const recorder = new TaskRecorder(tasks, watchers, sender, usage)
  const refresh = new TaskRefresher(router, recorder, transitionSettings, logger)
  const wakeTimer = new PollWakeTimer(clock)
  const replays = new IdempotentReplays(tasks)
  const intents = new TaskIntents(tasks, replays, config)
  const address = new CallbackAddress(new SafeFetchClient(config), { areAllowed: false })
  const creation = new TaskCreation(intents, replays, recorder, transitionSettings, config, wakeTimer, address, logger)
  const throttle = new RefreshThrottle(clock)
  return {
    ...world,
    usage,
    config,
    router,
    health,
    creation,
    wakeTimer,
    engine: new TaskService(tasks, callbacks, creation, refresh, throttle, watchers, clock, sender),
    poller: new TaskPoller(tasks, refresh, wakeTimer, config, clock, logger),
    intake: new UpstreamCallbacksService(tasks, clock, wakeTimer),
    wakes: () => wakes,
    order: (changes = {}, caller = TEAM_A) => ({
      kind: 'text2video',
      model: 'test-video',
      route: router.route('video', 'test-video', caller),
      fingerprint: 'a'.repeat(64),
      send: (provider, context, ids) => provider.create('text2video', [Buffer.from(JSON.stringify(ids))], context),
      ...changes,
    }),
    reload: () => config.reload(),
  }
}

let calls = 0

/** A request of a caller to the create route. */
export function callOf(caller: Caller = TEAM_A): RequestContext {
  const call = new RequestContext(`req_${++calls}`, 'POST', '/vidgen/v1/videos/text2video', performance.now())
  call.caller = caller
  return call
}

/** Labs whose pollers run. */
const running: TaskLab[] = []

/** One whose poller runs until `stopLabs`. */
export function startedLab(options?: TaskLabOptions): TaskLab {
  const lab = taskLab(options)
  running.push(lab)
  lab.poller.start()
  return lab
}

export async function stopLabs(): Promise<void> {
  for (const lab of running.splice(0)) await lab.poller.stop()
}

/** Creates `order-0`, `order-1` and so on; refused and lost ones are left to the test. */
export async function make(lab: TaskLab, count: number, changes: object = {}): Promise<void> {
  for (let number = 0; number < count; number++) {
    await lab.engine
      .create(lab.order({ externalTaskId: `order-${number}`, ...changes }), callOf())
      .catch(() => undefined)
  }
}

/** Lets time pass and the poller rise. */
export function pass(lab: TaskLab, milliseconds: number): void {
  lab.clock.advance(milliseconds)
  for (const other of running) other.wakeTimer.wake()
}

/** The same, until it has looked for work. */
export async function passRound(lab: TaskLab, milliseconds: number): Promise<void> {
  const { claims } = lab.store.tasks
  pass(lab, milliseconds)
  await eventually(() => lab.store.tasks.claims > claims)
}

export const counts = (lab: TaskLab): Promise<Readonly<Partial<Record<TaskState, number>>>> =>
  lab.store.tasks.countByState()

/** Lets time pass, poll by poll, until all tasks are in the state. */
export async function passUntil(lab: TaskLab, state: TaskState, count: number, stepMs = 1000): Promise<void> {
  await eventually(
    async () => {
      if (((await counts(lab))[state] ?? 0) >= count) return true
      await passRound(lab, stepMs)
      return false
    },
    () => counts(lab),
  )
}

export const taskOf = async (lab: TaskLab, externalId: string): Promise<Task | undefined> =>
  lab.store.tasks.find('team-a', 'text2video', externalId)

/** A text2video create of this caller; `changes` lie over the order. */
export const made = (lab: TaskLab, externalTaskId: string, caller: Caller = TEAM_A, changes: object = {}) =>
  lab.engine.create(lab.order({ externalTaskId, ...changes }, caller), callOf(caller))

/** The text2video task that this caller has under this id. */
export const find = (lab: TaskLab, id: string, caller: Caller = TEAM_A) =>
  lab.engine.find('text2video', id, callOf(caller))
