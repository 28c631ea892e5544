import { Field } from '../core/dto.js'
import { anyOf, anyRecord, decimal, oneOf, optional, record, required, text } from '../core/validation-rules.js'
import { AUDIO_FORMATS, DEFAULT_AUDIO_FORMAT } from '../dialects/speech-formats.js'
import type { SpeechFields } from '../providers/contract.js'

const FORMATS = Object.keys(AUDIO_FORMATS)

/** The specification's speech request; all other fields are relayed to the upstream. */
export class SpeechRequestDto implements SpeechFields {
  @Field(required(text({ allowBlank: false })), {
    type: 'string',
    description: 'TTS model identifier',
    example: 'tts-1',
  })
  readonly model!: string

  @Field(required(text({ allowBlank: false })), {
    type: 'string',
    description: 'Text to synthesize; white space alone is empty',
  })
  readonly input!: string

  @Field(
    required(
      anyOf(
        'a string or an object {id}',
        text({ allowBlank: false }),
        record({ id: required(text({ allowBlank: false })) }),
      ),
    ),
    {
      oneOf: [{ type: 'string' }, { type: 'object', required: ['id'], properties: { id: { type: 'string' } } }],
      description: 'Voice ID: alloy, echo, fable, onyx, nova, shimmer, or one the provider knows',
      example: 'alloy',
    },
  )
  readonly voice!: string | { readonly id: string }

  @Field(optional(text()), {
    type: 'string',
    description: 'Style instructions; only models of the style-capable class receive them',
  })
  readonly instructions?: string | null

  @Field(optional(oneOf(FORMATS, 'invalid_audio_format')), {
    enum: FORMATS,
    default: DEFAULT_AUDIO_FORMAT,
  })
  readonly response_format?: string | null

  @Field(optional(decimal({ minimum: 0.25, maximum: 4 })), {
    type: 'number',
    minimum: 0.25,
    maximum: 4,
    default: 1,
  })
  readonly speed?: number | null

  @Field(optional(oneOf(['audio', 'sse'])), {
    enum: ['audio', 'sse'],
    default: 'audio',
    description: 'sse = speech.audio.delta and speech.audio.done events',
  })
  readonly stream_format?: string | null

  @Field(optional(anyRecord), {
    type: 'object',
    additionalProperties: true,
    description: 'Provider-specific parameters; never sent to P1',
  })
  readonly metadata?: Record<string, unknown> | null
}
