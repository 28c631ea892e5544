import { Injectable } from '@nestjs/common'
import { ConfigStore } from '../config/config-store.js'
import { peek, type ProviderResponse } from '../core/byte-stream.js'
import { type Caller, ownerOf } from '../core/caller.js'
import type { GatewayError } from '../core/errors.js'
import { RequestContext } from '../core/request-context.js'
import { followingFailure, jsonTextResponse, TaskEvents, type TaskListener } from '../dialects/task-response.js'
import type { UpstreamImageTask } from '../providers/contract.js'
import { eventResponse } from '../upstream/upstream-response.js'
import { ImageChannels } from './image-tasks.js'
import { assertTaskId } from './task-id.js'

/** In a row; until then a stream waits for better times. */
const TOLERATED_FAILURES = 2

interface PollPlan {
  /** Asks for the task once. */
  readonly poll: () => Promise<UpstreamImageTask>
  /** Between an answer and the next question. */
  readonly pauseMs: () => number
  /** Called once, when there are no followers any more or there is nothing left to follow. */
  readonly close: () => void
}

/**
 * Follows one task for everyone who wants to know of it: never more than one question is under way. Ends with the task,
 * with its last listener, when the first look fails, or when several in a row do.
 */
export class TaskWatch {
  private readonly listeners = new Set<TaskListener>()
  private shown: UpstreamImageTask | undefined
  private failures = 0
  private timer: NodeJS.Timeout | undefined
  private isOver = false

  constructor(private readonly plan: PollPlan) {}

  /** Tells the task at once when it is known, then at every change. Returns the way to stop. */
  add(listener: TaskListener): () => void {
    const isFirst = this.listeners.size === 0
    this.listeners.add(listener)
    if (this.shown !== undefined) listener.changed(this.shown)
    if (isFirst) void this.poll()
    return () => {
      this.listeners.delete(listener)
      if (this.listeners.size === 0) this.close()
    }
  }

  private async poll(): Promise<void> {
    const outcome = await this.plan.poll().then(
      (task) => ({ task }),
      (error: unknown) => ({ error: followingFailure(error) }),
    )
    if (this.isOver) return
    if ('task' in outcome) this.recordResult(outcome.task)
    else this.recordFailure(outcome.error)
  }

  private recordResult(task: UpstreamImageTask): void {
    const isNews = this.shown === undefined || hasChanged(this.shown, task)
    this.failures = 0
    this.shown = task
    if (isNews) for (const listener of [...this.listeners]) listener.changed(task)
    if (!task.isTerminal) this.pollAfter(this.plan.pauseMs())
    else {
      this.finish((listener) => {
        listener.ended()
      })
    }
  }

  private recordFailure(error: GatewayError): void {
    this.failures++
    if (this.shown !== undefined && this.failures <= TOLERATED_FAILURES) {
      this.pollAfter(Math.max(this.plan.pauseMs(), (error.details.retryAfterSeconds ?? 0) * 1000))
      return
    }
    this.finish((listener) => {
      listener.failed(error)
    })
  }

  private pollAfter(delayMs: number): void {
    if (this.isOver) return
    this.timer = setTimeout(() => void this.poll(), delayMs)
  }

  private finish(word: (listener: TaskListener) => void): void {
    const listeners = [...this.listeners]
    this.close()
    for (const listener of listeners) word(listener)
  }

  private close(): void {
    if (this.isOver) return
    this.isOver = true
    this.listeners.clear()
    clearTimeout(this.timer)
    this.plan.close()
  }
}

const hasChanged = (before: UpstreamImageTask, now: UpstreamImageTask): boolean =>
  before.status !== now.status || before.progress !== now.progress || before.imageUrl !== now.imageUrl

/** The watches that are under way: one for each task, however many follow it. */
@Injectable()
export class TaskWatches {
  private readonly running = new Map<string, TaskWatch>()

  constructor(
    private readonly channels: ImageChannels,
    private readonly store: ConfigStore,
  ) {}

  /** Follows a task from now on; returns the way to stop. */
  follow(id: string, { caller, path }: Pick<RequestContext, 'caller' | 'path'>, listener: TaskListener): () => void {
    const key = `${askingKey(caller)} ${id}`
    const watch = this.running.get(key) ?? this.begin(key, id, caller, path)
    return watch.add(listener)
  }

  private begin(key: string, id: string, caller: Caller, path: string): TaskWatch {
    // Polls belong to no request: a follower who leaves must not end them for the others.
    const call = new RequestContext(`watch-${id}`, 'GET', path, performance.now())
    call.caller = caller
    const watch = new TaskWatch({
      poll: () => this.channels.ask(id, call, (provider, context) => provider.fetch(id, context)),
      pauseMs: () => this.store.current.tasks.pollIntervalMs,
      close: () => {
        this.running.delete(key)
        call.disconnect.abort()
      },
    })
    this.running.set(key, watch)
    return watch
  }
}

/** With which key upstreams are asked: answers to a key of a caller's own are that caller's alone. */
const askingKey = (caller: Caller): string => (caller.bearer === undefined ? 'gateway' : ownerOf(caller))

/** Image tasks (specification: Image task). They are made elsewhere: their owners are not known here. */
@Injectable()
export class ImageService {
  constructor(
    private readonly channels: ImageChannels,
    private readonly watches: TaskWatches,
    private readonly store: ConfigStore,
  ) {}

  /** The task object. */
  async fetch(id: string, call: RequestContext): Promise<ProviderResponse> {
    assertTaskId(id)
    const task = await this.channels.ask(id, call, (provider, context) => provider.fetch(id, context))
    return jsonTextResponse(200, task.object)
  }

  /** The task object with the seed of its picture. */
  async seed(id: string, call: RequestContext): Promise<ProviderResponse> {
    assertTaskId(id)
    const task = await this.channels.ask(id, call, (provider, context) => provider.seed(id, context))
    return jsonTextResponse(200, task.object)
  }

  /** The task object at each of its changes, until it has ended. */
  async events(id: string, call: RequestContext): Promise<ProviderResponse> {
    assertTaskId(id)
    const { maxAgeMs } = this.store.current.tasks
    const events = new TaskEvents((listener) => this.watches.follow(id, call, listener), call, maxAgeMs)
    // The first look, however long it takes, decides between an answer and an error.
    return await eventResponse(200, {}, await peek(events, { bytes: 1 }))
  }
}
