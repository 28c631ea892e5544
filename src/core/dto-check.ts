import { type Type, ValidationPipe } from '@nestjs/common'
import { getMetadataStorage, type ValidationError } from 'class-validator'
import type { RuleContext } from './field.decorator.js'
import { GatewayError } from './gateway-error.js'
import { type FieldRule, NO_PATH } from './validation-rules.js'

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
