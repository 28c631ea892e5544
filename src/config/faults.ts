import type * as z from 'zod'
import { nearestName } from './nearest-name.js'

/** One fault of the configuration: its path and the rule; never a value. */
interface ConfigFault {
  readonly path: string
  readonly message: string
}

/** Placeholder for a value whose fault has already been reported, so that no second one follows. */
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
/** Without colons: if the space after a colon is missing, YAML reads key and value as one key. */
const PRINTABLE_NAME = /^[A-Za-z0-9._/@-]{1,64}$/

/** Path of `name` inside `parent`; a name that could garble a terminal or a log line is not shown. */
export function fieldPath(parent: string, name: string): string {
  if (SIMPLE_NAME.test(name)) return parent === '' ? name : `${parent}.${name}`
  return PRINTABLE_NAME.test(name) ? `${parent}["${name}"]` : `${parent}["…"]`
}

export const itemPath = (parent: string, index: number): string => `${parent}[${index}]`

type Path = readonly PropertyKey[]

/** A path of zod's as faults show it. */
export const shownPath = (path: Path): string =>
  path.reduce<string>(
    (parent, part) => (typeof part === 'number' ? itemPath(parent, part) : fieldPath(parent, String(part))),
    '',
  )

export const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Freezes a plain value and everything it holds; returns the same value. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const item of Object.values(value)) deepFreeze(item)
  }
  return value
}

/** Checks `value` and adds its faults to `faults`; undefined if there are any. */
export function checked<T>(schema: z.ZodType<T>, value: unknown, faults: FaultList): T | undefined {
  // A schema is used once per load: code that zod would generate for it costs more than it saves.
  const result = schema.safeParse(value, { error: faultText, reportInput: true, jitless: true })
  if (result.success) return result.data
  for (const issue of inReadingOrder(result.error.issues)) {
    if (issue.input === FAULTED && issue.path.length > 0) continue
    const path = shownPath(issue.code === 'invalid_key' ? issue.path.slice(0, -1) : issue.path)
    for (const line of issue.message.split('\n')) faults.add(path === '' ? 'document' : path, line)
  }
  return undefined
}

/** Default text of a fault without a text in the schema. */
function faultText(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_key') return issue.issues[0]?.message ?? 'must not hold such a key'
  const sameAs: unknown = issue.code === 'custom' ? issue.params?.['sameAs'] : undefined
  if (typeof sameAs === 'number') return `is the same as ${shownPath(pathOfEarlier(issue.path ?? [], sameAs))}`
  if (issue.input === undefined) return 'is required'
  if (issue.code === 'invalid_type' && issue.expected === 'array') return 'must be a list'
  if (issue.code === 'invalid_type' && issue.expected !== 'string') return 'must be a map'
  const isUnquoted = typeof issue.input === 'number' || typeof issue.input === 'boolean'
  return isUnquoted ? 'must be a string; put it in quotes' : 'must be a string'
}

/** Of the field `path`, the one in an earlier item of the same list. */
const pathOfEarlier = (path: Path, index: number): Path => [...path.slice(0, -2), index, ...path.slice(-1)]

/** Faults of a whole map or list come before those inside it; zod reports them afterwards. */
function inReadingOrder(issues: readonly z.core.$ZodIssue[]): readonly z.core.$ZodIssue[] {
  const firstInside = new Map<string, number>()
  const placed = issues.map((issue, index) => {
    const wholeDepth = wholeOf(issue)?.length ?? Infinity
    let place = ''
    let position = index
    for (const [depth, part] of ['', ...issue.path].entries()) {
      place += `/${JSON.stringify(part)}`
      if (depth === wholeDepth) position = firstInside.get(place) ?? index
      else if (!firstInside.has(place)) firstInside.set(place, index)
    }
    return { issue, position, wholeDepth }
  })
  placed.sort((left, right) => left.position - right.position || left.wholeDepth - right.wholeDepth)
  return placed.map(({ issue }) => issue)
}

/** The map that has unknown keys, or the list with an item that is there twice; undefined for any other fault. */
function wholeOf(issue: z.core.$ZodIssue): Path | undefined {
  if (issue.code === 'unrecognized_keys') return issue.path
  return issue.code === 'custom' && issue.params?.['sameAs'] !== undefined ? issue.path.slice(0, -2) : undefined
}

/** Longer keys, or keys with more digits, are not shown: they may be secrets in the wrong place. */
const SHOWABLE = /^(?:[A-Za-z_-]{1,40}|[A-Za-z0-9_-]{1,12})$/

/** The fault for a key that is not among `known`, with the nearest known one when there is a near one. */
export function describeUnknownKey(name: string, known: readonly string[]): string {
  const title = SHOWABLE.test(name) ? `unknown key "${name}"` : 'unknown key (not shown, it may be a secret)'
  const near = nearestName(name, known, { spell: plain })
  if (near !== undefined) return `${title}; did you mean "${near}"?`
  return known.length === 0 ? `${title}; none is allowed here` : `${title}; allowed: ${known.join(', ')}`
}

/** `base_url`, `base-url` and `BASEURL` are spellings of `baseUrl`. */
const plain = (name: string): string => name.toLowerCase().replaceAll(/[_-]/g, '')
