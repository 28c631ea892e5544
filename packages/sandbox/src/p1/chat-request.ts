import { isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import { estimateTokens } from '../server/magic-text.js'
import { reject } from '../server/openai-rejection.js'
import { judgeFields } from './chat-field-rules.js'
import { judgeMessages } from './chat-message-rules.js'
import { chatFamily, type P1Family } from './p1-models.js'
import { judgeTools } from './tool-rules.js'
import { missing, object, oneOf, quotedList, string } from './value-rules.js'

const CONTEXT_TOKENS = 128_000
const AUDIO_FORMATS = ['wav', 'aac', 'mp3', 'flac', 'opus', 'pcm16'] as const

export type ChatAudioFormat = (typeof AUDIO_FORMATS)[number]

/** A request that was found good. */
export interface ChatRequest {
  readonly body: JsonObject
  readonly model: string
  readonly family: P1Family
  readonly messages: readonly JsonObject[]
  readonly stream: boolean
  /** Set when the answer is to be spoken. */
  readonly audioFormat: ChatAudioFormat | undefined
  /** What the last user message says. */
  readonly callerText: string
}

/** Judges a request as strictly as the upstream. Throws OpenAiRejection. */
export function judgeChatRequest(
  body: JsonObject,
  options: { acceptUnknownFields: boolean; knowsAudio: (id: string) => boolean },
): ChatRequest {
  const model = body['model']
  if (model === undefined || model === '') reject('you must provide a model parameter')
  judgeFields(body, options.acceptUnknownFields)
  if (body['messages'] === undefined) missing('messages')
  const family = chatFamily(textOf(model))
  judgeModelLimits(body, family)
  judgeMessages(listOf(body['messages']), family, options.knowsAudio)
  judgeTools(body)
  const audioFormat = judgeAudioOutput(body, family)
  judgeJsonMode(body)
  judgeLength(body)
  return {
    body,
    model: textOf(model),
    family,
    messages: objectsOf(body['messages']),
    stream: body['stream'] === true,
    audioFormat,
    callerText: lastUserText(body),
  }
}

/** The text of the last user message, its text parts joined; empty when there is none. */
export function lastUserText(body: JsonObject): string {
  const message = objectsOf(body['messages']).findLast((entry) => entry['role'] === 'user')
  return contentText(message?.['content'])
}

export function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  return objectsOf(content)
    .map((part) => textOf(part['text']))
    .filter((text) => text !== '')
    .join(' ')
}

function judgeModelLimits(body: JsonObject, family: P1Family): void {
  if (family === 'reasoning-chat' && typeof body['max_tokens'] === 'number') {
    const hint = "Use 'max_completion_tokens' instead."
    reject(
      `Unsupported parameter: 'max_tokens' is not supported with this model. ${hint}`,
      'max_tokens',
      'unsupported_parameter',
    )
  }
}

function judgeAudioOutput(body: JsonObject, family: P1Family): ChatAudioFormat | undefined {
  const wantsAudio = listOf(body['modalities']).includes('audio')
  if (wantsAudio && family !== 'audio-chat') {
    const text = "Unsupported value: 'modalities[0]' does not support 'audio' with this model."
    reject(text, 'modalities', 'unsupported_value')
  }
  if (family === 'audio-chat' && !wantsAudio && !hasAudioInput(body)) {
    const message = 'This model requires that either input content or output modality contain audio.'
    reject(message, 'model', 'invalid_value')
  }
  const audio = body['audio']
  if (!wantsAudio) return undefined
  if (!isObject(audio)) missing('audio')
  return judgeAudioParameters(audio, body['stream'] === true)
}

function judgeAudioParameters(audio: JsonObject, stream: boolean): ChatAudioFormat {
  if (audio['voice'] === undefined) missing('audio.voice')
  if (audio['format'] === undefined) missing('audio.format')
  if (isObject(audio['voice'])) string()(audio['voice']['id'], 'audio.voice.id')
  else string()(audio['voice'], 'audio.voice')
  object(audio, 'audio')
  oneOf(...AUDIO_FORMATS)(audio['format'], 'audio.format')
  const format = audio['format'] as ChatAudioFormat
  if (stream && format !== 'pcm16') {
    const supported = `Supported values are: ${quotedList(['pcm16'], 'and')}.`
    const message = `Unsupported value: 'audio.format' does not support '${format}' when stream=true. ${supported}`
    reject(message, 'audio.format', 'unsupported_value')
  }
  return format
}

function hasAudioInput(body: JsonObject): boolean {
  return objectsOf(body['messages']).some(
    (message) =>
      isObject(message['audio']) || objectsOf(message['content']).some((part) => part['type'] === 'input_audio'),
  )
}

function judgeJsonMode(body: JsonObject): void {
  const format = body['response_format']
  if (!isObject(format) || format['type'] !== 'json_object') return
  if (objectsOf(body['messages']).some((message) => /json/i.test(contentText(message['content'])))) return
  const rule = "'messages' must contain the word 'json' in some form"
  reject(`${rule}, to use 'response_format' of type 'json_object'.`, 'messages')
}

function judgeLength(body: JsonObject): void {
  const tokens = objectsOf(body['messages']).reduce(
    (sum, entry) => sum + estimateTokens(contentText(entry['content'])),
    0,
  )
  if (tokens <= CONTEXT_TOKENS) return
  const limit = `This model's maximum context length is ${CONTEXT_TOKENS} tokens.`
  const advice = `However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`
  reject(`${limit} ${advice}`, 'messages', 'context_length_exceeded')
}
