import * as shared from './shared-rules.js'
import {
  anything,
  boolean,
  byType,
  type Check,
  decimal,
  integer,
  listOf,
  nullable,
  objectOf,
  oneOf,
  text,
  textOr,
} from './validation.js'

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

/** `session` of a `transcription_session.update`, which the beta dialect alone has. */
export const betaTranscriptionSession = objectOf({
  modalities: shared.modalities([['text'], ['audio', 'text']]),
  input_audio_format: betaFormat,
  input_audio_transcription: shared.transcription(),
  input_audio_noise_reduction: shared.noiseReduction,
  turn_detection: shared.turnDetection({}, {}, {}),
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

/** Everything of a transcription session but `id` and `expires_at`. */
export const betaTranscriptionDefaults = {
  input_audio_format: 'pcm16',
  input_audio_transcription: null,
  input_audio_noise_reduction: null,
  turn_detection: { type: 'server_vad', threshold: 0.5, prefix_padding_ms: 300, silence_duration_ms: 200 },
  include: null,
  client_secret: null,
}

const VOICES = ['alloy', 'ash', 'ballad', 'coral', 'echo', 'sage', 'shimmer', 'verse', 'marin', 'cedar']

const pcm = objectOf({ type: anything, rate: integer(24_000, 24_000) }, ['type'], { type: 'audio/pcm', rate: 24_000 })
const g711 = objectOf({ type: anything }, ['type'])
const format = byType({ 'audio/pcm': pcm, 'audio/pcmu': g711, 'audio/pcma': g711 })
const voice = textOr(oneOf(...VOICES), objectOf({ id: text() }, ['id']))

const modalities = shared.modalities([['text'], ['audio']])
const mcpTool: Check = (value) => value
const tools = listOf(byType({ function: shared.functionTool, mcp: mcpTool }))
const mcpChoice = objectOf({ type: anything, server_label: text(), name: nullable(text()) }, ['type', 'server_label'])
const toolChoice = textOr(shared.choiceWord, byType({ function: shared.functionChoice, mcp: mcpChoice }))
const reasoning = nullable(objectOf({ effort: oneOf('minimal', 'low', 'medium', 'high', 'xhigh') }))

const retention = objectOf({ type: anything, retention_ratio: decimal(0, 1), token_limits: anything }, [
  'type',
  'retention_ratio',
])
const truncation = textOr(oneOf('auto', 'disabled'), byType({ retention_ratio: retention }))

/** The newest models take words and languages to expect. */
const transcription = shared.transcription({
  delay: nullable(text()),
  languages: nullable(listOf(text())),
  keywords: nullable(listOf(text())),
})
const idleTimeout = { idle_timeout_ms: nullable(integer(5000, 30_000)) }

const audioInput = objectOf({
  format,
  transcription,
  noise_reduction: shared.noiseReduction,
  turn_detection: shared.turnDetection(idleTimeout, { idle_timeout_ms: null }),
})

const gaCommonFields = {
  output_modalities: modalities,
  instructions: shared.instructions,
  tools,
  tool_choice: toolChoice,
  max_output_tokens: shared.outputLimit,
  prompt: shared.prompt,
  reasoning,
  parallel_tool_calls: boolean,
}

/** `session` of a `session.update` in the GA dialect. */
export const gaSession = objectOf(
  {
    ...gaCommonFields,
    type: oneOf('realtime', 'transcription'),
    model: text(),
    tracing: shared.tracing,
    truncation,
    include: shared.include,
    audio: objectOf({ input: audioInput, output: objectOf({ format, voice, speed: shared.speed }) }),
  },
  ['type'],
)

/** `session` of a `session.update` in a transcription session of the GA dialect. */
export const gaTranscriptionSession = objectOf(
  {
    type: oneOf('realtime', 'transcription'),
    include: shared.include,
    audio: objectOf({
      input: objectOf({
        format,
        transcription,
        noise_reduction: shared.noiseReduction,
        turn_detection: shared.turnDetection(idleTimeout, { idle_timeout_ms: null }, {}),
      }),
    }),
  },
  ['type'],
)

/** `response` of a `response.create` in the GA dialect; `input` is judged item by item. */
export const gaResponse = objectOf({
  ...gaCommonFields,
  audio: objectOf({ output: objectOf({ format, voice }) }),
  conversation: shared.conversation,
  metadata: shared.metadata,
  input: listOf(anything),
})

const GA_TURN_DETECTION = {
  type: 'server_vad',
  threshold: 0.5,
  prefix_padding_ms: 300,
  silence_duration_ms: 200,
  idle_timeout_ms: null,
}

const GA_INPUT = { format: { type: 'audio/pcm', rate: 24_000 }, transcription: null, noise_reduction: null }

/** Everything of the session but `id`, `model` and `expires_at`. */
export const gaDefaults = {
  output_modalities: ['audio'],
  instructions: '',
  tools: [],
  tool_choice: 'auto',
  max_output_tokens: 'inf',
  tracing: null,
  truncation: 'auto',
  prompt: null,
  audio: {
    input: { ...GA_INPUT, turn_detection: { ...GA_TURN_DETECTION, create_response: true, interrupt_response: true } },
    output: { format: { type: 'audio/pcm', rate: 24_000 }, voice: 'alloy', speed: 1 },
  },
  include: null,
}

/** Everything of a transcription session but `id` and `expires_at`. */
export const gaTranscriptionDefaults = {
  audio: { input: { ...GA_INPUT, turn_detection: GA_TURN_DETECTION } },
  include: null,
}
