import type { DocumentsSection } from '../config/settings.js'
import { decimalOf } from '../core/decimal-text.js'
import { fault, type FieldFault, type FieldRule } from '../core/validation-rules.js'

/** From here on a timeout can only be meant in milliseconds: no server waits for a quarter of an hour. */
const MILLISECONDS_FROM = 1000

const FLAG_TEXTS: Readonly<Record<string, boolean>> = { true: true, false: false, 1: true, 0: false }

const notPositive = (path: string): FieldFault =>
  fault(path, 'invalid_value', `Invalid '${path}': expected a positive number of seconds.`)

/** A positive number. */
export const timeout: FieldRule = (value, path) =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? undefined : notPositive(path)

/** The same where all values are text. */
export const timeoutText: FieldRule = (value, path) => timeout(decimalOf(value), path)

/** `true` or `false` where all values are text; 1 and 0 mean the same. */
export const flagText: FieldRule = (value, path) =>
  typeof value === 'string' && Object.hasOwn(FLAG_TEXTS, value)
    ? undefined
    : fault(path, 'invalid_type', `Invalid type for '${path}': expected 'true' or 'false'.`)

/** What a text says that has passed `flagText`. */
export const flagOf = (value: string | null | undefined): boolean => FLAG_TEXTS[value ?? 'false'] ?? false

/**
 * How long a caller wants to wait, in milliseconds: `value` are seconds, from 1,000 on milliseconds, never more than the
 * operator's maximum.
 */
export function timeoutMsOf(
  value: number | string | null | undefined,
  { defaultTimeoutMs, maximumTimeoutMs }: Pick<DocumentsSection, 'defaultTimeoutMs' | 'maximumTimeoutMs'>,
): number {
  if (value === undefined || value === null) return defaultTimeoutMs
  const number = Number(value)
  return Math.min(number >= MILLISECONDS_FROM ? number : number * 1000, maximumTimeoutMs)
}
