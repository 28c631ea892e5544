import { fieldOf, isObject } from '../server/json-value.js'
import { rejectField } from './vidgen-errors.js'

/** Judges one value that is there; `field` is the name the refusal carries. Throws VidgenRejection 1201. */
export type ValueRule = (value: unknown, field: string) => void

export const text: ValueRule = (value, field) => {
  if (typeof value !== 'string') rejectField(field, 'must be a string')
}

/** Counted in code points. */
export function textUpTo(limit: number): ValueRule {
  return (value, field) => {
    if (typeof value !== 'string') rejectField(field, 'must be a string')
    const length = Array.from(value).length
    if (length > limit) rejectField(field, `must have at most ${limit} characters, got ${length}`)
  }
}

export const boolean: ValueRule = (value, field) => {
  if (typeof value !== 'boolean') rejectField(field, 'must be a boolean')
}

export function decimal(min: number, max: number): ValueRule {
  return (value, field) => {
    if (typeof value !== 'number' || value < min || value > max) {
      rejectField(field, `must be a number between ${min} and ${max}`)
    }
  }
}

export function oneOf(...allowed: readonly string[]): ValueRule {
  return (value, field) => {
    if (typeof value !== 'string' || !allowed.includes(value))
      rejectField(field, `must be one of ${allowed.join(', ')}`)
  }
}

export const webAddress: ValueRule = (value, field) => {
  if (typeof value !== 'string' || !/^https?:\/\//i.test(value) || !URL.canParse(value)) {
    rejectField(field, 'must be an http or https address')
  }
}

/** An object whose known fields obey the rules; others are ignored. */
export function fields(rules: Readonly<Record<string, ValueRule>>, required: readonly string[] = []): ValueRule {
  return (value, field) => {
    const path = (name: string): string => (field === '' ? name : `${field}.${name}`)
    if (!isObject(value)) rejectField(field, 'must be an object')
    for (const name of required) if (isAbsent(fieldOf(value, name))) rejectField(path(name), 'is required')
    for (const [name, rule] of Object.entries(rules)) {
      const entry = fieldOf(value, name)
      if (!isAbsent(entry)) rule(entry, path(name))
    }
  }
}

/** The service takes null and nothing for the same. */
export const isAbsent = (value: unknown): boolean => value === undefined || value === null
