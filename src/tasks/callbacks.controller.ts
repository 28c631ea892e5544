import { Controller, Injectable, Param } from '@nestjs/common'
import type { ProviderResponse } from '../core/byte-stream.js'
import { GatewayError, UnknownPath } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import { taskResponse } from '../dialects/task-response.js'
import type { VideoKind } from '../providers/contract.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { CurrentRequest, type Exchange, HttpExchange } from '../server/json-request.js'
import { assertReadable, readBody } from '../server/read-body.js'
import { CallbackDeliveryDto, RedeliveryDto, WEBHOOK_ID } from './callback.dto.js'
import { isCallbackToken } from './task.js'
import { MULTI_IMAGE_CALLBACKS, REDELIVER_CALLBACK, TEXT_CALLBACKS, UPSTREAM_CALLBACK } from './task.endpoints.js'
import { TaskRepository } from './task.repository.js'
import { Tasks } from './contract.js'
import { Clock, PollWakeTimer } from './background-work.js'

/** The same rule as for reading a task: no id is longer, and a database text cannot hold a NUL. */
const TASK_ID = /^\P{Cc}{1,256}$/u

/** Callback deliveries for the owner of a task (design: exhausted deliveries stay visible). */
@Injectable()
export class CallbacksService {
  constructor(private readonly tasks: Tasks) {}

  /** The events of the caller's own task, oldest first. Rejects with `not_found`. */
  async ofTask(kind: VideoKind, id: string, call: RequestContext): Promise<CallbackDeliveryDto[]> {
    const task = TASK_ID.test(id) ? await this.tasks.find(kind, id, call) : undefined
    if (task === undefined) throw new GatewayError('not_found', 'There is no such task.')
    const deliveries = await this.tasks.deliveries(task)
    return deliveries.map((delivery) => new CallbackDeliveryDto(delivery))
  }

  /** Restarts the schedule of one event, in whatever state. Rejects with `not_found`. */
  async redeliver(webhookId: string, call: RequestContext): Promise<RedeliveryDto> {
    const isKnown = WEBHOOK_ID.test(webhookId) && (await this.tasks.redeliver(webhookId, call.caller))
    if (!isKnown) throw new GatewayError('not_found', 'There is no such callback.')
    return new RedeliveryDto(webhookId)
  }
}

@Controller()
export class CallbacksController {
  constructor(private readonly callbacks: CallbacksService) {}

  @Endpoint(MULTI_IMAGE_CALLBACKS)
  async ofMultiImageTask(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return taskResponse(call, JSON.stringify(await this.callbacks.ofTask('multi-image2video', id, call)))
  }

  @Endpoint(TEXT_CALLBACKS)
  async ofTextTask(@Param('id') id: string, @CurrentRequest() call: RequestContext): Promise<ProviderResponse> {
    return taskResponse(call, JSON.stringify(await this.callbacks.ofTask('text2video', id, call)))
  }

  @Endpoint(REDELIVER_CALLBACK)
  async redeliver(
    @Param('webhookId') webhookId: string,
    @CurrentRequest() call: RequestContext,
  ): Promise<ProviderResponse> {
    return taskResponse(call, JSON.stringify(await this.callbacks.redeliver(webhookId, call)))
  }
}

/** Makes the next poll due. An upstream callback is only a hint, as it has no authentication: its content is not used. */
@Injectable()
export class UpstreamCallbacksService {
  constructor(
    private readonly tasks: TaskRepository,
    private readonly clock: Clock,
    private readonly wakeTimer: PollWakeTimer,
  ) {}

  /** Makes the next poll of a task due now. Rejects with `not_found` for a token without an open task. */
  async hasten(token: string): Promise<void> {
    const nowMs = this.clock.nowMs()
    const isWaiting = isCallbackToken(token) && (await this.tasks.hasten(token, nowMs))
    if (!isWaiting) throw new UnknownPath()
    this.wakeTimer.scheduleAt(nowMs)
  }
}

const BODY_LIMITS = { maximumBytes: UPSTREAM_CALLBACK.bodyLimit, timeoutMs: 5000 }

/** Receives upstream callbacks about changed tasks; no key, but a path with a secret token. */
@Controller()
export class UpstreamCallbacksController {
  constructor(private readonly callbacks: UpstreamCallbacksService) {}

  @Endpoint(UPSTREAM_CALLBACK)
  async receive(@Param('token') token: string, @HttpExchange() { request, response }: Exchange): Promise<object> {
    assertReadable(request, BODY_LIMITS.maximumBytes)
    await readBody(request, response, BODY_LIMITS)
    await this.callbacks.hasten(token)
    return {}
  }
}
