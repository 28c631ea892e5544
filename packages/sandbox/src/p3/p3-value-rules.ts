import { isObject } from '../server/json-value.js'
import { P3Rejection, rejectParameter } from './p3-rejection.js'

/** Judges one value; `path` is the name the refusal carries. Throws P3Rejection 2013. */
export type ValueRule = (value: unknown, path: string) => void

export const boolean: ValueRule = (value, path) => {
  if (typeof value !== 'boolean') rejectParameter(`${path} must be a boolean`)
}

export const string: ValueRule = (value, path) => {
  if (typeof value !== 'string') rejectParameter(`${path} must be a string`)
}

/** A number from `min` to `max`. */
export function decimal(min: number, max: number): ValueRule {
  return (value, path) => {
    if (typeof value !== 'number') rejectParameter(`${path} must be a number`)
    if (value < min || value > max) rejectParameter(`${path} must be between ${min} and ${max}, got ${value}`)
  }
}

/** A number over 0 and up to `max`. */
export function positive(max: number): ValueRule {
  return (value, path) => {
    decimal(0, max)(value, path)
    if (value === 0) rejectParameter(`${path} must be greater than 0`)
  }
}

export function integer(min: number, max: number): ValueRule {
  return (value, path) => {
    if (!Number.isInteger(value)) rejectParameter(`${path} must be an integer`)
    decimal(min, max)(value, path)
  }
}

export function oneOf(...allowed: readonly (string | number)[]): ValueRule {
  return (value, path) => {
    if (allowed.some((entry) => entry === value)) return
    rejectParameter(`${path} must be one of ${allowed.join(', ')}`)
  }
}

export function nullable(rule: ValueRule): ValueRule {
  return (value, path) => {
    if (value !== null) rule(value, path)
  }
}

export function list(rule: ValueRule, maxEntries = Number.POSITIVE_INFINITY): ValueRule {
  return (value, path) => {
    if (!Array.isArray(value)) rejectParameter(`${path} must be an array`)
    if (value.length > maxEntries) rejectParameter(`${path} must have at most ${maxEntries} entries`)
    value.forEach((entry: unknown, index) => {
      rule(entry, `${path}[${index}]`)
    })
  }
}

/** An object of known fields; any other field is refused and recorded as a violation. */
export function fields(rules: Readonly<Record<string, ValueRule>>, required: readonly string[] = []): ValueRule {
  return (value, path) => {
    if (!isObject(value)) rejectParameter(`${path} must be an object`)
    for (const name of required) if (value[name] === undefined) rejectParameter(`${path}.${name} is required`)
    for (const [name, entry] of Object.entries(value)) {
      const field = path === '' ? name : `${path}.${name}`
      const rule = Object.hasOwn(rules, name) ? rules[name] : undefined
      if (rule === undefined) throw new P3Rejection(2013, `unknown field ${field}`, `unknown field: ${field}`)
      rule(entry, field)
    }
  }
}
