import type { JsonObject } from '../server/json-value.js'

/** A copy of an object without some of its members. */
export function without(object: JsonObject, ...names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))
}
