import { GatewayError } from '../../../core/errors.js'
import { isRecord } from '../../../core/validation-rules.js'
import type { Verdicts } from '../../verdicts.js'

/** Members of a caller's object, of which the endpoint has checked some; `null` of an optional one is as good as none. */
export type Fields = Readonly<Record<string, unknown>>

export const isAbsent = (value: unknown): value is null | undefined => value === undefined || value === null

/** A shape that no verdict fits: it is no value of the client's dialect either. */
export const invalidShape = (path: string, expected: string): GatewayError =>
  new GatewayError('invalid_request', `Invalid '${path}': expected ${expected}.`, { param: path, code: 'invalid_type' })

export function recordAt(value: unknown, path: string): Fields {
  if (isRecord(value)) return value
  throw invalidShape(path, 'an object')
}

export function textAt(value: unknown, path: string): string {
  if (typeof value === 'string') return value
  throw invalidShape(path, 'a string')
}

/** None where the value is absent. */
export function listAt(value: unknown, path: string): readonly unknown[] {
  if (isAbsent(value)) return []
  if (Array.isArray(value)) return value
  throw invalidShape(path, 'an array')
}

/** Names what the caller has said beside the members that are known; a strict caller is refused. */
export function dropOthers(fields: Fields, known: ReadonlySet<string>, path: string, verdicts: Verdicts): void {
  for (const name of Object.keys(fields)) {
    if (!known.has(name) && !isAbsent(fields[name])) verdicts.drop(`${path}.${name}`)
  }
}
