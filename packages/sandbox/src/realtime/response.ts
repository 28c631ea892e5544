import { isObject, type JsonObject, listOf, objectsOf, textOf } from '../server/json-value.js'
import { betaResponse } from './beta-rules.js'
import { checkItem } from './client-events.js'
import { type ConversationItem, itemOf } from './conversation-item.js'
import type { Conversation } from './conversation.js'
import { readWish, type RealtimeWish } from './fault-injection.js'
import type { RealtimeDialect } from './realtime-dialect.js'
import { RealtimeRejection } from './realtime-rejection.js'
import { responseFacts, type SessionFacts } from './session-config.js'
import { gaResponse } from './session-rules.js'

/** What one response is made of. */
export interface ResponseRequest {
  readonly facts: SessionFacts
  /** All the model reads. */
  readonly context: readonly ConversationItem[]
  /** The end of it: what is to be answered. */
  readonly turn: readonly ConversationItem[]
  /** Its items do not enter the conversation. */
  readonly isOutOfBand: boolean
  readonly metadata: JsonObject | null
  /** Instructions and texts of the turn, in which magic words stand. */
  readonly callerText: string
  readonly wish: RealtimeWish
}

interface ResponseSurroundings {
  readonly dialect: RealtimeDialect
  readonly session: SessionFacts
  readonly conversation: Conversation
  /** Words queued for the session. */
  readonly faultWords: string
}

/** Judges the `response` of a `response.create`; an empty object stands for none. Throws RealtimeRejection. */
export function readResponseRequest(response: unknown, surroundings: ResponseSurroundings): ResponseRequest {
  const { dialect, session, conversation, faultWords } = surroundings
  const check = dialect === 'ga' ? gaResponse : betaResponse
  const checked = check(response, 'response') as JsonObject
  const facts = responseFacts(session, dialect, checked)
  const input = checked['input'] === undefined ? undefined : readInput(listOf(checked['input']), surroundings)
  const turn = input ?? conversation.turn
  const callerText = [faultWords, facts.instructions, ...turn.map(inputTextOf)]
    .filter((words) => words !== '')
    .join(' ')
  return {
    facts,
    turn,
    context: input ?? [...conversation.items],
    isOutOfBand: checked['conversation'] === 'none',
    metadata: isObject(checked['metadata']) ? checked['metadata'] : null,
    callerText,
    wish: readWish(callerText),
  }
}

/** The words typed into an item; transcripts are not typed. */
export function inputTextOf(item: ConversationItem): string {
  const texts = objectsOf(item.fields['content']).map((part) => textOf(part['text']))
  return texts.filter((words) => words !== '').join(' ')
}

function readInput(input: readonly unknown[], surroundings: ResponseSurroundings): readonly ConversationItem[] {
  const { dialect, session, conversation } = surroundings
  return input.map((entry, index) => {
    const path = `response.input[${index}]`
    const checked = checkItem(dialect, entry, path, true)
    const id = textOf(checked['id'])
    if (checked['type'] !== 'item_reference') return itemOf(id, checked, session.inputFormat)
    const item = conversation.find(id)
    if (item !== undefined) return item
    throw new RealtimeRejection('invalid_value', `Item with id '${id}' not found in conversation.`, `${path}.id`)
  })
}
