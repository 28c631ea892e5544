import { fieldOf, type JsonObject, listOf, textOf } from '../server/json-value.js'
import { M1Rejection } from './m1-errors.js'

/** Conversations held at a time; the oldest are forgotten. */
const MOST_THREADS = 20

/** Conversations that the upstream holds for its callers, by the id of their last answer (the field `thread`). */
export class M1Threads {
  readonly #held = new Map<string, readonly unknown[]>()

  /** The body with all messages of the conversation it continues. Throws the 404. */
  resumed(body: JsonObject): JsonObject {
    const { thread } = body
    if (fieldOf(thread, 'type') !== 'continue') return body
    const id = textOf(fieldOf(thread, 'previous_message_id'))
    const earlier = this.#held.get(id)
    if (earlier === undefined) throw new M1Rejection(404, `thread: no thread with the message '${id}' was found`)
    return { ...body, messages: [...earlier, ...listOf(body['messages'])] }
  }

  /** Keeps a conversation and its answer, when the request asks for that. */
  keep(body: JsonObject, id: string, content: readonly object[]): void {
    if (fieldOf(body['thread'], 'type') === undefined) return
    this.#held.set(id, [...listOf(body['messages']), { role: 'assistant', content }])
    const [oldest] = this.#held.keys()
    if (this.#held.size > MOST_THREADS && oldest !== undefined) this.#held.delete(oldest)
  }
}
