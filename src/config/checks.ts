/** One thing wrong with the configuration: where, and what would be right. Never a value. */
export interface ConfigFault {
  readonly path: string
  readonly message: string
}

/** Stands for a value whose fault has been reported already, so that no second one follows. */
export const FAULTED = Symbol('faulted')

/** Every fault of one configuration; the message has a line for each, by path and name, never by value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'

  constructor(readonly faults: readonly ConfigFault[]) {
    const title =
      faults.length === 1 ? 'The configuration has a fault:' : `The configuration has ${faults.length} faults:`
    super([title, ...faults.map((fault) => `  ${fault.path}: ${fault.message}`)].join('\n'))
  }
}

/** Collects faults while a configuration is read. `renames` gives the name to show for a path that came from elsewhere. */
export class FaultList {
  readonly #found: ConfigFault[] = []

  constructor(private readonly renames: ReadonlyMap<string, string> = new Map()) {}

  add(path: string, message: string): void {
    this.#found.push({ path: this.renames.get(path) ?? path, message })
  }

  /** Throws `ConfigError` with everything found so far, if anything was. */
  throwIfAny(): void {
    if (this.#found.length > 0) throw new ConfigError([...this.#found])
  }
}

const SIMPLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,39}$/
/** No colon: where the space after one is missing, YAML takes key and value together for the key. */
const PRINTABLE_NAME = /^[A-Za-z0-9._/@-]{1,64}$/

/** Path of `name` inside `parent`; a name that could garble a terminal or a log line is not shown. */
export function fieldPath(parent: string, name: string): string {
  if (SIMPLE_NAME.test(name)) return parent === '' ? name : `${parent}.${name}`
  return PRINTABLE_NAME.test(name) ? `${parent}["${name}"]` : `${parent}["…"]`
}

export function itemPath(parent: string, index: number): string {
  return `${parent}[${index}]`
}

export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Freezes a plain value and everything it holds; returns the same value. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const item of Object.values(value)) deepFreeze(item)
  }
  return value
}

export interface ReadContext {
  readonly faults: FaultList
  readonly production: boolean
}

/** Where in the document a value stands; faults are reported through it. */
export class Cursor {
  constructor(
    readonly path: string,
    readonly context: ReadContext,
    /** The raw map the value is a part of. */
    readonly siblings: Readonly<Record<string, unknown>> = {},
  ) {}

  /** Reports a fault; returns its mark so that a reader can end with it. */
  fault(message: string): typeof FAULTED {
    this.context.faults.add(this.path === '' ? 'document' : this.path, message)
    return FAULTED
  }

  field(name: string, siblings: Readonly<Record<string, unknown>> = {}): Cursor {
    return new Cursor(fieldPath(this.path, name), this.context, siblings)
  }

  item(index: number): Cursor {
    return new Cursor(itemPath(this.path, index), this.context)
  }
}

/** Turns a raw value into a checked one. `fields`, `item` and `variants` let documentation tests walk the whole. */
export interface Schema<T> {
  /** Returns `FAULTED` after at least one fault was reported at or below `at`. */
  read(value: unknown, at: Cursor): T | typeof FAULTED
  readonly fields?: Readonly<Record<string, Field<unknown>>>
  readonly item?: Schema<unknown>
  readonly variants?: Readonly<Record<string, Schema<unknown>>>
}

export interface PresentField<T> {
  readonly presence: 'required' | 'defaulted'
  readonly schema: Schema<T>
  /** Raw value read in place of an absent one. */
  readonly fallback?: unknown
}

interface OptionalField<T> {
  readonly presence: 'optional'
  readonly schema: Schema<T>
}

type Field<T> = PresentField<T> | OptionalField<T>

export function required<T>(schema: Schema<T>): PresentField<T> {
  return { presence: 'required', schema }
}

export function optional<T>(schema: Schema<T>): OptionalField<T> {
  return { presence: 'optional', schema }
}

export function withDefault<T>(schema: Schema<T>, fallback: unknown): PresentField<T> {
  return { presence: 'defaulted', schema, fallback }
}

/** Reads through a schema unless the value's fault is known already. */
function readValue<T>(schema: Schema<T>, value: unknown, at: Cursor): T | typeof FAULTED {
  return value === FAULTED ? FAULTED : schema.read(value, at)
}

/** YAML's empty value is no value: a key whose lines are all commented out is as good as absent. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined
}

/** No setting is longer or holds more digits; anything else may be a secret that slipped into a key's place. */
const SHOWABLE = /^(?:[A-Za-z_-]{1,40}|[A-Za-z0-9_-]{1,12})$/

/** The fault for a key that is not among `known`, with the nearest known one when there is a near one. */
export function describeUnknownKey(name: string, known: readonly string[]): string {
  const title = SHOWABLE.test(name) ? `unknown key "${name}"` : 'unknown key (not shown, it may be a secret)'
  const near = nearest(name, known)
  if (near !== undefined) return `${title}; did you mean "${near}"?`
  return known.length === 0 ? `${title}; none is allowed here` : `${title}; allowed: ${known.join(', ')}`
}

/** The candidate that needs the fewest edits: at most a third of its length, or two where half of it is right. */
function nearest(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > 64) return undefined
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(plain(name), plain(candidate)) }))
    .filter(
      ({ candidate, distance }) => distance <= Math.max(2, candidate.length / 3) && distance * 2 <= candidate.length,
    )
    .sort((left, right) => left.distance - right.distance)
  return ranked[0]?.candidate
}

/** `base_url`, `base-url` and `BASEURL` are spellings of `baseUrl`. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '')
}

/** Levenshtein distance: insertions, deletions and substitutions, one row of the table at a time. */
function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let i = 1; i <= left.length; i++) {
    const next = [i]
    for (let j = 1; j <= right.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1)
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[right.length] ?? 0
}

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
