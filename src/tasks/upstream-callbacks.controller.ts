import { Controller, Injectable, Param } from '@nestjs/common'
import { ApiExcludeController } from '@nestjs/swagger'
import { GatewayError } from '../core/errors.js'
import { Endpoint } from '../server/endpoint.decorator.js'
import { type Exchange, HttpExchange } from '../server/json-request.js'
import { assertReadable, readBody } from '../server/read-body.js'
import { UPSTREAM_CALLBACK } from './task.endpoints.js'
import { isCallbackToken } from './task.js'
import { TaskRepository } from './task.repository.js'
import { Clock, PollWakeTimer } from './wake-timer.js'

/**
 * Makes the next poll due. An upstream callback is only a hint, as it has no authentication: its content is not used.
 */
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
    if (!isWaiting) throw new GatewayError('not_found', 'There is nothing at this path.')
    this.wakeTimer.scheduleAt(nowMs)
  }
}

const BODY_LIMITS = { maximumBytes: UPSTREAM_CALLBACK.bodyLimit, timeoutMs: 5000 }

/** Receives upstream callbacks about changed tasks; no key, but a path with a secret token. */
@ApiExcludeController()
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
