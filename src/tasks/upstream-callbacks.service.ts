import { Injectable } from '@nestjs/common'
import { GatewayError } from '../core/gateway-error.js'
import { Clock } from './clock.js'
import { isCallbackToken } from './external-ids.js'
import { PollAlarm } from './poll-alarm.js'
import { TaskRepository } from './task.repository.js'

/** What an upstream says about a task is a hint, as anyone could have said it: the next poll finds out. */
@Injectable()
export class UpstreamCallbacksService {
  constructor(
    private readonly tasks: TaskRepository,
    private readonly clock: Clock,
    private readonly alarm: PollAlarm,
  ) {}

  /** Brings the next poll of a task forward. Rejects with `not_found` for a token of no task that is under way. */
  async hasten(token: string): Promise<void> {
    const nowMs = this.clock.nowMs()
    const isWaiting = isCallbackToken(token) && (await this.tasks.hasten(token, nowMs))
    if (!isWaiting) throw new GatewayError('not_found', 'There is nothing at this path.')
    this.alarm.ring(nowMs)
  }
}
