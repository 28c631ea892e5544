import { applyDecorators, type Type } from '@nestjs/common'
import { getMetadataStorage, ValidateBy, type ValidationArguments } from 'class-validator'
import { type FieldError, GatewayError } from './errors.js'
import type { Schema } from './json-schema.js'
import { MemberNames } from './member-names.js'
import { type FieldRule, isRequired, NO_PATH } from './validation-rules.js'

/** A query string as Express parses it: text, or a list where a name stands more than once. */
export type Query = Readonly<Record<string, unknown>>

/** Carried as class-validator context, so that the error's writer can ask the rule for path and code. */
interface RuleContext {
  readonly rule: FieldRule
}

/** What readers of the OpenAPI document learn of a field beyond its rule; a member here stands for the rule's own. */
type Annotations = Omit<Schema, 'required'>

interface ShownField {
  readonly name: string
  readonly schema: Schema
  readonly isRequired: boolean
}

const SHOWN_FIELDS = Symbol('fields in the OpenAPI document')

/**
 * One field of a DTO: its rule as a class-validator constraint and its place in the OpenAPI document, in one line,
 * so that what is checked and what is documented cannot drift apart. A field is needed when its rule refuses absence, or where
 * something else does, as of files.
 */
export function Field(
  rule: FieldRule,
  annotations: Annotations,
  isNeeded: boolean = isRequired(rule),
): PropertyDecorator {
  const context: RuleContext = { rule }
  const constraint = ValidateBy(
    {
      name: 'rule',
      validator: {
        validate: (value: unknown, args?: ValidationArguments) => rule(value, args?.property ?? '') === undefined,
        defaultMessage: (args?: ValidationArguments) => rule(args?.value, args?.property ?? '')?.message ?? '',
      },
    },
    { context },
  )
  return applyDecorators(constraint, Shown(annotated(rule.schema ?? {}, annotations), isNeeded))
}

/** A component has words of its own; those of one place stand beside it. */
const annotated = (schema: Schema, annotations: Annotations): Schema =>
  schema.title === undefined ? { ...schema, ...annotations } : { allOf: [schema], ...annotations }

/** One field of an answer; it has no rule. */
export function Shown(schema: Schema, isAlwaysThere = true): PropertyDecorator {
  return (prototype, name) => {
    const field: ShownField = { name: String(name), schema, isRequired: isAlwaysThere }
    // Those of a base class come first and stay its own.
    Reflect.defineMetadata(SHOWN_FIELDS, [...shownFields(prototype), field], prototype)
  }
}

const shownFields = (prototype: object): readonly ShownField[] =>
  (Reflect.getMetadata(SHOWN_FIELDS, prototype) ?? []) as readonly ShownField[]

/** An object in which no other members may stand. */
export const CLOSED = { additionalProperties: false } as const

/** Bodies of requests and answers as the OpenAPI document shows them, under a name of their own. */
export function schemaOf(
  dto: Type<object>,
  title: string,
  description: string,
  { additionalProperties }: { readonly additionalProperties: boolean } = { additionalProperties: true },
): Schema {
  const fields = shownFields(dto.prototype as object)
  const required = fields.filter((field) => field.isRequired).map(({ name }) => name)
  return {
    title,
    type: 'object',
    description,
    ...(required.length === 0 ? {} : { required }),
    additionalProperties,
    properties: Object.fromEntries(fields.map(({ name, schema }) => [name, schema])),
  }
}

const READ_NAMES = Symbol('names that are read')

/** Names that a DTO does not list and the gateway reads all the same: no other spelling of them may travel on. */
export function AlsoReads(...names: readonly string[]): ClassDecorator {
  return (dto) => {
    Reflect.defineMetadata(READ_NAMES, names, dto)
  }
}

/** The rules of a DTO class, compiled once: Nest's ValidationPipe would cost as much as the rest of a relayed call together. */
export class DtoCheck<Dto extends object> {
  private readonly rules: readonly (readonly [string, FieldRule])[]
  private readonly names: MemberNames

  constructor(dto: Type<Dto>) {
    this.rules = getMetadataStorage()
      .getTargetValidationMetadatas(dto, '', false, false)
      .map((metadata) => [metadata.propertyName, (metadata.context as RuleContext).rule] as const)
    const alsoRead = (Reflect.getMetadata(READ_NAMES, dto) ?? []) as readonly string[]
    this.names = new MemberNames([...this.rules.map(([name]) => name), ...alsoRead])
  }

  /** The same fields, now known to have the DTO's shape; unknown fields stay. Throws `invalid_request` for the first that is wrong. */
  assert(fields: Record<string, unknown>): Dto {
    if (this.accepts(fields)) return fields as Dto
    const { path, message, code } = this.fault(fields)
    throw new GatewayError('invalid_request', message, { param: path, code })
  }

  accepts(fields: Record<string, unknown>): boolean {
    if (this.names.ambiguity(fields, NO_PATH) !== undefined) return false
    for (const [property, rule] of this.rules) {
      if (rule(fields[property], NO_PATH) !== undefined) return false
    }
    return true
  }

  /** Of fields that are not accepted. */
  private fault(fields: Record<string, unknown>): FieldError {
    const ambiguity = this.names.ambiguity(fields, '')
    if (ambiguity !== undefined) return ambiguity
    for (const [property, rule] of this.rules) {
      const found = rule(fields[property], property)
      if (found !== undefined) return found
    }
    throw new Error('A rule accepts without a path what it refuses with one.')
  }
}
