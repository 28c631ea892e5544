import { Shown } from '../core/dto.js'
import { COUNT, described, nullable, UNIX_MS } from '../core/json-schema.js'
import { hostOf } from './callback-attempt.js'
import type { CallbackDelivery } from './callback.repository.js'

/** One event of a task and the state of its delivery, as callers see it. */
export class CallbackDeliveryDto {
  @Shown(described('The same for every attempt'))
  readonly webhook_id: string

  @Shown(described('Host and port of the callback address; the rest of it may hold secrets'))
  readonly host: string

  @Shown(described('Attempts made so far', COUNT))
  readonly attempts: number

  @Shown(UNIX_MS)
  readonly created_at: number

  @Shown({ ...nullable(UNIX_MS), description: `${UNIX_MS.description}; null once it has ended` })
  readonly next_attempt_at: number | null

  @Shown(nullable(UNIX_MS))
  readonly delivered_at: number | null

  @Shown({ ...nullable(UNIX_MS), description: `${UNIX_MS.description}; no further attempt will be made` })
  readonly exhausted_at: number | null

  @Shown(nullable(described('Why the last attempt failed')))
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
  @Shown(described('The event that is sent again'))
  readonly webhook_id: string

  constructor(webhookId: string) {
    this.webhook_id = webhookId
  }
}

/** Longer than any id of the gateway, and without characters that a database refuses. */
export const WEBHOOK_ID = /^[\w-]{1,128}$/
