import { isRecord } from '../../core/validation-rules.js'
import type { Members } from './members.js'

/** Keywords that chat upstreams refuse in strict schemas. */
const REFUSED_KEYWORDS = [
  ...['allOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas', 'default'],
  ...['patternProperties', 'propertyNames', 'unevaluatedProperties', 'minProperties', 'maxProperties'],
  ...['contains', 'minContains', 'maxContains', 'unevaluatedItems', 'uniqueItems', 'minLength', 'maxLength'],
] as const

/** Of which each schema within another one must have one. */
const KIND_KEYWORDS = ['type', 'enum', 'const', 'anyOf', '$ref'] as const

const SCHEMA_MAPS = ['properties', '$defs', 'definitions'] as const

/**
 * Whether chat upstreams take a schema as strict: an object, in which every object at every depth has only the properties that it
 * names, and all of them. Its type may be left out.
 */
export const isClosedSchema = (schema: unknown): boolean =>
  isRecord(schema) &&
  (schema['type'] ?? 'object') === 'object' &&
  schema['anyOf'] === undefined &&
  isClosedWithin({ ...schema, type: 'object' })

function isClosedWithin(schema: unknown): boolean {
  if (!isRecord(schema)) return true
  if (REFUSED_KEYWORDS.some((name) => schema[name] !== undefined)) return false
  if (KIND_KEYWORDS.every((name) => schema[name] === undefined)) return false
  const { properties, type, items, anyOf } = schema
  const isObject = [type].flat().includes('object') || properties !== undefined
  if (isObject && !isClosedObject(schema)) return false
  const nested = [items, anyOf, ...SCHEMA_MAPS.map((name) => valuesOf(schema[name]))].flat()
  return nested.every(isClosedWithin)
}

const valuesOf = (map: unknown): readonly unknown[] => (isRecord(map) ? Object.values(map) : [])

function isClosedObject({ properties, required, additionalProperties }: Members): boolean {
  const listed = new Set<unknown>(Array.isArray(required) ? required : [])
  return additionalProperties === false && Object.keys(properties ?? {}).every((name) => listed.has(name))
}
