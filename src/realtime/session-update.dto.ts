import { EventField, EventType } from './event-field.decorator.js'
import { EVENT_ID, SESSION } from './realtime.dto.js'

const UPDATE_EVENT = 'session.update'

/** Configures the session (specification: Client events); only the members that are given change. */
export class SessionUpdateDto {
  @EventType(UPDATE_EVENT)
  readonly type!: typeof UPDATE_EVENT

  @EventField(UPDATE_EVENT, EVENT_ID)
  readonly event_id?: string | null

  @EventField(UPDATE_EVENT, SESSION)
  readonly session!: Readonly<Record<string, unknown>>
}
