import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import * as z from 'zod'
import { describeUnknownKey, isMap } from './faults.js'

/*
 * The values of settings. `meta.type` is what the reference shows of a type; `secret` marks what must not stand in the file.
 * A default is written with `default` (taken as it is), or with `prefault` for a map, whose own fields then have theirs.
 */

/** A type after loading: deeply frozen. */
export type DeepReadonly<T> = unknown extends T
  ? T
  : T extends readonly (infer Item)[]
    ? readonly DeepReadonly<Item>[]
    : T extends object
      ? { readonly [Name in keyof T]: DeepReadonly<T[Name]> }
      : T

/** Unknown keys are faults, each with its nearest known one; `hidden` is a key that no file may hold. */
export const strictMap = <S extends z.core.$ZodLooseShape>(shape: S, hidden?: string) =>
  z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return undefined
      const known = Object.keys(shape).filter((name) => name !== hidden)
      return issue.keys.map((name) => describeUnknownKey(name, known)).join('\n')
    },
  })

/** An empty YAML value counts as absent: all lines of its key may be commented out. */
export const withoutEmpty = (value: unknown, names: readonly string[]): unknown =>
  isMap(value)
    ? Object.fromEntries(Object.entries(value).filter(([name, item]) => item !== null || !names.includes(name)))
    : value

/** A map with known keys. */
export const settings = <S extends z.core.$ZodLooseShape>(shape: S) =>
  z.preprocess((value) => withoutEmpty(value, Object.keys(shape)), strictMap(shape)).meta({ type: 'map' })

/** Condition (`when`) of a rule between settings of one map: it is checked only if each of them is valid. */
export const bothValid =
  (...names: readonly string[]) =>
  ({ issues }: z.core.ParsePayload): boolean =>
    issues.every(({ code, path: [name] = [] }) =>
      name === undefined ? code === 'unrecognized_keys' : !names.includes(String(name)),
    )

/** A list in which no two items have the same text in one of these fields. */
export const distinct = <T extends z.ZodType>(item: T, ...fields: readonly string[]) =>
  z.array(item).superRefine(
    (items: readonly unknown[], context) => {
      for (const field of fields) {
        const first = new Map<string, number>()
        for (const [index, entry] of items.entries()) {
          const text = isMap(entry) ? entry[field] : undefined
          if (typeof text !== 'string') continue
          const sameAs = first.get(text)
          if (sameAs === undefined) first.set(text, index)
          else context.addIssue({ code: 'custom', path: [index, field], params: { sameAs } })
        }
      }
    },
    { when: ({ value }) => Array.isArray(value) },
  )

/** For lists that are left out rather than empty. */
export const isNonEmpty = ({ length }: readonly unknown[]): boolean => length > 0

/** A map with free keys. It has no prototype: looking up a caller's `constructor` in it finds nothing. */
export const mapOf = <T>(value: z.ZodType<T>) =>
  z
    // zod would drop this key silently.
    .unknown()
    .refine((map) => !isMap(map) || !Object.hasOwn(map, '__proto__'), 'must not hold a key __proto__')
    .pipe(z.record(z.string().min(1, 'must not hold an empty key'), value))
    .transform((map): Readonly<Record<string, T>> => Object.assign(Object.create(null) as Record<string, T>, map))

/** A string that `parse` accepts; `parse` returns undefined for an invalid one. `rule` is the text of the fault. */
export const textAs = <T>(rule: string, parse: (text: string) => T | undefined) =>
  z.string().transform((text, context): T => {
    const parsed = parse(text)
    if (parsed !== undefined) return parsed
    context.addIssue(rule)
    return z.NEVER
  })

/** One word of a closed list. */
export const oneOf = <const T extends string>(words: readonly T[]) =>
  z
    .enum(words, {
      error: ({ input }) => (typeof input === 'string' ? `must be one of ${words.join(', ')}` : undefined),
    })
    .meta({ type: words.map((word) => `\`${word}\``).join(', ') })

/** True or false; also as text from the environment. */
export const boolean = z
  .preprocess(
    (value) => (value === 'true' ? true : value === 'false' ? false : value),
    z.boolean('must be true or false'),
  )
  .meta({ type: '`true` or `false`' })

const SIGNED_DECIMAL = /^-?\d{1,16}(?:\.\d{1,16})?$/

/** Numbers also come as decimal text, from the environment. */
const numberOf = (value: unknown): unknown =>
  typeof value === 'string' && SIGNED_DECIMAL.test(value) ? Number(value) : value

const number = (rule: string, fits: (value: number) => boolean) =>
  z.preprocess(numberOf, z.number(rule).refine(fits, rule))

interface Range {
  readonly min: number
  readonly max?: number
}

const isInteger = (value: unknown, { min, max = Number.MAX_SAFE_INTEGER }: Range): boolean =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max

const spelled = (value: number): string => value.toLocaleString('en-US')

export const integer = (range: Range) => {
  const { min, max } = range
  const rule = max === undefined ? `must be an integer ≥ ${min}` : `must be an integer from ${min} to ${max}`
  const type = max === undefined ? `integer from ${spelled(min)}` : `${spelled(min)}–${spelled(max)}`
  return number(rule, (value) => isInteger(value, range)).meta({ type })
}

export const positiveNumber = number('must be a number > 0', (value) => value > 0).meta({ type: 'number above 0' })

/** A number within a range, both ends included. */
export const numberFrom = (min: number, max: number) =>
  number(`must be a number from ${min} to ${max}`, (value) => value >= min && value <= max).meta({
    type: `${min}–${max}`,
  })

/** Node's timers fire at once beyond 2^31 - 1 ms. */
export const durationMs = integer({ min: 1, max: 2_147_483_647 }).meta({ type: 'duration' })
export const timeMs = integer({ min: 1 }).meta({ type: 'milliseconds' })
export const bytes = integer({ min: 1 }).meta({ type: 'bytes' })
export const count = integer({ min: 1, max: 1_000_000 })

/** Processes that serve one port; `auto` = one for each processor. */
export type WorkerCount = number | 'auto'

const WORKERS: Range = { min: 1, max: 128 }

export const workers = z
  .preprocess(
    numberOf,
    z.custom<WorkerCount>((value) => value === 'auto' || isInteger(value, WORKERS), {
      // Rules between settings are looked at all the same.
      abort: false,
      error: ({ input }) => {
        const isWord = typeof input === 'string' && !/^-?\d/.test(input)
        return isWord ? 'must be an integer from 1 to 128, or auto' : 'must be an integer from 1 to 128'
      },
    }),
  )
  .meta({ type: '1–128 or `auto`' })

/** JavaScript spells small numbers with an exponent. */
function plainSpelling(value: number): string {
  const text = String(value)
  const [, mantissa = '', exponent] = /^([\d.]+)e-(\d+)$/.exec(text) ?? []
  return exponent === undefined ? text : `0.${'0'.repeat(Number(exponent) - 1)}${mantissa.replace('.', '')}`
}

const DECIMAL_RULE = 'must be a decimal ≥ 0 with at most 12 digits before and 12 after the point'

/**
 * A decimal ≥ 0 as text, digit for digit as it was written: no float ever stands for it. A number of YAML is taken by its
 * shortest spelling, which is what was written for every decimal of up to 15 digits.
 */
export const decimal = z
  .preprocess(
    (value) => (typeof value === 'number' ? plainSpelling(value) : value),
    z.string(DECIMAL_RULE).regex(/^\d{1,12}(?:\.\d{1,12})?$/, DECIMAL_RULE),
  )
  .meta({ type: 'decimal' })

export const identifier = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 letters, digits, dots, underscores or hyphens')
  .meta({ type: '1–64 of letters, digits, `. _ -`' })

/**
 * Id of a key, in the file and in the store. Logs, usage and limits use `-` for callers with an unknown key, and `caller`
 * for all with an upstream key of their own: a key of that name would be counted with them.
 */
export const keyIdentifier = z
  .string()
  .regex(
    /^(?!(?:-|caller)$)[A-Za-z0-9._-]{1,64}$/,
    'must be 1 to 64 letters, digits, dots, underscores or hyphens, and neither - nor caller, which mean somebody else',
  )
  .meta({ type: '1–64 of letters, digits, `. _ -`' })

/** A calendar day. */
export const day = z.iso.date('must be a day such as 2026-03-05').meta({ type: 'day' })

/** A model's whole name: catalogue rows and the model map know no globs. */
export const modelName = z
  .string()
  .regex(/^[^\s*\p{Cc}]{1,256}$/u, 'must be a model name of 1 to 256 characters without spaces and without *')
  .meta({ type: '1–256 characters' })

/** Other glob signs are refused: they would silently match nothing. */
export const glob = z
  .string()
  .regex(
    /^[^\s?[\]{}\p{Cc}]{1,256}$/u,
    'must be a model name of 1 to 256 characters without spaces, in which only * stands for any text; ? [ ] { } are not known',
  )

export const globs = z
  .array(glob)
  .refine(isNonEmpty, 'must hold at least one glob; leave it out for every model')
  .meta({ type: 'list of globs' })

export const hostName = z
  .string()
  .refine(
    (text) => isIP(text) > 0 || /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})$/.test(text),
    'must be an IP address or a host name',
  )
  .meta({ type: 'address or name' })

/** An address without query, fragment and user; comes out in its canonical spelling without a trailing slash. */
export const address = (...schemes: readonly string[]) =>
  textAs(`must be a ${schemes.join(', ')} address without user, query or fragment`, (text) => {
    // The URL parser forgives spaces and backslashes, and drops an empty query or user without a trace.
    if (!/^[a-z]+:\/\/[^\s\\?#@/]+(?:\/[^\s\\?#]*)?$/i.test(text) || !URL.canParse(text)) return undefined
    const url = new URL(text)
    return schemes.includes(url.protocol.slice(0, -1)) ? `${url.origin}${url.pathname}`.replace(/\/+$/, '') : undefined
  }).meta({ type: `${schemes.join('/')} address` })

/** One address or a range of them; an IPv4 address written as IPv6 would fit no peer, as peers are shown without it. */
export const addressRange = z.string().refine((text) => {
  const [, network = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const bits = { 4: 32, 6: 128 }[isIP(network)]
  if (bits === undefined || /^::ffff:/i.test(network) || network.includes('%')) return false
  return prefix === undefined || Number(prefix) <= bits
}, 'must be an IP address or a range such as 10.0.0.0/8')

/** Scheme, `*.` or nothing, host, and `:*` or nothing. Schemes of apps and extensions (`capacitor://localhost`) are origins as well. */
const ORIGIN_PATTERN = /^([a-z][a-z0-9+.-]*):\/\/(\*\.)?([^\s/\\?#@*]+?)(:\*)?\/?$/i

/** Pages of files have the origin `null`; sockets have none. */
const NO_PAGES = /^(?:wss?|file)$/i

/**
 * An origin as browsers send it, a pattern of such (`https://*.example.com`, `http://localhost:*`), or `*`; comes out in the spelling
 * that browsers use. `null` is what any sandboxed page sends.
 */
export const originPattern = textAs(
  'must be *, or an origin such as https://app.example.com, https://*.example.com or http://localhost:*, without a path',
  (text) => {
    if (text === '*') return text
    const [, scheme = '', labels = '', host, anyPort = ''] = ORIGIN_PATTERN.exec(text) ?? []
    const isWeb = /^https?$/i.test(scheme)
    const address = `${isWeb ? scheme : 'http'}://${host}`
    if (host === undefined || NO_PAGES.test(scheme) || !URL.canParse(address)) return undefined
    const { host: spelled, port } = new URL(address)
    if (anyPort !== '' && port !== '') return undefined
    return `${scheme.toLowerCase()}://${labels}${spelled}${anyPort}`
  },
)

/** `host:port`, the host in the canonical spelling a URL would give it (so that the SSRF guard can compare text). */
export const hostAndPort = textAs('must be host:port with a port from 1 to 65535, [host]:port for IPv6', (text) => {
  const [, host, portText] = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/.exec(text) ?? []
  if (host === undefined || Number(portText) < 1 || Number(portText) > 65_535 || !URL.canParse(`http://${host}`))
    return undefined
  return `${new URL(`http://${host}`).hostname}:${Number(portText)}`
})

/** A connection string; what follows the scheme is the driver's business. It may hold a password. */
export const connectionUrl = (...schemes: readonly string[]) =>
  z
    .string()
    .regex(
      new RegExp(`^(?:${schemes.join('|')})://\\S+$`),
      `must be an address that starts with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`,
    )
    .meta({ type: `${schemes.join(' or ')} address`, secret: true })

/** SHA-256 of an access key in lower-case hex; `sha256:<hex>` gives the hash itself. Undefined when it is neither. */
export function keyHash(text: string): string | undefined {
  if (text.startsWith('sha256:')) return /^sha256:([0-9a-f]{64})$/i.exec(text)?.[1]?.toLowerCase()
  return /^[\x21-\x7e]{1,512}$/.test(text) ? createHash('sha256').update(text).digest('hex') : undefined
}

export const KEY_RULE = 'must be 1 to 512 printable ASCII characters without spaces, or sha256: and 64 hex digits'
