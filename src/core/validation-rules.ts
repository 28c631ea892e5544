import { type FieldError, GatewayError, quoted } from './errors.js'
import { nullable, type Schema, TEXT } from './json-schema.js'
import { AMBIGUOUS_KEY, MemberNames } from './member-names.js'

/** Whether the calendar has the day, `YYYY-MM-DD`: `Date` takes the 30th of February for one in March. */
export function isCalendarDay(day: string): boolean {
  const atMs = Date.parse(day)
  return !Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(day)
}

/** The longest that a program writes for a number has 24; a form's field may have thousands, and no pattern sees those. */
const LONGEST_CHARACTERS = 32
const DECIMAL = /^\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\s*$/i

/** The number that a text spells with decimal digits, as forms and queries do; NaN when it spells none. */
export const decimalOf = (text: unknown): number =>
  typeof text === 'string' && text.length <= LONGEST_CHARACTERS && DECIMAL.test(text) ? Number(text) : NaN

/** Judges one value; undefined = nothing wrong. Rules never change a value. */
export interface FieldRule {
  (value: unknown, path: string): FieldError | undefined
  /**
   * What passes, as far as a schema can say it; absent = any value. What passes as another spelling of it (`1` for `true` in a form)
   * may be left out.
   */
  readonly schema?: Schema
}

/**
 * The rule itself, with the schema of what it lets through: a rule around it would be one more call on the way of every request.
 * Rules that places share are frozen, and cannot be given another.
 */
export const shown = (schema: Schema, rule: FieldRule): FieldRule => Object.assign(rule, { schema })

/**
 * A rule that was made for this place; its schema becomes a component of the OpenAPI document, which generated clients call so.
 * Throws for a rule that has a name already.
 */
export const named = (title: string, description: string, rule: FieldRule): FieldRule => {
  if (rule.schema?.title !== undefined)
    throw new Error(`A rule called ${title} is called ${rule.schema.title} already.`)
  return shown({ ...rule.schema, title, description }, rule)
}

/** Whether a rule refuses a member that is not there. */
export const isRequired = (rule: FieldRule): boolean => rule(undefined, '') !== undefined

/** The path of a check that needs no message: no path is put together for deeper values. */
export const NO_PATH = '\0'

export const memberPath = (path: string, name: string): string => (path === NO_PATH ? NO_PATH : `${path}.${name}`)
const itemPath = (path: string, index: number): string => (path === NO_PATH ? NO_PATH : `${path}[${index}]`)

export const fieldError = (path: string, code: string, message: string): FieldError => ({ path, code, message })

/** The kind of a JSON value, for messages. */
function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  const kind = typeof value
  return kind === 'object' ? 'an object' : `a ${kind}`
}

export const wrongType = (path: string, expected: string, value: unknown): FieldError =>
  fieldError(
    path,
    'invalid_type',
    `Invalid type for '${path}': expected ${expected}, but got ${kindOf(value)} instead.`,
  )

export const missing = (path: string): FieldError =>
  fieldError(path, 'missing_required_parameter', `Missing required parameter: '${path}'.`)

/** A required value: absent and null are the same fault. */
export const required = (rule: FieldRule): FieldRule =>
  shown(rule.schema ?? {}, (value, path) => (value === undefined || value === null ? missing(path) : rule(value, path)))

/** An optional value: absent and null pass, as upstreams accept both. */
export const optional = (rule: FieldRule): FieldRule =>
  shown(nullable(rule.schema ?? {}), (value, path) =>
    value === undefined || value === null ? undefined : rule(value, path),
  )

/** An optional value where none can be null, as in forms and queries. */
export const whenGiven = (rule: FieldRule): FieldRule =>
  shown(rule.schema ?? {}, (value, path) => (value === undefined ? undefined : rule(value, path)))

export const anyOf = (expected: string, ...rules: readonly FieldRule[]): FieldRule =>
  shown({ anyOf: rules.map(({ schema = {} }) => schema) }, (value, path) => {
    const found: FieldError[] = []
    for (const rule of rules) {
      const error = rule(value, path)
      if (error === undefined) return undefined
      found.push(error)
    }
    return found.find(({ code }) => code === AMBIGUOUS_KEY) ?? wrongType(path, expected, value)
  })

interface TextRule {
  readonly allowBlank?: boolean
  /** In code points, as the specification counts characters. */
  readonly maximumCharacters?: number
}

/** More than white space. */
const NOT_BLANK = { minLength: 1, pattern: '\\S' } as const

export const text = ({ allowBlank = true, maximumCharacters = Infinity }: TextRule = {}): FieldRule => {
  const schema = {
    ...TEXT,
    ...(allowBlank ? {} : NOT_BLANK),
    ...(maximumCharacters === Infinity ? {} : { maxLength: maximumCharacters }),
  }
  return shown(schema, (value, path) => {
    if (typeof value !== 'string') return wrongType(path, 'a string', value)
    if (!allowBlank && value.trim() === '') {
      return fieldError(
        path,
        'empty_string',
        `Invalid '${path}': empty string. Expected a string with at least 1 character.`,
      )
    }
    // UTF-16 units are never fewer than code points, so most texts are decided without counting.
    if (value.length <= maximumCharacters || codePoints(value) <= maximumCharacters) return undefined
    return fieldError(
      path,
      'string_above_max_length',
      `Invalid '${path}': string too long. Expected a string with at most ${maximumCharacters} characters.`,
    )
  })
}

export function codePoints(value: string): number {
  let count = value.length
  // The second half of a surrogate pair is no character of its own.
  for (let position = 1; position < value.length; position++) {
    if (isLowSurrogate(value, position) && isHighSurrogate(value, position - 1)) count--
  }
  return count
}

const isHighSurrogate = (value: string, position: number): boolean => (value.charCodeAt(position) & 0xfc00) === 0xd800
const isLowSurrogate = (value: string, position: number): boolean => (value.charCodeAt(position) & 0xfc00) === 0xdc00

interface RangeRule {
  readonly minimum?: number
  readonly maximum?: number
}

const inRange =
  (kind: 'decimal' | 'integer', { minimum = -Infinity, maximum = Infinity }: RangeRule) =>
  (value: number, path: string): FieldError | undefined => {
    if (value < minimum) {
      return fieldError(
        path,
        `${kind}_below_min_value`,
        `Invalid '${path}': ${kind} below minimum value. Expected a value >= ${minimum}, but got ${value} instead.`,
      )
    }
    if (value <= maximum) return undefined
    return fieldError(
      path,
      `${kind}_above_max_value`,
      `Invalid '${path}': ${kind} above maximum value. Expected a value <= ${maximum}, but got ${value} instead.`,
    )
  }

export const decimal = (range: RangeRule = {}): FieldRule => {
  const ranged = inRange('decimal', range)
  return shown({ type: 'number', ...range }, (value, path) =>
    typeof value === 'number' && Number.isFinite(value) ? ranged(value, path) : wrongType(path, 'a decimal', value),
  )
}

export const integer = (range: RangeRule = {}): FieldRule => {
  const ranged = inRange('integer', range)
  return shown({ type: 'integer', ...range }, (value, path) =>
    Number.isInteger(value) ? ranged(Number(value), path) : wrongType(path, 'an integer', value),
  )
}

export const flag: FieldRule = Object.freeze(
  shown({ type: 'boolean' }, (value, path) =>
    typeof value === 'boolean' ? undefined : wrongType(path, 'a boolean', value),
  ),
)

export const oneOf = (allowed: readonly string[], code = 'invalid_value'): FieldRule => {
  const set = new Set(allowed)
  const list = allowed.map((word) => `'${word}'`).join(', ')
  return shown({ ...TEXT, enum: allowed }, (value, path) => {
    if (typeof value !== 'string') return wrongType(path, 'a string', value)
    return set.has(value)
      ? undefined
      : fieldError(path, code, `Invalid value for '${path}'. Supported values are: ${list}.`)
  })
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const OBJECT = { type: 'object', additionalProperties: true } as const

/** Any object. */
export const anyRecord: FieldRule = Object.freeze(
  shown(OBJECT, (value, path) => (isRecord(value) ? undefined : wrongType(path, 'an object', value))),
)

/**
 * An object whose named members are judged; members without a rule travel on unjudged. A name that an upstream may take for
 * that of another member, or of one that is read elsewhere (`alsoRead`), is refused.
 */
export const record = (members: Readonly<Record<string, FieldRule>>, alsoRead: readonly string[] = []): FieldRule => {
  const names = new MemberNames([...Object.keys(members), ...alsoRead])
  return shown(recordSchema(members), (value, path) => {
    if (!isRecord(value)) return wrongType(path, 'an object', value)
    const ambiguity = names.ambiguity(value, path)
    if (ambiguity !== undefined) return ambiguity
    for (const name in members) {
      const found = members[name]?.(value[name], memberPath(path, name))
      if (found !== undefined) return found
    }
    return undefined
  })
}

function recordSchema(members: Readonly<Record<string, FieldRule>>): Schema {
  const entries = Object.entries(members)
  const needed = entries.filter(([, rule]) => isRequired(rule)).map(([name]) => name)
  const properties = Object.fromEntries(entries.map(([name, { schema = {} }]) => [name, schema]))
  return { ...OBJECT, ...(needed.length === 0 ? {} : { required: needed }), properties }
}

/** A value of any kind; of an object the names that are read, and nothing else, are judged. */
export const readable = (...names: readonly string[]): FieldRule => {
  const members = new MemberNames(names)
  return (value, path) => (isRecord(value) ? members.ambiguity(value, path) : undefined)
}

/** A member that is read, but not judged here. */
export const anything: FieldRule = Object.freeze(() => undefined)

interface LengthRule {
  readonly minimumItems?: number
  readonly maximumItems?: number
  /** What the items are called in the message. */
  readonly itemWord?: string
}

/** How many there are is judged before any of them is looked at. */
export const list = (
  item: FieldRule,
  { minimumItems = 0, maximumItems = Infinity, itemWord = 'items' }: LengthRule = {},
): FieldRule => {
  const schema = {
    type: 'array',
    items: item.schema ?? {},
    ...(minimumItems === 0 ? {} : { minItems: minimumItems }),
    ...(maximumItems === Infinity ? {} : { maxItems: maximumItems }),
  }
  return shown(schema, (value, path) => {
    if (!Array.isArray(value)) return wrongType(path, 'an array', value)
    if (value.length < minimumItems) {
      return fieldError(path, 'empty_array', `Invalid '${path}': empty array. Expected at least ${minimumItems} item.`)
    }
    if (value.length > maximumItems) {
      return fieldError(
        path,
        'array_above_max_length',
        `Invalid '${path}': array too long. Expected at most ${maximumItems} ${itemWord}.`,
      )
    }
    for (let index = 0; index < value.length; index++) {
      // There may be hundreds of thousands: no path is written for one that is right.
      if (item(value[index], NO_PATH) !== undefined) return item(value[index], itemPath(path, index))
    }
    return undefined
  })
}

/** What a caller may write into `metadata`: a rule for a value, a shape for an object. All else is refused. */
export interface MetadataShape {
  readonly [name: string]: FieldRule | MetadataShape
}

const NAMEABLE = /^[A-Za-z0-9_-]{1,64}$/
/**
 * The members of `metadata` that the shape names, as nested plain objects; absent and null members are left out, so no
 * member is ever required. Throws `invalid_request` with `param` (`metadata.audio.rate`) for a value its rule refuses
 * and for every name the shape does not hold: nothing is dropped in silence.
 */
export function readMetadata(metadata: unknown, shape: MetadataShape, path = 'metadata'): Record<string, unknown> {
  const accepted: Record<string, unknown> = {}
  if (metadata === undefined || metadata === null) return accepted
  const members = checkFields(anyRecord, metadata, path) as Record<string, unknown>
  for (const name of Object.keys(members)) {
    // Own names only: `constructor` and `__proto__` are inherited by every shape and allowed by none.
    const rule = Object.hasOwn(shape, name) ? shape[name] : undefined
    if (rule === undefined) throw unknownName(path, name, shape)
    const value = members[name]
    if (value === undefined || value === null) continue
    accepted[name] =
      typeof rule === 'function'
        ? checkFields(rule, value, `${path}.${name}`)
        : readMetadata(value, rule, `${path}.${name}`)
  }
  return accepted
}

/** A whole number out of a short list, such as sample rates. */
export const integerAmong = (allowed: readonly number[]): FieldRule => {
  const isInteger = integer()
  return (value, path) =>
    isInteger(value, path) ??
    (allowed.includes(Number(value))
      ? undefined
      : fieldError(path, 'invalid_value', `Invalid value for '${path}'. Supported values are: ${allowed.join(', ')}.`))
}

function checkFields(rule: FieldRule, value: unknown, path: string): unknown {
  const found = rule(value, path)
  if (found === undefined) return value
  throw new GatewayError('invalid_request', found.message, { param: found.path, code: found.code })
}

function unknownName(path: string, name: string, shape: MetadataShape): GatewayError {
  const supported = Object.keys(shape).join(', ')
  return new GatewayError(
    'invalid_request',
    `Unknown parameter: ${quoted(`${path}.${name}`)}. Supported parameters in '${path}' are: ${supported}.`,
    // A name of any length and content is not repeated as a path; the object that holds it is named instead.
    { param: NAMEABLE.test(name) ? `${path}.${name}` : path, code: 'unknown_parameter' },
  )
}
