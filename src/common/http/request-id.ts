import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const ACCEPTABLE = /^[\x21-\x7e]{1,128}$/

export const newRequestId = (): string => `req_${randomUUID().replaceAll('-', '')}`

/** A caller's own `x-request-id` when it is 1–128 printable characters, otherwise a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && ACCEPTABLE.test(given) ? given : newRequestId()
}
