import { Field } from '../core/dto.js'
import { anyOf, decimal, named, oneOf, optional, record, required, text } from '../core/validation-rules.js'
import { AUDIO_FORMAT_NAMES, DEFAULT_AUDIO_FORMAT } from '../dialects/speech-formats.js'
import type { SpeechFields } from '../providers/contract.js'

/** The specification's speech request; all other fields are relayed to the upstream. */
export class SpeechRequestDto implements SpeechFields {
  @Field(required(text({ allowBlank: false })), {
    description: 'TTS model identifier',
    example: 'tts-1',
  })
  readonly model!: string

  @Field(required(text({ allowBlank: false })), {
    description: 'Text to synthesize; white space alone is empty',
  })
  readonly input!: string

  @Field(
    required(
      anyOf(
        'a string or an object {id}',
        text({ allowBlank: false }),
        named('Voice', 'A voice by its id', record({ id: required(text({ allowBlank: false })) })),
      ),
    ),
    {
      description: 'Voice ID: alloy, echo, fable, onyx, nova, shimmer, or one the provider knows',
      example: 'alloy',
    },
  )
  readonly voice!: string | { readonly id: string }

  @Field(optional(text()), {
    description: 'Style instructions; only models of the style-capable class receive them',
  })
  readonly instructions?: string | null

  @Field(optional(named('SpeechFormat', 'Format of the audio', oneOf(AUDIO_FORMAT_NAMES, 'invalid_audio_format'))), {
    description: 'Of the audio',
    default: DEFAULT_AUDIO_FORMAT,
  })
  readonly response_format?: string | null

  @Field(optional(decimal({ minimum: 0.25, maximum: 4 })), {
    description: 'How fast it is spoken',
    default: 1,
  })
  readonly speed?: number | null

  @Field(optional(named('SpeechStreamFormat', 'Form of the stream', oneOf(['audio', 'sse']))), {
    default: 'audio',
    description: 'sse = speech.audio.delta and speech.audio.done events',
  })
  readonly stream_format?: string | null

  @Field(optional(named('SpeechMetadata', 'Parameters of one provider', record({}))), {
    description: 'Provider-specific parameters; never sent to P1',
  })
  readonly metadata?: Record<string, unknown> | null
}
