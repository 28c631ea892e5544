import { fieldOf } from './json-value.js'
import type { ServedUnits } from './served-ledger.js'

const count = (value: unknown): number => (typeof value === 'number' ? value : 0)

/** Tokens of the usage objects of chat (`prompt_tokens`, …) and of everything else in its family (`input_tokens`, …). */
export function tokenUnits(usage: unknown): ServedUnits {
  const input = fieldOf(usage, 'prompt_tokens_details') ?? fieldOf(usage, 'input_token_details')
  const output = fieldOf(usage, 'completion_tokens_details') ?? fieldOf(usage, 'output_token_details')
  return {
    promptTokens: count(fieldOf(usage, 'prompt_tokens') ?? fieldOf(usage, 'input_tokens')),
    completionTokens: count(fieldOf(usage, 'completion_tokens') ?? fieldOf(usage, 'output_tokens')),
    cachedTokens: count(fieldOf(input, 'cached_tokens')),
    cachedAudioTokens: count(fieldOf(fieldOf(input, 'cached_tokens_details'), 'audio_tokens')),
    audioInputTokens: count(fieldOf(input, 'audio_tokens')),
    audioOutputTokens: count(fieldOf(output, 'audio_tokens')),
    reasoningTokens: count(fieldOf(output, 'reasoning_tokens')),
  }
}

/** What a transcription reports: seconds, or tokens. */
export function transcriptUnits(usage: unknown): ServedUnits {
  const seconds = fieldOf(usage, 'seconds')
  return typeof seconds === 'number' ? { audioSeconds: seconds } : tokenUnits(usage)
}

/** Of the messages family: what is cached stands beside the input. */
export function messagesUnits(usage: unknown): ServedUnits {
  const read = count(fieldOf(usage, 'cache_read_input_tokens'))
  const written = count(fieldOf(usage, 'cache_creation_input_tokens'))
  return {
    promptTokens: count(fieldOf(usage, 'input_tokens')) + read + written,
    cachedTokens: read,
    cacheWriteTokens: written,
    cacheWriteHourTokens: count(fieldOf(fieldOf(usage, 'cache_creation'), 'ephemeral_1h_input_tokens')),
    completionTokens: count(fieldOf(usage, 'output_tokens')),
    reasoningTokens: count(fieldOf(fieldOf(usage, 'output_tokens_details'), 'thinking_tokens')),
  }
}
