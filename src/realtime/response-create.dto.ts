import { EventField, EventType } from './event-field.decorator.js'
import { EVENT_ID, RESPONSE } from './realtime.dto.js'

const CREATE_EVENT = 'response.create'

/** Asks for an answer (specification: Client events). */
export class ResponseCreateDto {
  @EventType(CREATE_EVENT)
  readonly type!: typeof CREATE_EVENT

  @EventField(CREATE_EVENT, EVENT_ID)
  readonly event_id?: string | null

  @EventField(CREATE_EVENT, RESPONSE)
  readonly response?: Readonly<Record<string, unknown>> | null
}
