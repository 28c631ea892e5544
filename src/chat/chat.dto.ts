import { AlsoReads, Field } from '../core/dto.js'
import {
  anyOf,
  anyRecord,
  anything,
  decimal,
  fieldError,
  type FieldRule,
  flag,
  integer,
  isRecord,
  list,
  oneOf,
  optional,
  readable,
  record,
  required,
  text,
} from '../core/validation-rules.js'
import type { ChatFields } from '../dialects/openai-wire.js'
import { ESTIMATED_FIELDS } from '../limits/estimate-usage.js'

/** Upstream reads plain base64; a data URL would be billed as noise or refused after the upload. */
const plainBase64: FieldRule = (value, path) => {
  const shape = text({ allowBlank: false })(value, path)
  if (shape !== undefined || typeof value !== 'string') return shape
  return value.startsWith('data:')
    ? fieldError(path, 'invalid_value', `Invalid '${path}': expected plain base64 without a data: prefix.`)
    : undefined
}

/** The payload of a content part of type `input_audio`. */
const inputAudio: FieldRule = record({
  data: required(plainBase64),
  format: required(oneOf(['wav', 'mp3'], 'invalid_audio_format')),
})

const AUDIO_OUTPUT_FORMATS = ['wav', 'aac', 'mp3', 'flac', 'opus', 'pcm16']

/** An image or a file: its place is read to estimate what it costs. */
const medium = readable('url', 'file_data')

const typed = record({ type: required(text()), input_audio: anything, image_url: medium, file: medium })
const requiredAudio = required(inputAudio)

/** Only what cannot be right is refused here; roles, part types and extra fields are the upstream's business. */
const contentPart: FieldRule = (value, path) => {
  const shape = typed(value, path)
  if (shape !== undefined || !isRecord(value) || value['type'] !== 'input_audio') return shape
  return requiredAudio(value['input_audio'], `${path}.input_audio`)
}

const contentParts = list(contentPart)
const contentText = anyOf('a string or an array', text())

const content: FieldRule = (value, path) =>
  Array.isArray(value) ? contentParts(value, path) : contentText(value, path)

const message = record({ role: required(text({ allowBlank: false })), content: optional(content) })

const toolFunction = record({
  name: required(text({ allowBlank: false })),
  description: optional(text()),
  parameters: optional(anyRecord),
})

const typedTool = record({ type: required(text({ allowBlank: false })), function: anything })
const requiredFunction = required(toolFunction)

/** `custom` tools exist upstream beside the specification's `function`; they are relayed unchecked. */
const tool: FieldRule = (value, path) => {
  const shape = typedTool(value, path)
  if (shape !== undefined || !isRecord(value) || value['type'] !== 'function') return shape
  return requiredFunction(value['function'], `${path}.function`)
}

const voice = anyOf('a string or an object {id}', text({ allowBlank: false }), record({ id: required(text()) }))

const object = { type: 'object', additionalProperties: true } as const

/** The specification's chat completion; all other fields are relayed unchanged. */
@AlsoReads(...ESTIMATED_FIELDS)
export class ChatRequestDto implements ChatFields {
  @Field(required(text({ allowBlank: false })), {
    type: 'string',
    description: 'Model identifier',
    example: 'gpt-4o-mini',
  })
  readonly model!: string

  @Field(required(list(message, { minimumItems: 1 })), {
    type: 'array',
    minItems: 1,
    items: { ...object, required: ['role'], properties: { role: { type: 'string' }, content: {} } },
  })
  readonly messages!: readonly unknown[]

  @Field(optional(list(tool)), {
    type: 'array',
    items: {
      ...object,
      required: ['type'],
      properties: { type: { type: 'string', example: 'function' }, function: object },
    },
  })
  readonly tools?: readonly unknown[] | null

  @Field(optional(flag), { type: 'boolean', default: false })
  readonly stream?: boolean | null

  @Field(optional(record({ include_usage: optional(flag) })), {
    ...object,
    properties: { include_usage: { type: 'boolean' } },
  })
  readonly stream_options?: Readonly<Record<string, unknown>> | null

  @Field(optional(integer({ minimum: 1 })), { type: 'integer', minimum: 1 })
  readonly max_tokens?: number | null

  @Field(optional(decimal({ minimum: 0, maximum: 2 })), { type: 'number', minimum: 0, maximum: 2 })
  readonly temperature?: number | null

  @Field(optional(list(text())), {
    type: 'array',
    items: { type: 'string' },
    description: 'Requests audio output together with audio',
  })
  readonly modalities?: readonly string[] | null

  @Field(
    optional(record({ voice: required(voice), format: required(oneOf(AUDIO_OUTPUT_FORMATS, 'invalid_audio_format')) })),
    {
      ...object,
      description: 'Voice and format of audio output',
      properties: { voice: {}, format: { type: 'string', enum: AUDIO_OUTPUT_FORMATS } },
    },
  )
  readonly audio?: Readonly<Record<string, unknown>> | null
}
