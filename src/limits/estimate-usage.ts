import type { EstimatedUse, TokensAndAudio } from '../core/quota.js'

/** A rule of thumb of every tokenizer, for text as JSON has it. */
export const BYTES_PER_TOKEN = 4

/** Pictures and sounds come as Base64, of which no tokenizer ever sees a byte. */
export const TOKENS_PER_MEDIUM = 1000
export const SHORTEST_MEDIUM_CHARACTERS = 1024
const JUDGED_CHARACTERS = 256
const BASE64 = /^[\w+/-]+={0,2}$/
const DATA_URL = /^data:[\w.+-]+\/[\w.+-]+(?:;[\w.+=-]+)*;base64,/

/** Where they may stand; whatever stands elsewhere is read as text, however it looks. */
const MEDIUM_FIELDS: ReadonlySet<string> = new Set(['url', 'image_url', 'data', 'file_data'])

/** No model answers with more; a caller may name any number. */
const MOST_OUTPUT_TOKENS = 1_000_000

/** The upstream's own bound. */
const MOST_CHOICES = 128

const CHARACTERS_PER_SECOND = 15
const IDEOGRAPHS_PER_SECOND = 5
const IDEOGRAPHS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/gu

/** Of a compressed recording that does not say how long it is. */
const AUDIO_BYTES_PER_SECOND = 16_000

/** Class G models. */
const AUDIO_TOKENS_PER_MINUTE = 1000

type Fields = Readonly<Record<string, unknown>>

/**
 * What a chat request uses at most: its text, and as many tokens as it asks for in each choice. Without a maximum it is
 * known only how many answers there will be.
 */
export function expectedOfChat(bodyBytes: number, fields: object): EstimatedUse {
  const { messages, system, max_tokens, max_completion_tokens, n } = fields as Fields
  const media = new Media()
  // Nothing that is worth a look fits into less.
  if (bodyBytes > SHORTEST_MEDIUM_CHARACTERS) media.find([messages, system])
  const textBytes = Math.max(0, bodyBytes - media.characters)
  const promptTokens = Math.ceil(textBytes / BYTES_PER_TOKEN) + media.count * TOKENS_PER_MEDIUM
  const outputTokens = boundedCount(max_completion_tokens ?? max_tokens, 0, MOST_OUTPUT_TOKENS)
  const answers = boundedCount(n, 1, MOST_CHOICES)
  return { tokens: promptTokens + outputTokens * answers, unboundedResponses: outputTokens === 0 ? answers : 0 }
}

/** How long a text takes to speak. */
export function expectedOfSpeech(input: string, speed: unknown): TokensAndAudio {
  const ideographs = input.match(IDEOGRAPHS)?.length ?? 0
  const seconds = ideographs / IDEOGRAPHS_PER_SECOND + (input.length - ideographs) / CHARACTERS_PER_SECOND
  return { audioSeconds: seconds / (typeof speed === 'number' && speed > 0 ? speed : 1) }
}

/**
 * The recording, and what a model that thinks in tokens makes of it. `durationSeconds` is not known of every file: then
 * both are guessed from its size.
 */
export function expectedOfRecording(
  fileBytes: number,
  durationSeconds: number | undefined,
  isCountedInTokens: boolean,
): EstimatedUse {
  const audioSeconds = durationSeconds ?? fileBytes / AUDIO_BYTES_PER_SECOND
  const recording = durationSeconds === undefined ? { audioSeconds, isGuess: true } : { audioSeconds }
  if (!isCountedInTokens) return recording
  return { ...recording, tokens: Math.ceil((audioSeconds / 60) * AUDIO_TOKENS_PER_MINUTE) }
}

function boundedCount(value: unknown, fallback: number, most: number): number {
  if (typeof value !== 'number' || !(value > 0)) return fallback
  return Math.min(most, Math.ceil(value))
}

/** The pictures and sounds among the values of a request. */
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

/** Beside a data URL only `data` is Base64, unless it says that it is text. */
function isMedium(text: string, name: string, { type }: Fields): boolean {
  if (text.length < SHORTEST_MEDIUM_CHARACTERS) return false
  const start = text.slice(0, JUDGED_CHARACTERS)
  return DATA_URL.test(start) || (name === 'data' && type !== 'text' && BASE64.test(start))
}
