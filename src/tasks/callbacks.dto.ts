import { ApiProperty } from '@nestjs/swagger'
import type { CallbackDelivery } from './callback.repository.js'
import { hostOf } from './callback-host.js'

const MILLISECONDS = 'Unix milliseconds'

/** One event of a task and how its delivery stands, as callers see it. */
export class CallbackDeliveryDto {
  @ApiProperty({ description: 'The same for every attempt' })
  readonly webhook_id: string

  @ApiProperty({ description: 'Host and port of the callback address; the rest of it may hold secrets' })
  readonly host: string

  @ApiProperty({ description: 'Attempts made so far' })
  readonly attempts: number

  @ApiProperty({ description: MILLISECONDS })
  readonly created_at: number

  @ApiProperty({ type: Number, nullable: true, description: `${MILLISECONDS}; null once it has ended` })
  readonly next_attempt_at: number | null

  @ApiProperty({ type: Number, nullable: true, description: MILLISECONDS })
  readonly delivered_at: number | null

  @ApiProperty({ type: Number, nullable: true, description: `${MILLISECONDS}; no further attempt will be made` })
  readonly exhausted_at: number | null

  @ApiProperty({ type: String, nullable: true, description: 'Why the last attempt failed' })
  readonly last_error: string | null

  constructor(delivery: CallbackDelivery) {
    this.webhook_id = delivery.webhookId
    this.host = hostOf(delivery.url)
    this.attempts = delivery.attempts
    this.created_at = delivery.createdAtMs
    this.next_attempt_at = delivery.nextAttemptAtMs ?? null
    this.delivered_at = delivery.deliveredAtMs ?? null
    this.exhausted_at = delivery.exhaustedAtMs ?? null
    this.last_error = delivery.lastError ?? null
  }
}

export class RedeliveryDto {
  @ApiProperty({ description: 'The event that is sent again' })
  readonly webhook_id: string

  constructor(webhookId: string) {
    this.webhook_id = webhookId
  }
}
