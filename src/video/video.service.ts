import { hash } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import type { JsonBody, JsonEdits } from '../core/json-body.js'
import type { RequestContext } from '../core/request-context.js'
import { type Follow, followingFailure, jsonTextResponse, TaskEvents, taskResponse } from '../dialects/task-response.js'
import { type UpstreamVideoTask, VIDEO_KINDS, type VideoKind, type VideoProvider } from '../providers/contract.js'
import { type PinnedRoute, ProviderRouter } from '../routing/router.js'
import { isUpstreamExternalId, type Task } from '../tasks/task.js'
import { type CreateTaskRequest, type TaskIds, Tasks } from '../tasks/contract.js'
import { eventResponse } from '../upstream/upstream-response.js'
import {
  DEFAULT_MODELS,
  IDEMPOTENCY_KEY,
  PAGE_NUMBER,
  PAGE_SIZE,
  type PageParameter,
  type VideoFields,
} from './video.dto.js'

/** Ids of tasks made elsewhere may be of any kind, but they become a part of the upstream's path. */
const TASK_ID = /^[^\p{Cc}/\\]{1,256}$/u
const DOT_SEGMENTS: ReadonlySet<string> = new Set(['.', '..'])

const unknownTask = (): GatewayError => new GatewayError('not_found', 'There is no such task.')

/** Throws `not_found` for what can be no task's id, without asking anyone. */
export function assertTaskId(id: string): void {
  if (!TASK_ID.test(id) || DOT_SEGMENTS.has(id)) throw unknownTask()
}

/** The `Idempotency-Key` of a create; undefined without one. Throws `invalid_request`. */
export function readIdempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined || IDEMPOTENCY_KEY.test(header)) return header
  throw new GatewayError(
    'invalid_request',
    "Invalid 'Idempotency-Key': expected 1 to 255 printable ASCII characters.",
    {
      param: 'Idempotency-Key',
      code: 'invalid_value',
    },
  )
}

/** Part of the caller's tasks, newest first. */
interface TaskPage {
  /** From 0. */
  readonly offset: number
  readonly limit: number
}

/** Which tasks a list shows. Throws `invalid_request` naming the parameter. */
export function readPage(query: Readonly<Record<string, unknown>>): TaskPage {
  const limit = read(query, PAGE_SIZE)
  return { offset: (read(query, PAGE_NUMBER) - 1) * limit, limit }
}

function read(query: Readonly<Record<string, unknown>>, { name, maximum, fallback }: PageParameter): number {
  const value = query[name]
  if (value === undefined) return fallback
  const number = typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : 0
  if (number >= 1 && number <= maximum) return number
  throw new GatewayError('invalid_request', `Invalid '${name}': expected a whole number from 1 to ${maximum}.`, {
    param: name,
    code: 'invalid_value',
  })
}

/** The model as the caller named it; undefined when they left it to the default. */
function namedModel(kind: VideoKind, fields: VideoFields): string | undefined {
  // Elsewhere `model` is an unknown field like any other.
  return fields.model_name ?? (kind === 'text2video' ? fields.model : undefined) ?? undefined
}

/** The model that decides about access and channel. */
export const routedModel = (kind: VideoKind, fields: VideoFields): string =>
  namedModel(kind, fields) ?? DEFAULT_MODELS[kind]

/**
 * The caller's bytes with only what the gateway must change: the model's name at this upstream, the ids under which it knows
 * the task and calls back, and a duration in numbers, which the upstream has in words. Nothing the caller left out is added.
 * In pieces, as pictures make 50 MB of it.
 */
export function forwardedBody(
  kind: VideoKind,
  body: JsonBody<VideoFields>,
  upstreamModel: string,
  ids: TaskIds,
): readonly Buffer[] {
  const { fields } = body
  return body.editedPieces({
    ...modelEdits(kind, fields, upstreamModel),
    ...(typeof fields.duration === 'number' ? { duration: JSON.stringify(String(fields.duration)) } : {}),
    // The caller's own address never leaves the gateway.
    callback_url: ids.callbackUrl === undefined ? undefined : JSON.stringify(ids.callbackUrl),
    external_task_id: JSON.stringify(ids.externalId),
  })
}

function modelEdits(kind: VideoKind, fields: VideoFields, upstreamModel: string): JsonEdits {
  const name = namedModel(kind, fields)
  if (name === undefined || (name === upstreamModel && fields.model_name === name)) return {}
  const renamed = { model_name: JSON.stringify(upstreamModel) }
  return fields.model_name === name ? renamed : { ...renamed, model: undefined }
}

/** A task's changes as an event stream: the first time at once, then at each change, up to the terminal state. */
export const videoTaskEvents = (tasks: Tasks, task: Task, call: RequestContext): TaskEvents =>
  new TaskEvents(followed(tasks, task, call), call)

function followed(tasks: Tasks, task: Task, call: RequestContext): Follow {
  return (listener) => {
    const stop = new AbortController()
    tasks
      .watch(task, call, stop.signal, ({ object }) => {
        if (object !== undefined) listener.changed({ object })
      })
      .then(
        () => {
          listener.ended()
        },
        (error: unknown) => {
          listener.failed(followingFailure(error))
        },
      )
    return () => {
      stop.abort()
    }
  }
}

/** Tasks this gateway never saw: made before it stood there, or around it (channel option `unknownTasks`). */
@Injectable()
export class UnknownTasks {
  constructor(private readonly router: ProviderRouter) {}

  /**
   * Asks one channel after the other until one knows the task; undefined when none does. Rejects with the first failure
   * when a channel that could not be asked may be the one that knows it.
   */
  async ask(kind: VideoKind, id: string, call: RequestContext): Promise<UpstreamVideoTask | undefined> {
    let failure: { readonly error: unknown } | undefined
    for (const route of this.router.videoChannels(call.caller).filter(isRelaying)) {
      call.assertPresent()
      try {
        const found = await route.attempt(call, { canRetryAfterSend: true }, (provider, context) =>
          provider.read(kind, id, context),
        )
        if (found !== undefined) return isOwned(found, call) ? undefined : found
      } catch (error) {
        failure ??= { error }
      }
    }
    if (failure !== undefined) throw failure.error
    return undefined
  }
}

const isRelaying = ({ options }: PinnedRoute<VideoProvider>): boolean => options['unknownTasks'] !== 'refuse'

/**
 * A task made through a gateway has an owner, also where this store does not know it, yet or any more. With an upstream
 * key of the caller's own the upstream decides.
 */
function isOwned({ object }: UpstreamVideoTask, { caller }: RequestContext): boolean {
  const { task_info: info } = JSON.parse(object) as { readonly task_info?: unknown }
  const id = typeof info === 'object' && info !== null && 'external_task_id' in info ? info.external_task_id : undefined
  return caller.bearer === undefined && typeof id === 'string' && isUpstreamExternalId(id)
}

const REPLAY_HEADER = 'x-idempotent-replay'

/** Video tasks of both kinds (specification: Video task). */
@Injectable()
export class VideoService {
  constructor(
    private readonly router: ProviderRouter,
    private readonly tasks: Tasks,
    private readonly unknownTasks: UnknownTasks,
  ) {}

  async create(
    kind: VideoKind,
    body: JsonBody<VideoFields>,
    idempotencyKey: string | undefined,
    call: RequestContext,
  ): Promise<ProviderResponse> {
    const {
      status,
      body: answer,
      replayed,
    } = await this.tasks.create(this.requestOf(kind, body, readIdempotencyKey(idempotencyKey), call), call)
    return jsonTextResponse(status, answer, replayed ? { [REPLAY_HEADER]: 'true' } : {})
  }

  /** By the task's id or the caller's own; tasks this gateway never saw are looked for upstream. */
  async find(kind: VideoKind, id: string, call: RequestContext): Promise<ProviderResponse> {
    assertTaskId(id)
    const task = await this.tasks.find(kind, id, call)
    return taskResponse(call, task === undefined ? await this.unknownObject(kind, id, call) : objectOf(task))
  }

  /** The caller's own tasks, newest first. */
  async list(
    kind: VideoKind,
    query: Readonly<Record<string, unknown>>,
    call: RequestContext,
  ): Promise<ProviderResponse> {
    const tasks = await this.tasks.list(kind, readPage(query), call.caller)
    return taskResponse(call, `[${tasks.map(objectOf).join(',')}]`)
  }

  /** The task object at each of its changes, until it has ended. */
  async events(kind: VideoKind, id: string, call: RequestContext): Promise<ProviderResponse> {
    assertTaskId(id)
    const task = await this.tasks.find(kind, id, call)
    // What the gateway does not keep, it cannot watch.
    if (task === undefined) throw unknownTask()
    return await eventResponse(200, {}, videoTaskEvents(this.tasks, task, call))
  }

  private requestOf(
    kind: VideoKind,
    body: JsonBody<VideoFields>,
    key: string | undefined,
    call: RequestContext,
  ): CreateTaskRequest {
    const { external_task_id: externalTaskId, callback_url: callbackUrl } = body.fields
    const model = routedModel(kind, body.fields)
    call.log.model = model
    return {
      kind,
      model,
      route: this.router.route('video', model, call.caller),
      ...(externalTaskId == null ? {} : { externalTaskId }),
      ...(callbackUrl == null ? {} : { callbackUrl }),
      ...(key === undefined ? {} : { idempotencyKey: key }),
      // Only creates under a key compare bodies, and 60 MB take their time.
      get fingerprint() {
        return hash('sha256', body.bytes, 'hex')
      },
      send: (provider, context, ids) =>
        provider.create(kind, forwardedBody(kind, body, context.upstreamModel, ids), context),
    }
  }

  /**
   * An upstream shows a task under any id it has of it, and perhaps under the path of the other kind: what it shows may
   * still be the task of another caller.
   */
  private async unknownObject(kind: VideoKind, id: string, call: RequestContext): Promise<string> {
    const found = await this.unknownTasks.ask(kind, id, call)
    if (found === undefined) throw unknownTask()
    for (const known of VIDEO_KINDS) {
      if ((await this.tasks.find(known, found.id, call)) !== undefined) throw unknownTask()
    }
    return found.object
  }
}

function objectOf({ object }: Task): string {
  if (object === undefined) throw unknownTask()
  return object
}
