import { EventField, EventType } from './event-field.decorator.js'
import { EVENT_ID, SESSION } from './realtime-schemas.js'

const TYPE = 'session.update'

/** Configures the session (specification: Client events); only the members that are given change. */
export class SessionUpdateDto {
  @EventType(TYPE)
  readonly type!: typeof TYPE

  @EventField(TYPE, EVENT_ID)
  readonly event_id?: string | null

  @EventField(TYPE, SESSION)
  readonly session!: Readonly<Record<string, unknown>>
}
