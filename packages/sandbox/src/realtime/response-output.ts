import { CHARACTER_MS } from '../audio/speech-synthesizer.js'
import { estimateTokens, type TextRun } from '../server/generated-text.js'
import type { JsonObject } from '../server/json-value.js'
import { AudioTally, bytesPerMs, speak } from './audio-format.js'
import type { ConversationItem } from './conversation.js'
import { SPOKEN_MS_PER_TOKEN, type TokenCount } from './response.js'
import type { EventSender } from './server-events.js'
import type { SessionFacts } from './session-config.js'

type ItemStatus = 'completed' | 'incomplete'

/** Where an output item belongs. */
export interface OutputPlace {
  readonly responseId: string
  readonly outputIndex: number
  /** Puts the item into the conversation and returns the id before it; undefined when the response is out of band. */
  readonly enter: ((item: ConversationItem) => string | null) | undefined
}

/** Sends the events of one output item: `begin`, then `next` until it returns false or the item is broken off, `end`. */
export abstract class OutputWriter {
  abstract readonly item: ConversationItem
  abstract readonly tokens: TokenCount
  /** True when words were left over at the token limit. */
  abstract readonly endedByLimit: boolean
  #previousId: string | null | undefined

  constructor(
    protected readonly sender: EventSender,
    protected readonly place: OutputPlace,
  ) {}

  /** Sends one delta; false when there is none left. */
  abstract next(): Promise<boolean>

  abstract begin(): Promise<void>

  abstract end(status: ItemStatus): Promise<void>

  /** The keys every event about the item has. */
  protected get coordinates(): JsonObject {
    const { responseId, outputIndex } = this.place
    return { response_id: responseId, item_id: this.item.id, output_index: outputIndex }
  }

  protected async announce(): Promise<void> {
    const { responseId, outputIndex, enter } = this.place
    const item = this.item.fields
    await this.sender.send('response.output_item.added', { response_id: responseId, output_index: outputIndex, item })
    this.#previousId = enter?.(this.item)
    if (this.#previousId === undefined) return
    await this.sender.send('conversation.item.added', { previous_item_id: this.#previousId, item })
  }

  protected async conclude(): Promise<void> {
    const { responseId, outputIndex } = this.place
    const item = this.item.fields
    if (this.#previousId !== undefined) {
      await this.sender.send('conversation.item.done', { previous_item_id: this.#previousId, item })
    }
    await this.sender.send('response.output_item.done', { response_id: responseId, output_index: outputIndex, item })
  }
}

const PIECE_CHARACTERS = 8
/** The name and the brackets around it. */
const TOKENS_PER_CALL = 6

/** A function call, its arguments piece by piece. */
export class CallWriter extends OutputWriter {
  readonly item: ConversationItem
  readonly endedByLimit = false
  #sent = ''

  constructor(
    sender: EventSender,
    place: OutputPlace,
    private readonly call: { readonly name: string; readonly input: string },
  ) {
    super(sender, place)
    const id = sender.newId('item')
    this.item = { id, fields: {}, audio: undefined }
    this.#fill('in_progress')
  }

  get tokens(): TokenCount {
    return { text: TOKENS_PER_CALL + estimateTokens(this.#sent), audio: 0 }
  }

  async begin(): Promise<void> {
    await this.announce()
  }

  async next(): Promise<boolean> {
    const delta = this.call.input.slice(this.#sent.length, this.#sent.length + PIECE_CHARACTERS)
    if (delta === '') return false
    this.#sent += delta
    await this.sender.send('response.function_call_arguments.delta', { ...this.#keys, delta })
    return true
  }

  async end(status: ItemStatus): Promise<void> {
    this.#fill(status)
    const name = this.sender.dialect === 'ga' ? { name: this.call.name } : {}
    const done = { ...this.#keys, ...name, arguments: this.#sent }
    await this.sender.send('response.function_call_arguments.done', done)
    await this.conclude()
  }

  get #keys(): Record<string, unknown> {
    return { ...this.coordinates, call_id: this.item.fields['call_id'] }
  }

  #fill(status: ItemStatus | 'in_progress'): void {
    const callId = this.item.fields['call_id'] ?? this.sender.newId('call')
    const { name } = this.call
    const id = this.item.id
    this.item.fields = { id, type: 'function_call', status, name, call_id: callId, arguments: this.#sent }
  }
}

/** Base64 of it is 16 KiB. */
const FLOOD_PIECE = Buffer.alloc(12_288)

type Delta = { readonly words: string } | { readonly audio: Buffer }

/** A message of the assistant: text, or speech with its transcript. */
export class MessageWriter extends OutputWriter {
  readonly item: ConversationItem
  readonly #deltas: Iterator<Delta, void, undefined>
  readonly #tally = new AudioTally()
  #said = ''
  /** Of it, each counted as a token. */
  #pieces = 0

  constructor(
    sender: EventSender,
    place: OutputPlace,
    private readonly words: TextRun,
    private readonly facts: SessionFacts,
    floodBytes: number | undefined,
  ) {
    super(sender, place)
    const id = sender.newId('item')
    const fields = { id, type: 'message', status: 'in_progress', role: 'assistant', content: [] }
    this.item = { id, fields, audio: undefined }
    this.#deltas = facts.wantsAudio ? spokenDeltas(words, facts, floodBytes) : writtenDeltas(words)
  }

  get tokens(): TokenCount {
    const spokenMs = this.#tally.bytes / bytesPerMs(this.facts.outputFormat)
    return { text: this.#pieces, audio: Math.ceil(spokenMs / SPOKEN_MS_PER_TOKEN) }
  }

  get endedByLimit(): boolean {
    return this.words.ended === 'limit'
  }

  async begin(): Promise<void> {
    await this.announce()
    await this.sender.send('response.content_part.added', { ...this.#keys, part: this.#part })
  }

  async next(): Promise<boolean> {
    const { value, done } = this.#deltas.next()
    if (done === true) return false
    if ('audio' in value) await this.#sendAudio(value.audio)
    else await this.#sendWords(value.words)
    return true
  }

  async end(status: ItemStatus): Promise<void> {
    if (this.facts.wantsAudio) {
      await this.sender.send('response.output_audio.done', this.#keys)
      await this.sender.send('response.output_audio_transcript.done', { ...this.#keys, transcript: this.#said })
    } else await this.sender.send('response.output_text.done', { ...this.#keys, text: this.#said })
    await this.sender.send('response.content_part.done', { ...this.#keys, part: this.#part })
    this.item.fields = { ...this.item.fields, status }
    this.#keep()
    await this.conclude()
  }

  /** What was sent so far becomes the item's, unless the client has cut it off. */
  #keep(): void {
    if (this.item.isTruncated === true) return
    const content = [{ ...this.#part, type: this.facts.wantsAudio ? 'output_audio' : 'output_text' }]
    this.item.fields = { ...this.item.fields, content }
    if (this.facts.wantsAudio) this.item.audio = this.#audio
  }

  get #keys(): Record<string, unknown> {
    return { ...this.coordinates, content_index: 0 }
  }

  get #part(): Record<string, unknown> {
    return this.facts.wantsAudio ? { type: 'audio', transcript: this.#said } : { type: 'text', text: this.#said }
  }

  get #audio(): ConversationItem['audio'] {
    const { bytes, checksum } = this.#tally
    const format = this.facts.outputFormat
    return { bytes, checksum, format, durationMs: bytes / bytesPerMs(format) }
  }

  async #sendWords(delta: string): Promise<void> {
    this.#said += delta
    this.#pieces += 1
    const kind = this.facts.wantsAudio ? 'audio_transcript' : 'text'
    await this.sender.send(`response.output_${kind}.delta`, { ...this.#keys, delta })
  }

  async #sendAudio(audio: Buffer): Promise<void> {
    this.#tally.add(audio)
    this.sender.record.sentAudio.add(audio)
    this.#keep()
    await this.sender.send('response.output_audio.delta', { ...this.#keys, delta: audio.toString('base64') })
  }
}

function* writtenDeltas(words: TextRun): Generator<Delta, void, undefined> {
  for (const piece of words) yield { words: piece }
}

/** Each word of the transcript comes just before its sound. */
function* spokenDeltas(
  words: TextRun,
  facts: SessionFacts,
  floodBytes: number | undefined,
): Generator<Delta, void, undefined> {
  const { outputFormat, speed } = facts
  const pieces = [...words]
  const audio = floodBytes === undefined ? speak(pieces.join(''), outputFormat, speed) : flood(floodBytes)
  let elapsedMs = 0
  let writtenMs = 0
  for (const chunk of audio) {
    while (pieces.length > 0 && writtenMs <= elapsedMs) {
      const piece = pieces.shift() ?? ''
      writtenMs += (Array.from(piece).length * CHARACTER_MS) / speed
      yield { words: piece }
    }
    yield { audio: chunk }
    elapsedMs += chunk.length / bytesPerMs(outputFormat)
  }
  for (const piece of pieces) yield { words: piece }
}

function* flood(bytes: number): Generator<Buffer, void, undefined> {
  for (let sent = 0; sent < bytes; sent += FLOOD_PIECE.length) yield FLOOD_PIECE.subarray(0, bytes - sent)
}
