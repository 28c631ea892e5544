import { type FieldError, GatewayError } from '../../../core/errors.js'
import { isRecord, missing, wrongType } from '../../../core/validation-rules.js'
import type { Verdicts } from '../../verdicts.js'

/** Readers of what no DTO has judged: a value of another kind is the caller's mistake, named by its path. */

export type JsonObject = Readonly<Record<string, unknown>>

/** Only what cannot be sent at all is refused so; values are the upstream's business. */
const invalid = ({ path, code, message }: FieldError): GatewayError =>
  new GatewayError('invalid_request', message, { param: path, code })

export function objectAt(value: unknown, path: string): JsonObject {
  if (isRecord(value)) return value
  throw value == null ? missingAt(path) : invalid(wrongType(path, 'an object', value))
}

export function textAt(value: unknown, path: string): string {
  if (typeof value === 'string') return value
  throw value == null ? missingAt(path) : invalid(wrongType(path, 'a string', value))
}

/** null and absent are the same. */
export const optionalTextAt = (value: unknown, path: string): string | undefined =>
  value == null ? undefined : textAt(value, path)

export function listAt(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw value == null ? missingAt(path) : invalid(wrongType(path, 'an array', value))
}

export const missingAt = (path: string): GatewayError => invalid(missing(path))

/** Members that the gateway does not know are hints, as far as it can tell. */
export function dropUnknown(value: JsonObject, known: ReadonlySet<string>, path: string, verdicts: Verdicts): void {
  for (const name in value) if (!known.has(name) && value[name] != null) verdicts.drop(`${path}.${name}`)
}

/** What JSON text says, of a model or of what a client keeps for the gateway; undefined where it is none. */
export function parsedOr(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}
