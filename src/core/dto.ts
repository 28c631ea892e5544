import { GatewayError } from './gateway-error.js'
import { quoted } from './message-text.js'
import { fault, type FieldRule, integer, record } from './validation-rules.js'

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
  const members = judge(mustBeObject, metadata, path) as Record<string, unknown>
  for (const name of Object.keys(members)) {
    // Own names only: `constructor` and `__proto__` are inherited by every shape and allowed by none.
    const rule = Object.hasOwn(shape, name) ? shape[name] : undefined
    if (rule === undefined) throw unknownName(path, name, shape)
    const value = members[name]
    if (value === undefined || value === null) continue
    accepted[name] =
      typeof rule === 'function' ? judge(rule, value, `${path}.${name}`) : readMetadata(value, rule, `${path}.${name}`)
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
      : fault(path, 'invalid_value', `Invalid value for '${path}'. Supported values are: ${allowed.join(', ')}.`))
}

function judge(rule: FieldRule, value: unknown, path: string): unknown {
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
