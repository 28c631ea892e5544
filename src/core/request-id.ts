import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const ACCEPTABLE = /^[\x21-\x7e]{1,128}$/

/** Random per process and counted within it: unique over all replicas, at a fraction of the cost of a random id each. */
const PREFIX = `req_${randomBytes(10).toString('hex')}`
let count = 0

export const newRequestId = (): string => `${PREFIX}${(++count).toString(16).padStart(12, '0')}`

/** A caller's own `x-request-id` when it is 1–128 printable characters, otherwise a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && ACCEPTABLE.test(given) ? given : newRequestId()
}
