import { GatewayError } from '../core/errors.js'

/** The family's own are sixteen digits; an id becomes a part of the upstream's path. */
export const TASK_ID = /^[A-Za-z0-9_-]{1,64}$/

/** Throws `invalid_request` for what can be no task's id, without asking anyone. */
export function assertTaskId(id: string): void {
  if (TASK_ID.test(id)) return
  throw new GatewayError('invalid_request', "Invalid 'id': expected 1 to 64 letters, digits, '_' or '-'.", {
    param: 'id',
    code: 'invalid_value',
  })
}
