import {
  anyOf,
  decimal,
  type FieldRule,
  integer,
  list,
  oneOf,
  optional,
  record,
  required,
  text,
} from '../../core/validation-rules.js'

/** Ranges are left to the upstream, which knows its models, except where it never sees the value. */
const instructions = optional(text())
const tools = optional(list(record({ type: optional(text()), name: optional(text()), parameters: optional(record()) })))
const toolChoice = optional(anyOf('a string or an object', text(), record()))
const outputLimit = optional(anyOf("an integer or 'inf'", integer(), oneOf(['inf'])))
const modalities = optional(list(oneOf(['text', 'audio']), { minimumItems: 1 }))
const transcription = optional(
  record({ model: optional(text()), language: optional(text()), prompt: optional(text()) }),
)
const noiseReduction = optional(record({ type: optional(text()) }))
const speed = optional(decimal())

const turnDetection = optional(
  record({
    type: optional(oneOf(['server_vad', 'semantic_vad'])),
    threshold: optional(decimal()),
    prefix_padding_ms: optional(integer()),
    silence_duration_ms: optional(integer()),
  }),
)

/** GA has no temperature, so nobody else would judge it. */
const temperature = optional(decimal({ minimum: 0.6, maximum: 1.2 }))

const betaFormat = optional(oneOf(['pcm16', 'g711_ulaw', 'g711_alaw']))
const betaOutput = { modalities, voice: optional(text()), output_audio_format: betaFormat, temperature }
const betaInput = {
  input_audio_format: betaFormat,
  input_audio_transcription: transcription,
  input_audio_noise_reduction: noiseReduction,
  turn_detection: turnDetection,
}

export const betaSession: FieldRule = required(
  record({
    ...betaOutput,
    ...betaInput,
    instructions,
    speed,
    tools,
    tool_choice: toolChoice,
    max_response_output_tokens: outputLimit,
  }),
)

export const betaTranscriptionSession: FieldRule = required(record({ ...betaInput, modalities }))

export const betaResponse: FieldRule = optional(
  record({
    ...betaOutput,
    instructions,
    tools,
    tool_choice: toolChoice,
    max_output_tokens: outputLimit,
    max_response_output_tokens: outputLimit,
    input: optional(list(record())),
    metadata: optional(record()),
  }),
)

const gaFormat = optional(record({ type: oneOf(['audio/pcm', 'audio/pcmu', 'audio/pcma']), rate: optional(integer()) }))
const gaOutputAudio = optional(
  record({ format: gaFormat, voice: optional(anyOf('a string or an object', text(), record())), speed }),
)
const gaInputAudio = optional(
  record({ format: gaFormat, transcription, noise_reduction: noiseReduction, turn_detection: turnDetection }),
)

export const gaSession: FieldRule = required(
  record({
    type: required(oneOf(['realtime', 'transcription'])),
    output_modalities: modalities,
    audio: optional(record({ input: gaInputAudio, output: gaOutputAudio })),
    instructions,
    tools,
    tool_choice: toolChoice,
    max_output_tokens: outputLimit,
  }),
)

export const gaResponse: FieldRule = optional(
  record({
    output_modalities: modalities,
    audio: optional(record({ output: gaOutputAudio })),
    instructions,
    tools,
    tool_choice: toolChoice,
    max_output_tokens: outputLimit,
    input: optional(list(record())),
    metadata: optional(record()),
  }),
)
