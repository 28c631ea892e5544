import { Injectable } from '@nestjs/common'
import { GatewayError } from '../core/gateway-error.js'
import { type IdempotencyClaim, type IdempotencyRecord, TaskRepository } from './task.repository.js'
import type { CreateAnswer } from './tasks.js'

/** Answers creates that were sent before under the same idempotency key. */
@Injectable()
export class IdempotentReplays {
  constructor(private readonly tasks: TaskRepository) {}

  /** The stored answer; undefined for a key that is new. Rejects with `unprocessable` or `idempotency_running`. */
  async find(claim: IdempotencyClaim): Promise<CreateAnswer | undefined> {
    const record = await this.tasks.findIdempotency(claim)
    if (record === undefined) return undefined
    if (record.fingerprint !== claim.fingerprint) throw otherBody()
    // The answer is written with the task's first known state, whoever learns of it: without one there is none yet.
    if (record.state === 'running') throw stillRunning()
    return { status: record.status, body: record.body, replayed: true }
  }

  /** What a create is told that came second by a moment. */
  refusal(record: IdempotencyRecord, claim: IdempotencyClaim): GatewayError {
    return record.fingerprint === claim.fingerprint ? stillRunning() : otherBody()
  }
}

const otherBody = (): GatewayError =>
  new GatewayError('unprocessable', 'This Idempotency-Key was used before, with another request body.', {
    code: 'idempotency_key_reused',
  })

const stillRunning = (): GatewayError =>
  new GatewayError('idempotency_running', 'The request with this Idempotency-Key is still running.', {
    retryAfterSeconds: 1,
  })
