import { decodeBase64 } from './base64-audio.js'
import type { ConversationItem } from './conversation-item.js'
import type { Conversation } from './conversation.js'
import { InputAudio, type VoiceSignal } from './input-audio-buffer.js'
import { transcribeInput } from './input-transcriber.js'
import { RealtimeRejection } from './realtime-rejection.js'
import type { ResponseDesk } from './response-handler.js'
import type { EventSender } from './server-events.js'
import type { SessionState } from './session-state.js'

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

  /** A response that cannot begin is told to the client, but nothing it sent is to blame. */
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
