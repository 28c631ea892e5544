import type { EstimatedUse, TokensAndAudio } from '../core/quota.js'

/** Rule of thumb of all tokenizers, for JSON text. */
export const BYTES_PER_TOKEN = 4

/** Images and audio come as Base64, which is not tokenized as text. */
export const TOKENS_PER_MEDIUM = 1000
export const SHORTEST_MEDIUM_CHARACTERS = 1024
const JUDGED_CHARACTERS = 256
const BASE64 = /^[\w+/-]+={0,2}$/
const DATA_URL = /^data:[\w.+-]+\/[\w.+-]+(?:;[\w.+=-]+)*;base64,/

/** Fields that may hold Base64; all others are counted as text. */
const MEDIUM_FIELDS: ReadonlySet<string> = new Set(['url', 'image_url', 'data', 'file_data'])

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

/** What the estimate of a chat request reads beside its messages. */
export const ESTIMATED_FIELDS = ['system', 'max_tokens', 'max_completion_tokens', 'n'] as const

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

/** Counts images and audio in a request. */
class Media {
  count = 0
  characters = 0

  find(value: unknown): void {
    if (typeof value !== 'object' || value === null) return
    for (const [name, member] of Object.entries(value as Fields)) {
      if (typeof member !== 'string') this.find(member)
      else if (MEDIUM_FIELDS.has(name) && isMedium(member, name, value as Fields)) {
        this.count++
        this.characters += member.length
      }
    }
  }
}

/** Data URLs, and `data` in Base64 unless its type is text. */
function isMedium(text: string, name: string, { type }: Fields): boolean {
  if (text.length < SHORTEST_MEDIUM_CHARACTERS) return false
  const start = text.slice(0, JUDGED_CHARACTERS)
  return DATA_URL.test(start) || (name === 'data' && type !== 'text' && BASE64.test(start))
}
