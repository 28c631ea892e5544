import * as shared from './shared-rules.js'
import { anything, byType, decimal, listOf, objectOf, oneOf, text, textOr } from './validation.js'

const betaFormat = oneOf('pcm16', 'g711_ulaw', 'g711_alaw')

const betaCommonFields = {
  modalities: shared.modalities([['text'], ['audio', 'text']]),
  instructions: shared.instructions,
  voice: oneOf('alloy', 'ash', 'ballad', 'coral', 'echo', 'sage', 'shimmer', 'verse'),
  output_audio_format: betaFormat,
  temperature: decimal(0.6, 1.2),
  max_response_output_tokens: shared.outputLimit,
  tools: listOf(byType({ function: shared.functionTool })),
  tool_choice: textOr(shared.choiceWord, byType({ function: shared.functionChoice })),
}

/** `session` of a `session.update` in the beta dialect. */
export const betaSession = objectOf({
  ...betaCommonFields,
  model: text(),
  input_audio_format: betaFormat,
  input_audio_transcription: shared.transcription(),
  input_audio_noise_reduction: shared.noiseReduction,
  turn_detection: shared.turnDetection(),
  speed: shared.speed,
  tracing: shared.tracing,
  include: shared.include,
  client_secret: anything,
})

/** `response` of a `response.create` in the beta dialect; `input` is judged item by item. */
export const betaResponse = objectOf({
  ...betaCommonFields,
  max_output_tokens: shared.outputLimit,
  conversation: shared.conversation,
  metadata: shared.metadata,
  input: listOf(anything),
})

/** Everything of the session but `id`, `model` and `expires_at`. */
export const betaDefaults = {
  modalities: ['audio', 'text'],
  instructions: '',
  voice: 'alloy',
  turn_detection: {
    type: 'server_vad',
    threshold: 0.5,
    prefix_padding_ms: 300,
    silence_duration_ms: 200,
    create_response: true,
    interrupt_response: true,
  },
  input_audio_format: 'pcm16',
  output_audio_format: 'pcm16',
  input_audio_transcription: null,
  input_audio_noise_reduction: null,
  tool_choice: 'auto',
  temperature: 0.8,
  max_response_output_tokens: 'inf',
  tools: [],
  speed: 1,
  tracing: null,
  include: null,
  client_secret: null,
}
