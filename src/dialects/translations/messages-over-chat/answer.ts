import { jsonTextOf, type JsonTexts } from '../../../core/json-text.js'
import { tokensOf } from '../../../core/token-counter.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import { AnswerCallIds } from '../../made-ids.js'
import type { UnknownWords } from '../../translator.js'
import type { Members } from '../members.js'
import { madeSignature } from '../seals.js'
import { type AnswerEnd, endOfChat, MESSAGES_STOP } from '../stop-reasons.js'
import { inputOfArguments } from '../tool-forms.js'
import {
  type CallPiece,
  callsIn,
  checkCalls,
  contentIn,
  messageIn,
  refusalIn,
  thoughtsIn,
  usageIn,
} from '../to-chat/answers.js'
import { filledFigures, messagesUsage, type TokenFigures } from '../usage.js'
import type { ToolNames } from './request-draft.js'

/** What an answer needs of its request. */
export interface MessageContext {
  /** The caller's name. */
  readonly model: string
  readonly requestId: string
  readonly unknownWords: UnknownWords | undefined
  readonly toolNames: ToolNames
  /** Estimated tokens of the prompt. */
  readonly inputTokens: () => number
}

/** JSON text of a message for a chat completion; `texts` is the same with numbers as they came. Throws `upstream_failed` for one without a message or a finish reason. */
export function messageTextOf(answer: Members, texts: JsonTexts, context: MessageContext): string {
  const { message, finishReason } = messageIn(answer)
  const pieces = callsIn(message, texts.at('choices', 0, 'message'))
  const ids = new AnswerCallIds()
  const calls = pieces.map((call, index) => callOf(call, ids.next(call.id, index)))
  const refusal = refusalIn(message)
  const end = endOfChat(finishReason, { hasCalls: calls.length > 0, hasRefusal: refusal !== '' }, context.unknownWords)
  checkCalls(pieces, end)
  const thoughts = thoughtsIn(message)
  const text = contentIn(message)
  const content = [
    ...(thoughts === '' ? [] : [thinkingBlock(thoughts, madeSignature())]),
    ...(text === '' ? [] : [{ ...textBlock(), text }]),
    ...(end === 'refused' ? [] : calls.map((call) => toolUseOf(call, context))),
  ]
  const figures = filledFigures(usageIn(answer), {
    input: context.inputTokens,
    output: () => calls.reduce((sum, call) => sum + tokensOf(call.arguments), tokensOf(thoughts) + tokensOf(text)),
  })
  return jsonTextOf({ ...emptyMessage(answer, context, figures), content, ...stopOf(end, refusal) })
}

/** A message of which nothing has come yet, with every member of its type. */
export const emptyMessage = (
  { id }: Members,
  { model, requestId }: Pick<MessageContext, 'model' | 'requestId'>,
  figures: TokenFigures,
): object => ({
  id: typeof id === 'string' && id !== '' ? id : `msg_${requestId}`,
  type: 'message',
  role: 'assistant',
  model,
  content: [],
  stop_reason: null,
  stop_sequence: null,
  stop_details: null,
  container: null,
  diagnostics: null,
  usage: messagesUsage(figures),
})

/** How it ended. A chat answer does not tell which stop sequence it met. */
export const stopOf = (end: AnswerEnd, refusal: string): object => ({
  stop_reason: MESSAGES_STOP[end],
  stop_sequence: null,
  stop_details:
    end === 'refused' ? { type: 'refusal', category: null, explanation: refusal === '' ? null : refusal } : null,
})

/** Of an answer of which nothing has come yet. */
export const estimated = (input: number): TokenFigures =>
  filledFigures(undefined, { input: () => input, output: () => 0 })

export const textBlock = (): object => ({ type: 'text', text: '', citations: null })

export const thinkingBlock = (thinking: string, signature: string): object => ({
  type: 'thinking',
  thinking,
  signature,
})

export const toolUseBlock = (
  id: string,
  name: string,
  input: object,
  { toolNames }: Pick<MessageContext, 'toolNames'>,
): object => ({
  type: 'tool_use',
  id,
  name: toolNames.original(name),
  input,
  caller: { type: 'direct' },
})

interface FunctionCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

function callOf({ name, text, isCustom }: CallPiece, id: string): FunctionCall {
  if (name === undefined || isCustom) throw malformedResponse('The upstream called no function by its name.')
  return { id, name, arguments: text }
}

const toolUseOf = (call: FunctionCall, context: MessageContext): object =>
  toolUseBlock(call.id, call.name, inputOfArguments(call.arguments), context)
