import { EventField, EventType } from './event-field.decorator.js'
import { EVENT_ID } from './realtime-schemas.js'

const TYPE = 'input_audio_buffer.append'

/** Sends audio (specification: Client events); the format is the session's. */
export class InputAudioAppendDto {
  @EventType(TYPE)
  readonly type!: typeof TYPE

  @EventField(TYPE, EVENT_ID)
  readonly event_id?: string | null

  @EventField(TYPE, { type: 'string', format: 'byte', description: 'Base64 with padding, at most 15 MiB decoded' })
  readonly audio!: string
}
