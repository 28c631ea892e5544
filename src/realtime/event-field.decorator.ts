import { Field, type FieldSchema } from '../core/field.decorator.js'
import { oneOf, required } from '../core/validation-rules.js'
import { rulesOf } from '../dialects/realtime/client-event-rules.js'

/** A field of a client event: judged by the very rule that sessions apply, documented by the schema. */
export const EventField =
  (type: string, schema: FieldSchema): PropertyDecorator =>
  (target, name) => {
    const rule = rulesOf('beta', type)?.[String(name)]
    if (rule === undefined) throw new Error(`${type} has no rule for ${String(name)}`)
    Field(rule, schema)(target, name)
  }

/** The `type` that makes the event what it is. */
export const EventType = (type: string): PropertyDecorator =>
  Field(required(oneOf([type])), { type: 'string', enum: [type] })
