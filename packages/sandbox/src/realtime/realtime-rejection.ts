import type { JsonObject } from '../server/json-value.js'

/** What the upstream says in an `error` event. Most leave the session open. */
export class RealtimeRejection extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly param: string | null = null,
    readonly type = 'invalid_request_error',
  ) {
    super(message)
  }

  /** The `error` member of the event; `eventId` is that of the client event to blame. */
  body(eventId: string | null): JsonObject {
    return { type: this.type, code: this.code, message: this.message, param: this.param, event_id: eventId }
  }
}

export function unknownParameter(path: string): RealtimeRejection {
  return new RealtimeRejection('unknown_parameter', `Unknown parameter: '${path}'.`, path)
}

export function missingParameter(path: string): RealtimeRejection {
  return new RealtimeRejection('missing_required_parameter', `Missing required parameter: '${path}'.`, path)
}

export function invalidType(path: string, expected: string, value: unknown): RealtimeRejection {
  const message = `Invalid type for '${path}': expected ${expected}, but got ${describe(value)} instead.`
  return new RealtimeRejection('invalid_type', message, path)
}

/** A value that is none of those a parameter may have. */
export function unsupportedValue(path: string, value: unknown, supported: readonly string[]): RealtimeRejection {
  const quoted = supported.map((name) => `'${name}'`)
  const last = quoted.pop() ?? ''
  const list = quoted.length === 0 ? last : `${quoted.join(', ')}, and ${last}`
  return new RealtimeRejection(
    'invalid_value',
    `Invalid value: '${String(value)}'. Supported values are: ${list}.`,
    path,
  )
}

function describe(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal'
  return `a ${typeof value}`
}
