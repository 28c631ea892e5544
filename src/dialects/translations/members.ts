import { type FieldError, GatewayError } from '../../core/errors.js'
import { isRecord, missing, wrongType } from '../../core/validation-rules.js'
import type { Verdicts } from '../verdicts.js'

/** Readers of what no DTO has checked: a value of another kind is the caller's mistake, named by its path. */

/** Members of an object whose types are not known. */
export type Members = Readonly<Record<string, unknown>>

/** Without members where the value is no object. */
export const recordOr = (value: unknown): Members => (isRecord(value) ? value : {})

/** `null` of an optional member is as good as none. */
export const isAbsent = (value: unknown): value is null | undefined => value === undefined || value === null

/** Only what cannot be sent at all is refused so; values are the upstream's business. */
const invalid = ({ path, code, message }: FieldError): GatewayError =>
  new GatewayError('invalid_request', message, { param: path, code })

export const missingAt = (path: string): GatewayError => invalid(missing(path))

/** For a value of another kind, or none. */
export const wrongShape = (path: string, expected: string, value: unknown): GatewayError =>
  isAbsent(value) ? missingAt(path) : invalid(wrongType(path, expected, value))

/** For a value that no verdict fits: it means nothing in the client's dialect either. */
export const invalidShape = (path: string, expected: string): GatewayError =>
  new GatewayError('invalid_request', `Invalid '${path}': expected ${expected}.`, { param: path, code: 'invalid_type' })

export function objectAt(value: unknown, path: string): Members {
  if (isRecord(value)) return value
  throw wrongShape(path, 'an object', value)
}

export function textAt(value: unknown, path: string): string {
  if (typeof value === 'string') return value
  throw wrongShape(path, 'a string', value)
}

export const optionalTextAt = (value: unknown, path: string): string | undefined =>
  isAbsent(value) ? undefined : textAt(value, path)

export function listAt(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw wrongShape(path, 'an array', value)
}

export const optionalListAt = (value: unknown, path: string): readonly unknown[] =>
  isAbsent(value) ? [] : listAt(value, path)

/** Members that the gateway does not know are hints, as far as it can tell; a strict caller is refused. */
export function dropUnknown(value: Members, known: ReadonlySet<string>, path: string, verdicts: Verdicts): void {
  for (const name in value) if (!known.has(name) && !isAbsent(value[name])) verdicts.drop(`${path}.${name}`)
}

/** What a `prompt_cache_breakpoint` may say: how long upstreams keep what they cache is not the caller's choice in every dialect. */
export const BREAKPOINT_MEMBERS: ReadonlySet<string> = new Set(['mode'])

/** Whether a member says nothing: clients hand back empty lists. */
export const isEmpty = (value: unknown): boolean => isAbsent(value) || (Array.isArray(value) && value.length === 0)

/** What JSON text says, of a model or of what a client keeps for the gateway; undefined where it is none. */
export function parsedOr(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}
