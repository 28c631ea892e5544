import { hash } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import type { JsonBody } from '../core/json-body.js'
import type { Call } from '../core/request-context.js'
import type { UpstreamAnswer } from '../core/upstream-answer.js'
import { jsonTextAnswer, taskAnswer } from '../dialects/task-answer.js'
import { VIDEO_KINDS, type VideoKind } from '../providers/video.contract.js'
import { ProviderRouter } from '../routing/router.js'
import type { Task } from '../tasks/task.js'
import { type TaskOrder, Tasks } from '../tasks/tasks.js'
import { eventAnswer } from '../upstream/upstream-response.js'
import { forwardedBody, routedModel } from './forwarded-body.js'
import { videoTaskEvents } from './task-events.js'
import { assertTaskId, readIdempotencyKey, unknownTask } from './task-ids.js'
import { UnknownTasks } from './unknown-tasks.js'
import type { VideoFields } from './video-fields.js'
import { readPage } from './video-query.js'

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
    call: Call,
  ): Promise<UpstreamAnswer> {
    const {
      status,
      body: answer,
      replayed,
    } = await this.tasks.create(this.orderOf(kind, body, readIdempotencyKey(idempotencyKey), call), call)
    return jsonTextAnswer(status, answer, replayed ? { [REPLAY_HEADER]: 'true' } : {})
  }

  /** By the task's id or the caller's own; tasks this gateway never saw are looked for upstream. */
  async find(kind: VideoKind, id: string, call: Call): Promise<UpstreamAnswer> {
    assertTaskId(id)
    const task = await this.tasks.find(kind, id, call)
    return taskAnswer(call, task === undefined ? await this.unknownObject(kind, id, call) : objectOf(task))
  }

  /** The caller's own tasks, newest first. */
  async list(kind: VideoKind, query: Readonly<Record<string, unknown>>, call: Call): Promise<UpstreamAnswer> {
    const tasks = await this.tasks.list(kind, readPage(query), call.caller)
    return taskAnswer(call, `[${tasks.map(objectOf).join(',')}]`)
  }

  /** The task object at each of its changes, until it has ended. */
  async events(kind: VideoKind, id: string, call: Call): Promise<UpstreamAnswer> {
    assertTaskId(id)
    const task = await this.tasks.find(kind, id, call)
    // What the gateway does not keep, it cannot watch.
    if (task === undefined) throw unknownTask()
    return await eventAnswer(200, {}, videoTaskEvents(this.tasks, task, call))
  }

  private orderOf(kind: VideoKind, body: JsonBody<VideoFields>, key: string | undefined, call: Call): TaskOrder {
    const { external_task_id: externalTaskId, callback_url: callbackUrl } = body.fields
    const model = routedModel(kind, body.fields)
    call.log.model = model
    return {
      kind,
      model,
      route: this.router.video(model, call.caller),
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
  private async unknownObject(kind: VideoKind, id: string, call: Call): Promise<string> {
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
