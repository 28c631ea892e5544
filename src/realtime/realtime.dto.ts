import { Field } from '../core/dto.js'
import type { Schema } from '../core/json-schema.js'
import { oneOf, required } from '../core/validation-rules.js'
import { rulesOf } from '../dialects/realtime/client-events.js'

/** A field of a client event: checked by the rule that sessions apply, documented by the schema. */
const EventField =
  (type: string, schema: Schema): PropertyDecorator =>
  (target, name) => {
    const rule = rulesOf('beta', type)?.[String(name)]
    if (rule === undefined) throw new Error(`${type} has no rule for ${String(name)}`)
    // What is shown is the specification's form of the event; the rule lets other forms through as well.
    Field((value, path) => rule(value, path), schema)(target, name)
  }

/** The `type` member, with its only value. */
const EventType = (type: string): PropertyDecorator => Field(required(oneOf([type])), { type: 'string', enum: [type] })

/** Schemas that client events share, with the values of the specification (Events). */

const NULL: Schema = { type: 'null' }

const EVENT_ID: Schema = {
  type: 'string',
  description: 'Chosen by the client; an error caused by the event repeats it as error.event_id',
}

const MODALITIES: Schema = {
  type: 'array',
  minItems: 1,
  items: { type: 'string', enum: ['text', 'audio'] },
  description: 'What an answer consists of; audio always comes with its transcript',
}

/** pcm16 is 24 kHz, 16 bit, mono. */
const AUDIO_FORMAT: Schema = { type: 'string', enum: ['pcm16', 'g711_ulaw', 'g711_alaw'], default: 'pcm16' }

const TEMPERATURE: Schema = { type: 'number', minimum: 0.6, maximum: 1.2 }

const TOOLS: Schema = {
  type: 'array',
  items: {
    type: 'object',
    additionalProperties: true,
    properties: {
      type: { type: 'string' },
      name: { type: 'string' },
      parameters: { type: 'object', additionalProperties: true },
    },
  },
}

const TOOL_CHOICE: Schema = {
  oneOf: [{ type: 'string', default: 'auto' }, { type: 'object', additionalProperties: true }, NULL],
}

const OUTPUT_LIMIT: Schema = { oneOf: [{ type: 'integer' }, { type: 'string', enum: ['inf'] }, NULL] }

const TURN_DETECTION: Schema = {
  type: 'object',
  additionalProperties: true,
  properties: {
    type: { type: 'string', enum: ['server_vad', 'semantic_vad'] },
    threshold: { type: 'number' },
    prefix_padding_ms: { type: 'integer' },
    silence_duration_ms: { type: 'integer' },
  },
}

const TRANSCRIPTION: Schema = {
  type: 'object',
  additionalProperties: true,
  properties: { model: { type: 'string' }, language: { type: 'string' }, prompt: { type: 'string' } },
}

const NOISE_REDUCTION: Schema = {
  type: 'object',
  additionalProperties: true,
  properties: { type: { type: 'string' } },
}

/** The specification's session; members that are not listed are passed on. */
const SESSION: Schema = {
  type: 'object',
  additionalProperties: true,
  properties: {
    modalities: MODALITIES,
    instructions: { type: 'string' },
    voice: { type: 'string' },
    input_audio_format: AUDIO_FORMAT,
    output_audio_format: AUDIO_FORMAT,
    input_audio_transcription: { oneOf: [TRANSCRIPTION, NULL] },
    turn_detection: { oneOf: [TURN_DETECTION, NULL], description: 'null: the client commits its audio itself' },
    temperature: TEMPERATURE,
    tools: TOOLS,
    tool_choice: TOOL_CHOICE,
    input_audio_noise_reduction: { oneOf: [NOISE_REDUCTION, NULL] },
    speed: { type: 'number' },
    max_response_output_tokens: OUTPUT_LIMIT,
  },
}

/** The settings of the session that a single response may override. */
const RESPONSE: Schema = {
  type: 'object',
  additionalProperties: true,
  properties: {
    modalities: MODALITIES,
    instructions: { type: 'string' },
    voice: { type: 'string' },
    output_audio_format: AUDIO_FORMAT,
    temperature: TEMPERATURE,
    tools: TOOLS,
    tool_choice: TOOL_CHOICE,
    max_output_tokens: OUTPUT_LIMIT,
    max_response_output_tokens: OUTPUT_LIMIT,
    input: { type: 'array', items: { type: 'object', additionalProperties: true } },
    metadata: { type: 'object', additionalProperties: true },
  },
}

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

const CREATE_EVENT = 'response.create'

/** Requests a response (specification: Client events). */
export class ResponseCreateDto {
  @EventType(CREATE_EVENT)
  readonly type!: typeof CREATE_EVENT

  @EventField(CREATE_EVENT, EVENT_ID)
  readonly event_id?: string | null

  @EventField(CREATE_EVENT, RESPONSE)
  readonly response?: Readonly<Record<string, unknown>> | null
}

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
