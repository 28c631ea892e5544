import type { Caller } from '../core/caller.js'
import type { RequestContext } from '../core/request-context.js'
import type { AttemptContext, UpstreamVideoTask, VideoKind, VideoProvider } from '../providers/contract.js'
import type { Route } from '../routing/router.js'
import type { CallbackDelivery } from './callback.repository.js'
import type { Task } from './task.js'

/** A create that its capability has validated. */
export interface CreateTaskRequest {
  readonly kind: VideoKind
  readonly model: string
  readonly route: Route<VideoProvider>
  readonly externalTaskId?: string
  readonly callbackUrl?: string
  readonly idempotencyKey?: string
  /** SHA-256 of the body as it came, hex. */
  readonly fingerprint: string
  /** Sends the create once, with the ids that are recorded. */
  readonly send: (provider: VideoProvider, context: AttemptContext, ids: TaskIds) => Promise<UpstreamVideoTask>
}

export interface TaskIds {
  /** Sent instead of the caller's `external_task_id`. */
  readonly externalId: string
  /** Sent instead of the caller's `callback_url`; absent when the gateway has no public address. */
  readonly callbackUrl?: string
}

/** The response to a create: complete JSON text, and whether it was stored before. */
export interface CreateTaskResponse {
  readonly status: number
  readonly body: string
  readonly replayed: boolean
}

/** Durable tasks as capabilities use them; also the injection token. */
export abstract class Tasks {
  /**
   * Records the intent, sends the create, records the outcome. Rejects with `conflict` (external id in use, or a create
   * under the same key is running), `unprocessable` (same key, other body), `overloaded` (no store: nothing was sent),
   * or the upstream's error; `upstream_failed` or `upstream_timeout`, not to be retried, when the outcome is unknown:
   * then the task is found again by its external id.
   */
  abstract create(request: CreateTaskRequest, call: RequestContext): Promise<CreateTaskResponse>
  /**
   * The caller's own task, refreshed from its upstream unless it has ended; as stored when the upstream fails.
   * undefined for an id that this gateway has never had; rejects with `not_found` when it is another owner's.
   */
  abstract find(kind: VideoKind, id: string, call: RequestContext): Promise<Task | undefined>
  abstract list(
    kind: VideoKind,
    page: { readonly offset: number; readonly limit: number },
    caller: Caller,
  ): Promise<readonly Task[]>
  /** Calls back at every change of the task until it has ended or `stop` is aborted; the first time at once. */
  abstract watch(task: Task, call: RequestContext, stop: AbortSignal, onChange: (task: Task) => void): Promise<void>
  /** The events of the task for its callback URL, sent or waiting. */
  abstract deliveries(task: Task): Promise<readonly CallbackDelivery[]>
  /** Sends one event of the caller again; false when it has none of that id. */
  abstract redeliver(webhookId: string, caller: Caller): Promise<boolean>
}
