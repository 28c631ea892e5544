import { EventField, EventType } from './event-field.decorator.js'
import { EVENT_ID, RESPONSE } from './realtime-schemas.js'

const TYPE = 'response.create'

/** Asks for an answer (specification: Client events). */
export class ResponseCreateDto {
  @EventType(TYPE)
  readonly type!: typeof TYPE

  @EventField(TYPE, EVENT_ID)
  readonly event_id?: string | null

  @EventField(TYPE, RESPONSE)
  readonly response?: Readonly<Record<string, unknown>> | null
}
