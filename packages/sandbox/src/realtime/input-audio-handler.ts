import { estimateTokens } from '../server/generated-text.js'
import { type JsonObject, textOf } from '../server/json-value.js'
import { decodeBase64 } from './audio-format.js'
import { type Conversation, type ConversationItem, withFirstPart } from './conversation.js'
import { InputAudio, type VoiceSignal } from './input-audio-buffer.js'
import type { ResponseDesk } from './response-handler.js'
import { HEARD_MS_PER_TOKEN } from './response.js'
import type { EventSender } from './server-events.js'
import type { SessionState } from './session-config.js'
import { isStreaming } from './shared-rules.js'
import { RealtimeRejection } from './validation.js'

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
async function transcribeInput(
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
  const isBilledByTime = isWhisper || isStreaming(transcription['model'])
  if (!isWhisper) {
    for (const delta of words) await sender.send(DELTA, { ...place, delta, ...logprobs([delta], wantsLogprobs) })
  }
  item.fields = withFirstPart(item, { transcript })
  const usage = isBilledByTime ? durationUsage(item) : tokenUsage(item, prompt, transcript)
  sender.record.noteServed(usage, textOf(transcription['model']))
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

const SMALLEST_COMMIT_MS = 100
const MAXIMUM_APPEND_BYTES = 15 * 1024 * 1024

/** The input buffer of one session: append, commit, clear, and the turns that speech itself makes. */
export class AudioDesk {
  readonly #input = new InputAudio()
  /** The id of the item that the speech going on will become. */
  #spokenItemId: string | undefined

  constructor(
    private readonly sender: EventSender,
    private readonly state: SessionState,
    private readonly conversation: Conversation,
    private readonly responses: ResponseDesk,
    private readonly background: (work: Promise<void>) => void,
  ) {}

  /** Throws RealtimeRejection for anything but the base64 of at most 15 MiB. */
  async append(base64: unknown): Promise<void> {
    const audio = typeof base64 === 'string' ? decodeBase64(base64) : undefined
    if (audio === undefined) {
      const expected = 'Expected base64-encoded audio bytes (mono PCM16 at 24kHz) but got an invalid value.'
      throw new RealtimeRejection('invalid_value', `Invalid 'audio'. ${expected}`, 'audio')
    }
    if (audio.length > MAXIMUM_APPEND_BYTES) {
      const message = `Invalid 'audio': at most 15 MiB of audio are allowed in one event, but got ${audio.length} bytes.`
      throw new RealtimeRejection('invalid_value', message, 'audio')
    }
    this.sender.record.receivedAudio.add(audio)
    const { inputFormat, turnDetection } = this.state.facts
    this.#input.configure(inputFormat, turnDetection)
    for (const signal of this.#input.append(audio)) await this.#follow(signal)
  }

  /** Throws RealtimeRejection when there is less than 100 ms to commit. */
  async commit(): Promise<void> {
    const { durationMs } = this.#input
    if (durationMs < SMALLEST_COMMIT_MS) {
      const found = `Expected at least 100ms of audio, but buffer only has ${durationMs.toFixed(2)}ms of audio.`
      const message = `Error committing input audio buffer: buffer too small. ${found}`
      throw new RealtimeRejection('input_audio_buffer_commit_empty', message)
    }
    this.#transcribe(await this.#enter())
  }

  async clear(): Promise<void> {
    this.#input.clear()
    this.#spokenItemId = undefined
    await this.sender.send('input_audio_buffer.cleared')
  }

  async #follow({ kind, atMs }: VoiceSignal): Promise<void> {
    const { detector } = this.#input
    this.#spokenItemId ??= this.sender.newId('item')
    const itemId = this.#spokenItemId
    if (kind === 'started') {
      await this.sender.send('input_audio_buffer.speech_started', { audio_start_ms: atMs, item_id: itemId })
      if (detector?.interruptsResponse === true) await this.responses.interrupt()
      return
    }
    await this.sender.send('input_audio_buffer.speech_stopped', { audio_end_ms: atMs, item_id: itemId })
    const item = await this.#enter()
    if (detector?.createsResponse === true) await this.#answer()
    this.#transcribe(item)
  }

  /** A response that cannot start is an error event without the id of a client event. */
  async #answer(): Promise<void> {
    try {
      await this.responses.create({})
    } catch (error) {
      if (!(error instanceof RealtimeRejection)) throw error
      await this.sender.refuse(error, null)
    }
  }

  /** Turns what is in the buffer into an item of the conversation. */
  async #enter(): Promise<ConversationItem> {
    const audio = this.#input.commit()
    this.sender.record.noteCommitted(audio)
    const id = this.#spokenItemId ?? this.sender.newId('item')
    this.#spokenItemId = undefined
    const content = [{ type: 'input_audio', transcript: null }]
    const item = { id, fields: { id, type: 'message', status: 'completed', role: 'user', content }, audio }
    const previousId = this.conversation.insert(item)
    await this.sender.send('input_audio_buffer.committed', { previous_item_id: previousId, item_id: id })
    await this.sender.send('conversation.item.added', { previous_item_id: previousId, item: item.fields })
    await this.sender.send('conversation.item.done', { previous_item_id: previousId, item: item.fields })
    return item
  }

  #transcribe(item: ConversationItem): void {
    const { transcription, wantsLogprobs } = this.state.facts
    if (transcription === null || this.sender.session.end !== undefined) return
    this.background(transcribeInput(this.sender, item, transcription, wantsLogprobs))
  }
}
