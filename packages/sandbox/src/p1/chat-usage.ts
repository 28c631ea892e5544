import { fieldOf, objectsOf, textOf } from '../server/json-value.js'
import { estimateTokens } from '../server/magic-text.js'
import { type ChatRequest, contentText } from './chat-request.js'
import { choiceCount, reasoningTokens } from './token-budget.js'

/** Bytes of base64-decoded input audio counted as one audio token. */
const AUDIO_BYTES_PER_TOKEN = 4800
/** Spoken words cost about this many audio tokens each. */
const AUDIO_TOKENS_PER_WORD = 4
const TOKENS_PER_MESSAGE = 4

/** The usage object of section 6 of the chat notes for so many tokens of words. Audio models carry more keys. */
export function chatUsage(request: ChatRequest, wordTokens: number): Readonly<Record<string, unknown>> {
  const promptText = request.messages.reduce(
    (sum, message) => sum + TOKENS_PER_MESSAGE + estimateTokens(contentText(message['content'])),
    3,
  )
  const promptAudio = request.messages
    .flatMap((message) => objectsOf(message['content']))
    .filter((part) => part['type'] === 'input_audio')
    .reduce((sum, part) => sum + audioTokens(textOf(fieldOf(part['input_audio'], 'data'))), 0)
  const spoken = request.audioFormat === undefined ? 0 : wordTokens * AUDIO_TOKENS_PER_WORD
  const isAudioModel = request.family === 'audio-chat'
  const prompt = promptText + promptAudio
  const reasoning = reasoningTokens(request) * choiceCount(request)
  const completion = reasoning + wordTokens + spoken
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: 0,
      audio_tokens: promptAudio,
      ...(isAudioModel ? { text_tokens: promptText, image_tokens: 0 } : {}),
    },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: spoken,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
      ...(isAudioModel ? { text_tokens: wordTokens } : {}),
    },
  }
}

/** Tokens of tool calls, which are not words. */
export function callTokens(inputs: readonly string[]): number {
  return inputs.reduce((sum, input) => sum + 6 + estimateTokens(input), 0)
}

function audioTokens(base64: string): number {
  return Math.ceil((base64.length * 3) / 4 / AUDIO_BYTES_PER_TOKEN)
}
