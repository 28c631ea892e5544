import { isObject, type JsonObject } from '../server/json-value.js'

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

function unknownParameter(path: string): RealtimeRejection {
  return new RealtimeRejection('unknown_parameter', `Unknown parameter: '${path}'.`, path)
}

function missingParameter(path: string): RealtimeRejection {
  return new RealtimeRejection('missing_required_parameter', `Missing required parameter: '${path}'.`, path)
}

function invalidType(path: string, expected: string, value: unknown): RealtimeRejection {
  const message = `Invalid type for '${path}': expected ${expected}, but got ${describe(value)} instead.`
  return new RealtimeRejection('invalid_type', message, path)
}

/** A value that is none of those a parameter may have. */
function unsupportedValue(path: string, value: unknown, supported: readonly string[]): RealtimeRejection {
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

/** Judges one value and returns it, with defaults filled in. Throws RealtimeRejection; `path` is its `param`. */
export type Check = (value: unknown, path: string) => unknown

export type Fields = Readonly<Record<string, Check>>

export const anything: Check = (value) => value

export const text =
  (maximumLength = Number.POSITIVE_INFINITY): Check =>
  (value, path) => {
    if (typeof value !== 'string') throw invalidType(path, 'a string', value)
    if (value.length <= maximumLength) return value
    const limit = `Expected a string with maximum length ${maximumLength}, but got a string with length ${value.length} instead.`
    throw new RealtimeRejection('string_above_max_length', `Invalid '${path}': string too long. ${limit}`, path)
  }

export const boolean: Check = (value, path) => {
  if (typeof value !== 'boolean') throw invalidType(path, 'a boolean', value)
  return value
}

export const oneOf =
  (...values: readonly string[]): Check =>
  (value, path) => {
    if (typeof value !== 'string') throw invalidType(path, `one of ${quote(values)}`, value)
    if (!values.includes(value)) throw unsupportedValue(path, value, values)
    return value
  }

export const decimal = (minimum: number, maximum: number): Check => numeric('decimal', minimum, maximum)

export const integer = (minimum: number, maximum: number): Check => numeric('integer', minimum, maximum)

export const nullable =
  (check: Check): Check =>
  (value, path) =>
    value === null ? null : check(value, path)

export const listOf =
  (check: Check): Check =>
  (value, path) => {
    if (!Array.isArray(value)) throw invalidType(path, 'an array', value)
    return value.map((entry, index) => check(entry, `${path}[${index}]`))
  }

/** An object with these fields and no others; a path of '' is that of the event itself. */
export const objectOf =
  (fields: Fields, required: readonly string[] = [], defaults: JsonObject = {}): Check =>
  (value, path) => {
    if (!isObject(value)) throw invalidType(path, 'an object', value)
    for (const name of required) if (!Object.hasOwn(value, name)) throw missingParameter(join(path, name))
    const checked = Object.entries(value).map(([name, member]) => {
      const check = Object.hasOwn(fields, name) ? fields[name] : undefined
      if (check === undefined) throw unknownParameter(join(path, name))
      return [name, check(member, join(path, name))] as const
    })
    return { ...defaults, ...Object.fromEntries(checked) }
  }

/** An object whose `type` decides which check judges it. */
export const byType =
  (checks: Fields): Check =>
  (value, path) => {
    if (!isObject(value)) throw invalidType(path, 'an object', value)
    if (!Object.hasOwn(value, 'type')) throw missingParameter(join(path, 'type'))
    const type = oneOf(...Object.keys(checks))(value['type'], join(path, 'type')) as string
    return checks[type]?.(value, path)
  }

/** Strings go to one check, everything else to the other. */
export const textOr =
  (ofText: Check, otherwise: Check): Check =>
  (value, path) =>
    typeof value === 'string' ? ofText(value, path) : otherwise(value, path)

function numeric(kind: 'integer' | 'decimal', minimum: number, maximum: number): Check {
  return (value, path) => {
    const isRight = typeof value === 'number' && (kind === 'decimal' || Number.isInteger(value))
    if (!isRight) throw invalidType(path, kind === 'integer' ? 'an integer' : 'a decimal', value)
    if (value >= minimum && value <= maximum) return value
    const [side, code, sign, bound] =
      value < minimum ? ['below minimum', 'below_min', '>=', minimum] : ['above maximum', 'above_max', '<=', maximum]
    const expected = `Expected a value ${sign} ${bound}, but got ${value} instead.`
    throw new RealtimeRejection(`${kind}_${code}_value`, `Invalid '${path}': ${kind} ${side} value. ${expected}`, path)
  }
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

function quote(values: readonly string[]): string {
  return values.map((value) => `'${value}'`).join(', ')
}
