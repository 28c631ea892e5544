/** A JSON value's form (JSON Schema 2020-12, as OpenAPI 3.1 has it): what rules carry and what the OpenAPI document shows. */
export interface Schema {
  /** One with a title is a component of the document, wherever it is used. */
  readonly title?: string
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly default?: unknown
  readonly example?: unknown
  readonly examples?: readonly unknown[]
  readonly format?: string
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly exclusiveMinimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly allOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly contentMediaType?: string
  readonly contentSchema?: Schema
}

export const TEXT = { type: 'string' } as const satisfies Schema

export const COUNT = { type: 'integer', minimum: 0 } as const satisfies Schema

export const UNIX_MS = { type: 'integer', format: 'int64', description: 'Unix milliseconds' } as const satisfies Schema

/** A text that is always the same. */
export const constant = (value: string, description = 'What it is'): Schema => ({ ...TEXT, const: value, description })

/** The source of an expression as all readers of patterns know it: few know the names of Unicode's categories. */
export const patternOf = (source: string): string => source.replaceAll('\\p{Cc}', '\\u0000-\\u001f\\u007f-\\u009f')

const NULL = { type: 'null' } as const satisfies Schema

/** The same, or null. */
export function nullable(schema: Schema): Schema {
  const { type, title, anyOf } = schema
  if (anyOf !== undefined) return { ...schema, anyOf: [...anyOf, NULL] }
  // Generators name a reference and an enumeration once, where null stands beside it.
  if (title !== undefined || schema.enum !== undefined) return { anyOf: [schema, NULL] }
  if (type === undefined) return schema
  return { ...schema, type: [...(typeof type === 'string' ? [type] : type), 'null'] }
}

/** A text with a meaning. */
export const described = (description: string, schema: Schema = TEXT): Schema => ({ ...schema, description })

export const listOf = (items: Schema, description?: string): Schema => ({
  type: 'array',
  items,
  ...(description === undefined ? {} : { description }),
})

/**
 * An object that answers are made of: all members are there but those whose names end with `?`. Others may come, as upstreams
 * and later versions add them.
 */
export function answer(title: string, description: string, members: Readonly<Record<string, Schema>>): Schema {
  const names = Object.keys(members)
  const properties = Object.entries(members).map(([name, schema]) => [name.replace(/\?$/, ''), schema] as const)
  const required = names.filter((name) => !name.endsWith('?'))
  return {
    title,
    type: 'object',
    description,
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: true,
    properties: Object.fromEntries(properties),
  }
}

/** The events of a stream, whose data is JSON of a form; a stream may end with other data, as the form says. */
export const eventsOf = (data: Schema): Schema => ({
  title: `${data.title ?? ''}Frame`,
  type: 'object',
  description: 'An event of a stream',
  required: ['data'],
  properties: {
    event: described('The name of the event, where it has one'),
    data: {
      ...described('JSON, or what ends the stream'),
      contentMediaType: 'application/json',
      contentSchema: data,
    },
  },
})
