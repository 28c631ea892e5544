import { AlsoReads, Field } from '../core/dto.js'
import { described, TEXT } from '../core/json-schema.js'
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
  named,
  oneOf,
  optional,
  readable,
  record,
  required,
  shown,
  text,
} from '../core/validation-rules.js'
import type { ChatFields } from '../dialects/openai-wire.js'
import { CHAT_AUDIO_FORMATS } from '../dialects/speech-formats.js'
import { ESTIMATED_FIELDS } from '../limits/estimate-usage.js'

const nonBlank = text({ allowBlank: false })

/** Upstream reads plain base64; a data URL would be billed as noise or refused after the upload. */
const plainBase64 = shown(described('Base64 without a data: prefix', nonBlank.schema), (value, path) => {
  const shape = nonBlank(value, path)
  if (shape !== undefined || typeof value !== 'string') return shape
  return value.startsWith('data:')
    ? fieldError(path, 'invalid_value', `Invalid '${path}': expected plain base64 without a data: prefix.`)
    : undefined
})

/** The payload of a content part of type `input_audio`. */
const inputAudio: FieldRule = record({
  data: required(plainBase64),
  format: required(oneOf(['wav', 'mp3'], 'invalid_audio_format')),
})

/** An image or a file: its place is read to estimate what it costs. */
const medium = readable('url', 'file_data')

const typed = record({ type: required(text()), input_audio: anything, image_url: medium, file: medium })
const requiredAudio = required(inputAudio)

/** Only what cannot be right is refused here; roles, part types and extra fields are the upstream's business. */
const contentPart = shown(
  {
    ...typed.schema,
    title: 'ChatContentPart',
    description: 'A text, an image, a file or audio; checked where it is audio',
  },
  (value, path) => {
    const shape = typed(value, path)
    if (shape !== undefined || !isRecord(value) || value['type'] !== 'input_audio') return shape
    return requiredAudio(value['input_audio'], `${path}.input_audio`)
  },
)

const contentParts = list(contentPart)
const contentText = anyOf('a string or an array', text())

const content = shown({ anyOf: [TEXT, contentParts.schema ?? {}] }, (value, path) =>
  Array.isArray(value) ? contentParts(value, path) : contentText(value, path),
)

const message = named(
  'ChatMessage',
  'One turn of the conversation',
  record({ role: required(nonBlank), content: optional(content) }),
)

const toolFunction = record({
  name: required(nonBlank),
  description: optional(text()),
  parameters: optional(anyRecord),
})

const typedTool = record({ type: required(nonBlank), function: anything })
const requiredFunction = required(toolFunction)

/** `custom` tools exist upstream beside the specification's `function`; they are relayed unchecked. */
const tool = shown(
  { ...typedTool.schema, title: 'ChatTool', description: 'A tool the model may call; checked where it is a function' },
  (value, path) => {
    const shape = typedTool(value, path)
    if (shape !== undefined || !isRecord(value) || value['type'] !== 'function') return shape
    return requiredFunction(value['function'], `${path}.function`)
  },
)

const voice = anyOf(
  'a string or an object {id}',
  nonBlank,
  named('ChatVoice', 'A voice by its id', record({ id: required(text()) })),
)

const audioOutput = named(
  'AudioOutput',
  'Voice and format of audio output',
  record({
    voice: required(voice),
    format: required(
      named('ChatAudioFormat', 'Format of audio output', oneOf(CHAT_AUDIO_FORMATS, 'invalid_audio_format')),
    ),
  }),
)

const streamOptions = named('StreamOptions', 'How a stream is', record({ include_usage: optional(flag) }))

/** The specification's chat completion; all other fields are relayed unchanged. */
@AlsoReads(...ESTIMATED_FIELDS)
export class ChatRequestDto implements ChatFields {
  @Field(required(nonBlank), { description: 'Model identifier', example: 'gpt-4o-mini' })
  readonly model!: string

  @Field(required(list(message, { minimumItems: 1 })), { description: 'The conversation so far' })
  readonly messages!: readonly unknown[]

  @Field(optional(list(tool)), { description: 'What the model may call' })
  readonly tools?: readonly unknown[] | null

  @Field(optional(flag), { default: false, description: 'Events instead of one answer' })
  readonly stream?: boolean | null

  @Field(optional(streamOptions), {
    description: 'Of a stream; include_usage asks for a last event with the usage',
  })
  readonly stream_options?: Readonly<Record<string, unknown>> | null

  @Field(optional(integer({ minimum: 1 })), { description: 'The longest answer' })
  readonly max_tokens?: number | null

  @Field(optional(decimal({ minimum: 0, maximum: 2 })), { description: 'Sampling temperature' })
  readonly temperature?: number | null

  @Field(optional(list(text())), { description: 'Requests audio output together with audio' })
  readonly modalities?: readonly string[] | null

  @Field(optional(audioOutput), { description: 'Voice and format of audio output' })
  readonly audio?: Readonly<Record<string, unknown>> | null
}
