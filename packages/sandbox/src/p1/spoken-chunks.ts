import type { TextRun } from '../server/generated-text.js'
import { ChunkWriter } from './chat-chunks.js'
import type { ChatRequest } from './chat-request.js'
import { chatUsage } from './chat-usage.js'
import type { SpokenAnswer } from './spoken-answer.js'

/** Bytes of audio in one `data` piece: 25,600 base64 characters. */
const PIECE_BYTES = 19_200
const FILLERS_PER_WORD = 2

/**
 * A spoken answer in the recorded order of section 5.1 of the chat notes: role, transcript with filler chunks between,
 * audio data, usage, and the expiry behind the usage. No chunk carries `finish_reason: "stop"`.
 */
export function* spokenChunks(
  request: ChatRequest,
  run: TextRun,
  speak: (words: string) => SpokenAnswer,
): Generator<string> {
  const writer = new ChunkWriter(request)
  const role = { index: 0, delta: { role: 'assistant', refusal: null }, finish_reason: null }
  yield writer.choices(role)
  const pieces = [...run]
  const spoken = speak(pieces.join(''))
  for (const [position, piece] of pieces.entries()) {
    const audio = position === 0 ? { id: spoken.id, transcript: piece } : { transcript: piece }
    const delta = position === 0 ? { content: null, audio } : { audio }
    yield writer.choices({ index: 0, delta, finish_reason: null })
    for (let filler = 0; filler < FILLERS_PER_WORD; filler += 1) yield writer.filler()
  }
  yield writer.choices(role)
  for (const bytes of regroup(spoken.bytes, PIECE_BYTES)) {
    const delta = { audio: { data: bytes.toString('base64') } }
    yield writer.choices({ index: 0, delta, finish_reason: null })
  }
  yield* writer.usage(chatUsage(request, run.count))
  yield writer.choices({ index: 0, delta: { audio: { expires_at: spoken.expiresAt } } })
  yield writer.end()
}

/** Regroups pieces of any size into pieces of `size` bytes, the last one shorter. */
export function* regroup(pieces: Iterable<Buffer>, size: number): Generator<Buffer> {
  let pending = Buffer.alloc(0)
  for (const piece of pieces) {
    pending = Buffer.concat([pending, piece])
    while (pending.length >= size) {
      yield pending.subarray(0, size)
      pending = pending.subarray(size)
    }
  }
  if (pending.length > 0) yield pending
}
