import { isRecord } from '../../../core/validation-rules.js'
import type { Members } from '../members.js'

/** Keywords that chat upstreams do not have in strict schemas. */
const LACKING = ['allOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas'] as const

const SCHEMA_MAPS = ['properties', '$defs', 'definitions'] as const

/**
 * Whether chat upstreams take the schema as strict, for which all properties must be required and no others allowed, at every depth;
 * messages allow optional ones. What they do not take as strict they refuse, instead of keeping to it as far as they can.
 */
export const canBeStrict = (schema: Members): boolean =>
  schema['type'] === 'object' && schema['anyOf'] === undefined && isClosed(schema)

function isClosed(schema: unknown): boolean {
  if (!isRecord(schema)) return true
  if (LACKING.some((keyword) => schema[keyword] !== undefined)) return false
  const { type, properties, additionalProperties, items, anyOf } = schema
  if ([type].flat().includes('object') || properties !== undefined) {
    if (additionalProperties !== false || !requiresAll(schema)) return false
  }
  const maps = SCHEMA_MAPS.map((name) => schema[name]).filter((map) => isRecord(map))
  const nested = [items, ...(Array.isArray(anyOf) ? (anyOf as unknown[]) : []), ...maps.flatMap(Object.values<unknown>)]
  return nested.every(isClosed)
}

function requiresAll({ properties, required }: Members): boolean {
  const listed = new Set<unknown>(Array.isArray(required) ? required : [])
  return !isRecord(properties) || Object.keys(properties).every((name) => listed.has(name))
}
