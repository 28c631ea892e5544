import { applyDecorators } from '@nestjs/common'
import { ApiProperty } from '@nestjs/swagger'
import { ValidateBy, type ValidationArguments } from 'class-validator'
import type { FieldRule } from './validation-rules.js'

/** Carried as class-validator context, so that whoever words the error can ask the rule for path and code. */
export interface RuleContext {
  readonly rule: FieldRule
}

/** A field's place in the OpenAPI document. */
export interface FieldSchema {
  readonly type?: string
  readonly enum?: readonly string[]
  readonly description?: string
  readonly default?: unknown
  readonly example?: unknown
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean
  readonly properties?: Readonly<Record<string, FieldSchema>>
  readonly items?: FieldSchema
  readonly oneOf?: readonly FieldSchema[]
}

/**
 * One field of a DTO: its rule as a class-validator constraint and its place in the OpenAPI document, in one line,
 * so that what is checked and what is documented cannot drift apart. A field is required when its rule refuses absence.
 */
export function Field(rule: FieldRule, schema: FieldSchema): PropertyDecorator {
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
  return applyDecorators(constraint, documented(schema, rule(undefined, '') !== undefined))
}

function documented(schema: FieldSchema, isRequired: boolean): PropertyDecorator {
  // An object's own `required` lists its members, so its presence is said by another word.
  const presence = schema.type === 'object' ? { selfRequired: isRequired } : { required: isRequired }
  return ApiProperty({ ...schema, ...presence } as Parameters<typeof ApiProperty>[0])
}
