import type { EstimatedUse, TokensAndAudio } from '../core/quota.js'
import { BYTES_PER_TOKEN, Media, SHORTEST_MEDIUM_CHARACTERS, TOKENS_PER_MEDIUM } from '../core/token-counter.js'
import { isRecord } from '../core/validation-rules.js'

/** No model responds with more; a caller may request any number. */
const MAXIMUM_OUTPUT_TOKENS = 1_000_000

/** OpenAI's limit. */
const MAXIMUM_CHOICES = 128

const CHARACTERS_PER_SECOND = 15
const IDEOGRAPHS_PER_SECOND = 5
const IDEOGRAPHS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/gu

/** For a compressed recording of unknown duration. */
const AUDIO_BYTES_PER_SECOND = 16_000

/** Class G models. */
const AUDIO_TOKENS_PER_MINUTE = 1000

type Fields = Readonly<Record<string, unknown>>

/** How requests ask a model to think, in the dialects of several vendors. */
export const REASONING_FIELDS = ['reasoning_effort', 'reasoning', 'thinking', 'enable_thinking'] as const
const NO_REASONING: ReadonlySet<unknown> = new Set([undefined, null, false, 'none', 'disabled'])

/** What the estimate of a chat request reads beside its messages. */
export const ESTIMATED_FIELDS = ['system', 'max_tokens', 'max_completion_tokens', 'n', ...REASONING_FIELDS] as const

/** Whether a request says that its model is to think. What it says nothing of, the model decides. */
export function asksForReasoning(fields: object): boolean {
  return REASONING_FIELDS.some((name) => {
    const value = (fields as Fields)[name]
    return !NO_REASONING.has(isRecord(value) && typeof value['type'] === 'string' ? value['type'] : value)
  })
}

/**
 * Maximum use of a chat request: its text, and the requested maximum of tokens for each choice. Without a maximum only
 * the number of responses is known.
 */
export function estimateChat(bodyBytes: number, fields: object): EstimatedUse {
  const { messages, system, max_tokens, max_completion_tokens, n } = fields as Fields
  const media = new Media()
  // A smaller body cannot hold a medium.
  if (bodyBytes > SHORTEST_MEDIUM_CHARACTERS) media.find([messages, system])
  const textBytes = Math.max(0, bodyBytes - media.characters)
  const promptTokens = Math.ceil(textBytes / BYTES_PER_TOKEN) + media.count * TOKENS_PER_MEDIUM
  const outputTokens = boundedCount(max_completion_tokens ?? max_tokens, 0, MAXIMUM_OUTPUT_TOKENS)
  const answers = boundedCount(n, 1, MAXIMUM_CHOICES)
  return { tokens: promptTokens + outputTokens * answers, unboundedResponses: outputTokens === 0 ? answers : 0 }
}

/** The same of a request for a response. */
export function estimateResponse(bodyBytes: number, fields: object): EstimatedUse {
  const { input, max_output_tokens } = fields as Fields
  return estimateChat(bodyBytes, { messages: input, max_tokens: max_output_tokens })
}

/** `tokenIds`: how many stand in place of texts; 0 = the body holds texts. */
export function estimateEmbeddings(bodyBytes: number, fields: object): EstimatedUse {
  const { tokenIds = 0 } = fields as { readonly tokenIds?: number }
  return { tokens: tokenIds > 0 ? tokenIds : Math.ceil(bodyBytes / BYTES_PER_TOKEN) }
}

/** Estimated duration of the spoken text. */
export function estimateSpeech(input: string, speed: unknown): TokensAndAudio {
  const ideographs = input.match(IDEOGRAPHS)?.length ?? 0
  const seconds = ideographs / IDEOGRAPHS_PER_SECOND + (input.length - ideographs) / CHARACTERS_PER_SECOND
  return { audioSeconds: seconds / (typeof speed === 'number' && speed > 0 ? speed : 1) }
}

/**
 * Duration of the recording, and its tokens for models billed by tokens. Without `durationSeconds` both are guessed from
 * the file size.
 */
export function estimateRecording(
  fileBytes: number,
  durationSeconds: number | undefined,
  isCountedInTokens: boolean,
): EstimatedUse {
  const audioSeconds = durationSeconds ?? fileBytes / AUDIO_BYTES_PER_SECOND
  const recording = durationSeconds === undefined ? { audioSeconds, isGuess: true } : { audioSeconds }
  if (!isCountedInTokens) return recording
  return { ...recording, tokens: Math.ceil((audioSeconds / 60) * AUDIO_TOKENS_PER_MINUTE) }
}

function boundedCount(value: unknown, fallback: number, maximum: number): number {
  if (typeof value !== 'number' || !(value > 0)) return fallback
  return Math.min(maximum, Math.ceil(value))
}
