import { FAULTED, isMap } from './config-fault.js'
import {
  type Cursor,
  type Field,
  isAbsent,
  type OptionalField,
  type PresentField,
  readValue,
  type Schema,
} from './schema-schema.js'
import { describeUnknownKey } from './unknown-key.js'

/** The fields of T: optional ones where T's own are, present ones (required or with a default) elsewhere. */
export type FieldsOf<T> = {
  readonly [K in keyof T]-?: undefined extends T[K] ? OptionalField<Exclude<T[K], undefined>> : PresentField<T[K]>
}

/**
 * A map with known keys. `check` sees what could be read, even when other fields are at fault, and reports what does not
 * go together.
 */
export function mapOf<T extends object>(
  fields: FieldsOf<T>,
  check?: (value: Partial<T>, at: Cursor) => void,
): Schema<T> {
  const known = fields as Readonly<Record<string, Field<unknown>>>
  return {
    fields: known,
    read(value, at) {
      if (!isMap(value)) return at.fault('must be a map')
      const unknownKeys = Object.keys(value).filter((name) => !Object.hasOwn(known, name))
      for (const name of unknownKeys) at.fault(describeUnknownKey(name, Object.keys(known)))
      const { result, complete } = readFields(known, value, at)
      check?.(result as Partial<T>, at)
      return complete && unknownKeys.length === 0 ? (result as T) : FAULTED
    },
  }
}

function readFields(
  fields: Readonly<Record<string, Field<unknown>>>,
  raw: Readonly<Record<string, unknown>>,
  at: Cursor,
) {
  const result: Record<string, unknown> = {}
  let complete = true
  for (const [name, field] of Object.entries(fields)) {
    const given = Object.hasOwn(raw, name) ? raw[name] : undefined
    const cursor = at.field(name, raw)
    if (isAbsent(given) && field.presence === 'optional') continue
    if (isAbsent(given) && field.presence === 'required') {
      cursor.fault('is required')
      complete = false
      continue
    }
    const value = isAbsent(given) && field.presence === 'defaulted' ? field.fallback : given
    const read = readValue(field.schema, value, cursor)
    if (read === FAULTED) complete = false
    else result[name] = read
  }
  return { result, complete }
}

/** No two items of a list may agree in `field`; `identity` gives what is compared, undefined when the value is at fault. */
export interface Uniqueness {
  readonly field: string
  readonly identity: (raw: unknown) => string | undefined
}

export interface ListRules {
  readonly nonEmpty?: string
  readonly unique?: readonly Uniqueness[]
}

/** A list of equal items. `nonEmpty` is the fault's text for an empty one. */
export function listOf<T>(item: Schema<T>, { nonEmpty, unique = [] }: ListRules = {}): Schema<readonly T[]> {
  return {
    item,
    read(value, at) {
      if (!Array.isArray(value)) return at.fault('must be a list')
      const items: readonly unknown[] = value
      if (nonEmpty !== undefined && items.length === 0) return at.fault(nonEmpty)
      for (const rule of unique) reportDuplicates(items, rule, at)
      const read = items.map((raw, index) => readValue(item, raw, at.item(index)))
      const sound = read.filter((entry): entry is T => entry !== FAULTED)
      return sound.length === read.length ? sound : FAULTED
    },
  }
}

function reportDuplicates(items: readonly unknown[], { field, identity }: Uniqueness, at: Cursor): void {
  const first = new Map<string, number>()
  items.forEach((item, index) => {
    const known = isMap(item) ? identity(item[field]) : undefined
    if (known === undefined) return
    const earlier = first.get(known)
    if (earlier === undefined) first.set(known, index)
    else
      at.item(index)
        .field(field)
        .fault(`is the same as ${at.item(earlier).field(field).path}`)
  })
}

/** A map with free keys. It has no prototype: looking up a caller's `constructor` in it finds nothing. */
export function recordOf<T>(item: Schema<T>): Schema<Readonly<Record<string, T>>> {
  return {
    read(value, at) {
      if (!isMap(value)) return at.fault('must be a map')
      const result = Object.create(null) as Record<string, T>
      const entries = Object.entries(value)
      for (const [name, raw] of entries) {
        const read = name === '' ? at.fault('must not hold an empty key') : readValue(item, raw, at.field(name))
        if (read !== FAULTED) result[name] = read
      }
      return Object.keys(result).length === entries.length ? result : FAULTED
    },
  }
}

/** A value whose schema is chosen by the raw value of a sibling; silent when that sibling is at fault itself. */
export function bySibling<T>(sibling: string, variants: Readonly<Record<string, Schema<T>>>): Schema<T> {
  return {
    variants,
    read(value, at) {
      const choice = at.siblings[sibling]
      const variant = typeof choice === 'string' && Object.hasOwn(variants, choice) ? variants[choice] : undefined
      return variant === undefined ? FAULTED : readValue(variant, value, at)
    },
  }
}
