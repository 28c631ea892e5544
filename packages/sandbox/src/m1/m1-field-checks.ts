import { isObject } from '../server/json-value.js'
import { reject } from './m1-errors.js'

/** Judges one value; `path` stands before the refusal. Throws M1Rejection. */
export type Check = (value: unknown, path: string) => void

export const integer: Check = (value, path) => {
  if (typeof value !== 'number' || !Number.isInteger(value)) reject(`${path}: Input should be a valid integer`)
}
export const string: Check = (value, path) => {
  if (typeof value !== 'string') reject(`${path}: Input should be a valid string`)
}
export const object: Check = (value, path) => {
  if (!isObject(value)) reject(`${path}: Input should be a valid dictionary`)
}
export const list: Check = (value, path) => {
  if (!Array.isArray(value)) reject(`${path}: Input should be a valid list`)
}
export const boolean: Check = (value, path) => {
  if (typeof value !== 'boolean') reject(`${path}: Input should be a valid boolean`)
}

export const between =
  (min: number, max: number): Check =>
  (value, path) => {
    if (typeof value !== 'number') reject(`${path}: Input should be a valid number`)
    if (value < min) reject(`${path}: Input should be greater than or equal to ${min}`)
    if (value > max) reject(`${path}: Input should be less than or equal to ${max}`)
  }

export const oneOf = (...allowed: readonly string[]): Check => {
  const names = allowed.map((name) => `'${name}'`)
  const expected = names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} or ${names.at(-1) ?? ''}`
  return (value, path) => {
    if (typeof value !== 'string' || !allowed.includes(value)) reject(`${path}: Input should be ${expected}`)
  }
}

export const nullable =
  (check: Check): Check =>
  (value, path) => {
    if (value !== null) check(value, path)
  }

/** An object of these fields, the `required` ones present, and no others. */
export const shape =
  (required: Readonly<Record<string, Check>>, optional: Readonly<Record<string, Check>> = {}): Check =>
  (value, path) => {
    if (!isObject(value)) reject(`${path}: Input should be a valid dictionary`)
    const checks = { ...required, ...optional }
    for (const [name, field] of Object.entries(value)) {
      const check = Object.hasOwn(checks, name) ? checks[name] : undefined
      if (check === undefined) reject(`${path}.${name}: Extra inputs are not permitted`)
      check(field, `${path}.${name}`)
    }
    for (const name of Object.keys(required)) {
      if (value[name] === undefined) reject(`${path}.${name}: Field required`)
    }
  }

export const each =
  (check: Check): Check =>
  (value, path) => {
    if (!Array.isArray(value)) reject(`${path}: Input should be a valid list`)
    value.forEach((entry: unknown, index) => {
      check(entry, `${path}.${index}`)
    })
  }

export const anything: Check = () => undefined

/** `{type: 'json_schema', schema}`, alone and as `output_config.format`. */
export const jsonOutputFormat = nullable(shape({ type: oneOf('json_schema'), schema: object }))
