import { Injectable } from '@nestjs/common'
import { GatewayError } from '../core/gateway-error.js'
import type { Call } from '../core/request-context.js'
import type { VideoKind } from '../providers/video.contract.js'
import { CallbackDeliveryDto, RedeliveryDto } from './callbacks.dto.js'
import { Tasks } from './tasks.js'

/** Longer than any of ours, and nothing a database would stumble over. */
const WEBHOOK_ID = /^[\w-]{1,128}$/

/** As for reading a task: nothing else can be one's id, and a database stumbles over a NUL. */
const TASK_ID = /^\P{Cc}{1,256}$/u

/** What callers may know of, and do about, the events sent to them (design: exhausted deliveries stay visible). */
@Injectable()
export class CallbacksService {
  constructor(private readonly tasks: Tasks) {}

  /** The events of the caller's own task, oldest first. Rejects with `not_found`. */
  async ofTask(kind: VideoKind, id: string, call: Call): Promise<CallbackDeliveryDto[]> {
    const task = TASK_ID.test(id) ? await this.tasks.find(kind, id, call) : undefined
    if (task === undefined) throw new GatewayError('not_found', 'There is no such task.')
    const deliveries = await this.tasks.deliveries(task)
    return deliveries.map((delivery) => new CallbackDeliveryDto(delivery))
  }

  /** Starts the schedule of one event anew, whatever became of it. Rejects with `not_found`. */
  async redeliver(webhookId: string, call: Call): Promise<RedeliveryDto> {
    const isKnown = WEBHOOK_ID.test(webhookId) && (await this.tasks.redeliver(webhookId, call.caller))
    if (!isKnown) throw new GatewayError('not_found', 'There is no such callback.')
    return new RedeliveryDto(webhookId)
  }
}
