import { isObject } from '../server/json-value.js'
import { reject } from '../server/openai-rejection.js'

/** Judges one value; `path` is the name the refusal carries as `param`. Throws OpenAiRejection. */
export type ValueRule = (value: unknown, path: string) => void

export function wrongType(path: string, expected: string, value: unknown): never {
  reject(
    `Invalid type for '${path}': expected ${expected}, but got ${nameOfType(value)} instead.`,
    path,
    'invalid_type',
  )
}

export function missing(path: string): never {
  reject(`Missing required parameter: '${path}'.`, path, 'missing_required_parameter')
}

export function unknownParameter(path: string): never {
  reject(`Unknown parameter: '${path}'.`, path, 'unknown_parameter')
}

export function decimal(min: number, max: number): ValueRule {
  return (value, path) => {
    if (typeof value !== 'number') wrongType(path, 'a decimal', value)
    judgeRange(value, path, 'decimal', min, max)
  }
}

export function integer(min: number, max: number): ValueRule {
  return (value, path) => {
    if (typeof value !== 'number' || !Number.isInteger(value)) wrongType(path, 'an integer', value)
    judgeRange(value, path, 'integer', min, max)
  }
}

export const boolean: ValueRule = (value, path) => {
  if (typeof value !== 'boolean') wrongType(path, 'a boolean', value)
}

export function string(maxLength = Number.POSITIVE_INFINITY): ValueRule {
  return (value, path) => {
    if (typeof value !== 'string') wrongType(path, 'a string', value)
    if (value.length <= maxLength) return
    const limit = `Expected a string with maximum length ${maxLength}, but got a string with length ${value.length}`
    reject(`Invalid '${path}': string too long. ${limit} instead.`, path, 'string_above_max_length')
  }
}

export const object: ValueRule = (value, path) => {
  if (!isObject(value)) wrongType(path, 'an object', value)
}

export const array: ValueRule = (value, path) => {
  if (!Array.isArray(value)) wrongType(path, 'an array', value)
}

export function oneOf(...allowed: readonly string[]): ValueRule {
  return (value, path) => {
    if (typeof value !== 'string') wrongType(path, `one of ${quotedList(allowed, 'or')}`, value)
    if (allowed.includes(value)) return
    const supported = `Supported values are: ${quotedList(allowed, 'and')}.`
    reject(`Invalid value: '${value}'. ${supported}`, path, 'invalid_value')
  }
}

export function nullable(rule: ValueRule): ValueRule {
  return (value, path) => {
    if (value !== null) rule(value, path)
  }
}

export function quotedList(names: readonly string[], conjunction: string): string {
  const quoted = names.map((name) => `'${name}'`)
  if (quoted.length < 2) return quoted.join('')
  return `${quoted.slice(0, -1).join(', ')}${quoted.length > 2 ? ',' : ''} ${conjunction} ${quoted.at(-1) ?? ''}`
}

function judgeRange(value: number, path: string, kind: 'decimal' | 'integer', min: number, max: number): void {
  if (value >= min && value <= max) return
  const above = value > max
  const side = above ? ['above', 'maximum', '<=', max] : ['below', 'minimum', '>=', min]
  const text = `${kind} ${side[0] ?? ''} ${side[1] ?? ''} value. Expected a value ${side[2] ?? ''} ${side[3] ?? ''}`
  reject(
    `Invalid '${path}': ${text}, but got ${value} instead.`,
    path,
    `${kind}_${above ? 'above_max' : 'below_min'}_value`,
  )
}

function nameOfType(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'string') return 'a string'
  if (typeof value === 'boolean') return 'a boolean'
  if (typeof value !== 'number') return 'an object'
  return Number.isInteger(value) ? 'an integer' : 'a decimal'
}
