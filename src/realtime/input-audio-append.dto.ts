import { EventField, EventType } from './event-field.decorator.js'
import { EVENT_ID } from './realtime.dto.js'

const APPEND_EVENT = 'input_audio_buffer.append'

/** Sends audio (specification: Client events); the format is the session's. */
export class InputAudioAppendDto {
  @EventType(APPEND_EVENT)
  readonly type!: typeof APPEND_EVENT

  @EventField(APPEND_EVENT, EVENT_ID)
  readonly event_id?: string | null

  @EventField(APPEND_EVENT, {
    type: 'string',
    format: 'byte',
    description: 'Base64 with padding, at most 15 MiB decoded',
  })
  readonly audio!: string
}
