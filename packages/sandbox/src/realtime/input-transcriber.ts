import { type JsonObject, textOf } from '../server/json-value.js'
import { estimateTokens } from '../server/magic-text.js'
import { type ConversationItem, withFirstPart } from './conversation-item.js'
import { HEARD_MS_PER_TOKEN } from './response-usage.js'
import type { EventSender } from './server-events.js'

const COMPLETED = 'conversation.item.input_audio_transcription.completed'
const DELTA = 'conversation.item.input_audio_transcription.delta'
const FAILED = 'conversation.item.input_audio_transcription.failed'

/** What the transcriber "hears": words made of the audio received, so that a test can prove that it arrived whole. */
export function transcriptOf(item: ConversationItem): string {
  const seconds = (item.audio?.durationMs ?? 0) / 1000
  return `The audio has checksum ${item.audio?.checksum ?? ''}. It lasts ${seconds.toFixed(2)} seconds.`
}

/**
 * Transcribes a committed item: deltas but for Whisper, then the whole with its usage, which is not part of any
 * response's. A prompt with `#fail` makes it fail.
 */
export async function transcribeInput(
  sender: EventSender,
  item: ConversationItem,
  transcription: JsonObject,
  wantsLogprobs: boolean,
): Promise<void> {
  const place = { item_id: item.id, content_index: 0 }
  const prompt = textOf(transcription['prompt'])
  if (prompt.includes('#fail')) {
    const message = 'The audio could not be transcribed.'
    const error = { type: 'transcription_error', code: 'audio_unintelligible', message, param: null }
    await sender.send(FAILED, { ...place, error })
    return
  }
  const transcript = transcriptOf(item)
  const words = transcript.match(/\s*\S+/g) ?? []
  const isWhisper = transcription['model'] === 'whisper-1'
  if (!isWhisper) {
    for (const delta of words) await sender.send(DELTA, { ...place, delta, ...logprobs([delta], wantsLogprobs) })
  }
  item.fields = withFirstPart(item, { transcript })
  const usage = isWhisper ? durationUsage(item) : tokenUsage(item, prompt, transcript)
  await sender.send(COMPLETED, { ...place, transcript, usage, ...logprobs(words, wantsLogprobs) })
}

function durationUsage(item: ConversationItem): JsonObject {
  return { type: 'duration', seconds: Math.ceil((item.audio?.durationMs ?? 0) / 1000) }
}

function tokenUsage(item: ConversationItem, prompt: string, transcript: string): JsonObject {
  const audioTokens = Math.ceil((item.audio?.durationMs ?? 0) / HEARD_MS_PER_TOKEN)
  const textTokens = estimateTokens(prompt)
  const outputTokens = estimateTokens(transcript)
  return {
    type: 'tokens',
    total_tokens: audioTokens + textTokens + outputTokens,
    input_tokens: audioTokens + textTokens,
    input_token_details: { text_tokens: textTokens, audio_tokens: audioTokens },
    output_tokens: outputTokens,
  }
}

function logprobs(words: readonly string[], isWanted: boolean): JsonObject {
  if (!isWanted) return {}
  return { logprobs: words.map((token) => ({ token, logprob: -0.01, bytes: [...Buffer.from(token)] })) }
}
