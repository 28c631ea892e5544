import { isObject, type JsonObject, listOf } from '../server/json-value.js'

/** Keywords of JSON Schema that structured outputs do not have; `default` is not among them any more. */
const NOT_PERMITTED = ['allOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas'] as const

const FORMATS: ReadonlySet<unknown> = new Set([
  ...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'],
])

const MAPS = ['properties', '$defs', 'definitions'] as const

/** Why the upstream does not take a schema as strict, in its words; undefined = it takes it. */
export function strictFault(schema: unknown): string | undefined {
  if (!isObject(schema)) return undefined
  const { type, anyOf } = schema
  if (type !== 'object') {
    return `schema must be a JSON Schema of 'type: "object"', got 'type: ${JSON.stringify(type ?? null)}'.`
  }
  if (anyOf !== undefined) return "schema must not have 'anyOf' at the top level."
  return faultIn(schema, [])
}

/** `context`: the names under which the schema stands within the whole one. */
function faultIn(schema: unknown, context: readonly string[]): string | undefined {
  if (!isObject(schema)) return undefined
  const rule = brokenRule(schema)
  if (rule !== undefined) return `In context=(${context.map(quoted).join(', ')}), ${rule}`
  for (const [steps, nested] of nestedIn(schema)) {
    const fault = faultIn(nested, [...context, ...steps])
    if (fault !== undefined) return fault
  }
  return undefined
}

function brokenRule(schema: JsonObject): string | undefined {
  const keyword = NOT_PERMITTED.find((name) => schema[name] !== undefined)
  if (keyword !== undefined) return `'${keyword}' is not permitted.`
  const { $ref, format, type, properties } = schema
  const beside = Object.keys(schema).filter((name) => name !== '$ref')
  if ($ref !== undefined && beside.length > 0) {
    return `$ref cannot have keywords {${beside.map(quoted).join(', ')}}.`
  }
  if (format !== undefined && !FORMATS.has(format)) return `${quoted(format)} is not a valid format.`
  return [type].flat().includes('object') || properties !== undefined ? brokenObjectRule(schema) : undefined
}

function brokenObjectRule({ properties, additionalProperties, required }: JsonObject): string | undefined {
  if (additionalProperties !== false) return "'additionalProperties' is required to be supplied and to be false."
  const names = new Set<unknown>(Object.keys(isObject(properties) ? properties : {}))
  const listed = new Set(listOf(required))
  const rule = "'required' is required to be supplied and to be an array including every key in properties."
  const forgotten = [...names].find((name) => !listed.has(name))
  if (forgotten !== undefined) return `${rule} Missing ${quoted(forgotten)}.`
  const extra = [...listed].find((name) => !names.has(name))
  return extra === undefined ? undefined : `${rule} Extra required key ${quoted(extra)} supplied.`
}

/** As the upstream writes values. */
const quoted = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : JSON.stringify(value))

type Nested = readonly [steps: readonly string[], schema: unknown]

function nestedIn(schema: JsonObject): readonly Nested[] {
  const { items, anyOf } = schema
  return [
    ...MAPS.flatMap((map) => Object.entries(schema[map] ?? {}).map(([name, inner]): Nested => [[map, name], inner])),
    [['items'], items],
    ...listOf(anyOf).map((inner, index): Nested => [['anyOf', String(index)], inner]),
  ]
}
