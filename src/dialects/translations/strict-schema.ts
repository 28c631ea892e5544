import { isRecord } from '../../core/validation-rules.js'
import type { Members } from './members.js'

/** Whether a schema, or one within it, has what keeps it from being strict, beside objects that are open. */
type Obstacle = (schema: Members) => boolean

const has =
  (...keywords: readonly string[]): Obstacle =>
  (schema) =>
    keywords.some((name) => schema[name] !== undefined)

/** Keywords that chat upstreams lack in strict schemas. */
const isLacking = has('allOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas')

/** Keywords that only some of them take. */
const isDoubtful = has(
  ...['default', 'patternProperties', 'propertyNames', 'unevaluatedProperties', 'minProperties', 'maxProperties'],
  ...['contains', 'minContains', 'maxContains', 'unevaluatedItems', 'uniqueItems', 'minLength', 'maxLength'],
)

/** Of these they want one in each schema. */
const isOfKind = has('type', 'enum', 'const', 'anyOf', '$ref')

/** Whether a schema may be sent to chat upstreams as strict: an object, in which every object at every depth has all of its properties, and no others. */
export const isClosedSchema = (schema: unknown): boolean => isClosedObject(schema, isLacking)

/** As `isClosedSchema`, where the caller has not asked for strict: no chat upstream must refuse the schema as such. */
export const isSurelyClosedSchema = (schema: unknown): boolean =>
  isClosedObject(schema, (inner) => isLacking(inner) || isDoubtful(inner) || !isOfKind(inner))

const isClosedObject = (schema: unknown, hasObstacle: Obstacle): boolean =>
  isRecord(schema) && schema['type'] === 'object' && schema['anyOf'] === undefined && isClosed(schema, hasObstacle)

const SCHEMA_MAPS = ['properties', '$defs', 'definitions'] as const

function isClosed(schema: unknown, hasObstacle: Obstacle): boolean {
  if (!isRecord(schema)) return true
  if (hasObstacle(schema)) return false
  const { properties, type, items, anyOf, required, additionalProperties } = schema
  const names = Object.keys(properties ?? {})
  if ([type].flat().includes('object') || properties !== undefined) {
    const listed = new Set<unknown>(Array.isArray(required) ? required : [])
    if (additionalProperties !== false || !names.every((name) => listed.has(name))) return false
  }
  const nested = [items, anyOf, ...SCHEMA_MAPS.map((name) => valuesOf(schema[name]))].flat()
  return nested.every((inner) => isClosed(inner, hasObstacle))
}

const valuesOf = (map: unknown): readonly unknown[] => (isRecord(map) ? Object.values(map) : [])
