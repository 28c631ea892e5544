import type { Exchange } from '../server/exchange.js'
import type { JsonObject } from '../server/json-value.js'
import { P3Rejection, rejectParameter } from './p3-rejection.js'

/** Who may call a simulator. */
export interface P3Access {
  /** The only accepted key. Default: every key but `bad`. */
  readonly apiKey?: string
  /** Be one of the older hosts: the query must name this group, else 1004. Default: any group or none will do. */
  readonly groupId?: string
  /** Code of the refusal of a wrong key. Default 1004. */
  readonly badKeyCode?: 1004 | 2049
}

/** Judges key and group. Throws P3Rejection. */
export function judgeAccess(exchange: Exchange, options: P3Access): void {
  const key = /^Bearer (\S+)$/.exec(exchange.request.headers['authorization'] ?? '')?.[1]
  if (key === undefined) throw new P3Rejection(1004, 'no API key in the Authorization header')
  const accepted = options.apiKey === undefined ? key !== 'bad' : key === options.apiKey
  if (!accepted) throw new P3Rejection(options.badKeyCode ?? 1004)
  const group = exchange.request.query.get('GroupId')
  if (options.groupId !== undefined && group !== options.groupId) throw new P3Rejection(1004, 'GroupId is wrong')
}

/** Judges type and syntax of the body. Throws P3Rejection. */
export function judgeBody(exchange: Exchange, body: JsonObject | undefined): JsonObject {
  const type = exchange.request.headers['content-type'] ?? ''
  if (!/^application\/json\s*(;|$)/i.test(type)) rejectParameter('Content-Type must be application/json')
  if (body === undefined) rejectParameter('the body is not a JSON object')
  return body
}

export function recordQueryViolations(exchange: Exchange): void {
  const { query, violations } = exchange.request
  for (const name of new Set(query.keys())) if (name !== 'GroupId') violations.push(`unknown query: ${name}`)
  if (query.getAll('GroupId').length > 1) violations.push('repeated query: GroupId')
}
