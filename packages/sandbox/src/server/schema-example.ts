import { fieldOf, isObject, listOf, type JsonObject } from './json-value.js'

const MAX_DEPTH = 8

/** A value that satisfies a JSON Schema, the same one each time: required properties only, or all when none is required. */
export function exampleOf(schema: unknown, name = 'value', depth = 0): unknown {
  if (!isObject(schema) || depth > MAX_DEPTH) return `example ${name}`
  if (Object.hasOwn(schema, 'const')) return schema['const']
  if (Object.hasOwn(schema, 'default')) return schema['default']
  const listed = listOf(schema['enum'])[0] ?? listOf(schema['examples'])[0]
  if (listed !== undefined) return listed
  const alternative = listOf(schema['anyOf'])[0] ?? listOf(schema['oneOf'])[0]
  if (alternative !== undefined) return exampleOf(alternative, name, depth + 1)
  return exampleOfType(schema, name, depth)
}

function exampleOfType(schema: JsonObject, name: string, depth: number): unknown {
  const type = Array.isArray(schema['type']) ? (schema['type'] as unknown[])[0] : schema['type']
  switch (type) {
    case 'object':
      return exampleObject(schema, depth)
    case 'array':
      return [exampleOf(schema['items'], name, depth + 1)]
    case 'number':
    case 'integer':
      return typeof schema['minimum'] === 'number' ? schema['minimum'] : 1
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return isObject(schema['properties']) ? exampleObject(schema, depth) : `example ${name}`
  }
}

function exampleObject(schema: JsonObject, depth: number): JsonObject {
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const required = listOf(schema['required']).filter((name) => typeof name === 'string')
  const names = required.length > 0 ? required : Object.keys(properties)
  return Object.fromEntries(names.map((name) => [name, exampleOf(fieldOf(properties, name), name, depth + 1)]))
}
