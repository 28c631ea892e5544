import { GatewayError } from '../core/gateway-error.js'
import { quoted } from '../core/message-text.js'
import type { Query } from '../core/query.js'
import { assertKnown } from './admin-request.js'

/** The parameters of an operator's query. Throws `invalid_request` for an unknown name, for one that stands twice,
 * and for control characters. */
export function readQuery<Name extends string>(query: Query, names: readonly Name[]): Partial<Record<Name, string>> {
  assertKnown(Object.keys(query), new Set<string>(names))
  const read: Partial<Record<Name, string>> = {}
  for (const name of names) {
    const value = query[name]
    if (value === undefined) continue
    if (typeof value !== 'string') throw invalid(name, `The parameter ${quoted(name)} stands more than once.`)
    // No database takes a NUL, and no name of ours has any of them.
    if (/\p{Cc}/u.test(value)) throw invalid(name, `The parameter ${quoted(name)} holds a control character.`)
    read[name] = value
  }
  return read
}

/** A whole number out of a query, between two others; undefined when it is absent. Throws `invalid_request`. */
export function wholeNumber(
  name: string,
  text: string | undefined,
  [minimum, maximum]: readonly [number, number],
): number | undefined {
  if (text === undefined) return undefined
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (number >= minimum && number <= maximum) return number
  throw invalid(name, `Invalid '${name}': expected a whole number from ${minimum} to ${maximum}.`)
}

export const invalid = (param: string, message: string): GatewayError =>
  new GatewayError('invalid_request', message, { param, code: 'invalid_value' })
