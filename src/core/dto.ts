import { applyDecorators, type Type, ValidationPipe } from '@nestjs/common'
import { ApiProperty } from '@nestjs/swagger'
import { getMetadataStorage, ValidateBy, type ValidationArguments, type ValidationError } from 'class-validator'
import { GatewayError, quoted } from './errors.js'
import { fieldError, type FieldRule, integer, NO_PATH, record } from './validation-rules.js'

/** Carried as class-validator context, so that whoever words the error can ask the rule for path and code. */
interface RuleContext {
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

/**
 * Nest's pipe decides and words whatever the compiled check does not accept. It is never asked on the happy path:
 * it would cost as much as the rest of a relayed call together.
 */
const validationPipe = new ValidationPipe({
  transform: true,
  stopAtFirstError: true,
  forbidUnknownValues: false,
  exceptionFactory: (errors) => errorOf(errors),
})

/** A DTO class compiled once: accepts synchronously, or lets Nest's ValidationPipe refuse with `invalid_request`. */
export class DtoCheck<Dto extends object> {
  private readonly rules: readonly (readonly [string, FieldRule])[]

  constructor(private readonly dto: Type<Dto>) {
    this.rules = getMetadataStorage()
      .getTargetValidationMetadatas(dto, '', false, false)
      .map((metadata) => [metadata.propertyName, (metadata.context as RuleContext).rule] as const)
  }

  /** Resolves to the same fields, now known to have the DTO's shape; unknown fields stay. */
  async assert(fields: Record<string, unknown>): Promise<Dto> {
    if (!this.accepts(fields)) await validationPipe.transform(fields, { type: 'body', metatype: this.dto })
    return fields as Dto
  }

  /** The synchronous verdict; what it does not accept is for `assert` to word. */
  accepts(fields: Record<string, unknown>): boolean {
    for (const [property, rule] of this.rules) {
      if (rule(fields[property], NO_PATH) !== undefined) return false
    }
    return true
  }
}

function errorOf(errors: readonly ValidationError[]): GatewayError {
  const [error] = errors
  const context = error?.contexts?.['rule'] as RuleContext | undefined
  const found = context?.rule(error?.value, error?.property ?? '')
  if (found === undefined) return new GatewayError('invalid_request', 'The request body is not valid.')
  return new GatewayError('invalid_request', found.message, { param: found.path, code: found.code })
}

/** What a caller may write into `metadata`: a rule for a value, a shape for an object. All else is refused. */
export interface MetadataShape {
  readonly [name: string]: FieldRule | MetadataShape
}

const NAMEABLE = /^[A-Za-z0-9_-]{1,64}$/
const mustBeObject = record()

/**
 * The members of `metadata` that the shape names, as nested plain objects; absent and null members are left out, so no
 * member is ever required. Throws `invalid_request` with `param` (`metadata.audio.rate`) for a value its rule refuses
 * and for every name the shape does not hold: nothing is dropped in silence.
 */
export function readMetadata(metadata: unknown, shape: MetadataShape, path = 'metadata'): Record<string, unknown> {
  const accepted: Record<string, unknown> = {}
  if (metadata === undefined || metadata === null) return accepted
  const members = checkFields(mustBeObject, metadata, path) as Record<string, unknown>
  for (const name of Object.keys(members)) {
    // Own names only: `constructor` and `__proto__` are inherited by every shape and allowed by none.
    const rule = Object.hasOwn(shape, name) ? shape[name] : undefined
    if (rule === undefined) throw unknownName(path, name, shape)
    const value = members[name]
    if (value === undefined || value === null) continue
    accepted[name] =
      typeof rule === 'function'
        ? checkFields(rule, value, `${path}.${name}`)
        : readMetadata(value, rule, `${path}.${name}`)
  }
  return accepted
}

/** A whole number out of a short list, such as sample rates. */
export const integerAmong = (allowed: readonly number[]): FieldRule => {
  const isInteger = integer()
  return (value, path) =>
    isInteger(value, path) ??
    (allowed.includes(Number(value))
      ? undefined
      : fieldError(path, 'invalid_value', `Invalid value for '${path}'. Supported values are: ${allowed.join(', ')}.`))
}

function checkFields(rule: FieldRule, value: unknown, path: string): unknown {
  const found = rule(value, path)
  if (found === undefined) return value
  throw new GatewayError('invalid_request', found.message, { param: found.path, code: found.code })
}

function unknownName(path: string, name: string, shape: MetadataShape): GatewayError {
  const supported = Object.keys(shape).join(', ')
  return new GatewayError(
    'invalid_request',
    `Unknown parameter: ${quoted(`${path}.${name}`)}. Supported parameters in '${path}' are: ${supported}.`,
    // A name of any length and content is not repeated as a path; the object that holds it is named instead.
    { param: NAMEABLE.test(name) ? `${path}.${name}` : path, code: 'unknown_parameter' },
  )
}
