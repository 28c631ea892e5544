import { isRecord } from '../../core/validation-rules.js'
import { type Members, recordOr } from './members.js'

/** Keywords that chat upstreams refuse in strict schemas: all of them, or some. */
const REFUSED_KEYWORDS = [
  ...['allOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas', 'prefixItems'],
  ...['contentEncoding', 'contentMediaType', 'patternProperties', 'propertyNames', 'unevaluatedProperties'],
  ...['unevaluatedItems', 'contains'],
] as const

const FORMATS: ReadonlySet<unknown> = new Set([
  ...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'],
])

const SCHEMA_MAPS = ['properties', '$defs', 'definitions'] as const

/** Whether a schema may be sent to chat upstreams as strict: an object, in which every object at every depth has all of its properties, and no others. */
export const isClosedSchema = (schema: unknown): boolean =>
  isRecord(schema) && schema['type'] === 'object' && schema['anyOf'] === undefined && isClosed(schema)

function isClosed(schema: unknown): boolean {
  if (!isRecord(schema)) return true
  if (isRefused(schema)) return false
  const { items, anyOf } = schema
  const nested = [items, anyOf, ...SCHEMA_MAPS.map((name) => Object.values(recordOr(schema[name])))].flat()
  return nested.every(isClosed)
}

/** Judges the schema itself, without those within it. */
function isRefused(schema: Members): boolean {
  const { $ref, format, type, properties } = schema
  if (REFUSED_KEYWORDS.some((name) => schema[name] !== undefined)) return true
  if ($ref !== undefined && Object.keys(schema).length > 1) return true
  if (format !== undefined && !FORMATS.has(format)) return true
  return ([type].flat().includes('object') || properties !== undefined) && isOpenObject(schema)
}

/** Strict objects require the properties that they name: no fewer, and no more. */
function isOpenObject({ properties, required, additionalProperties }: Members): boolean {
  const names = Object.keys(recordOr(properties))
  const listed = new Set<unknown>(Array.isArray(required) ? required : [])
  return additionalProperties !== false || listed.size !== names.length || !names.every((name) => listed.has(name))
}
