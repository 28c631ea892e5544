import { jsonTextOf, type JsonTexts } from '../../../core/json-text.js'
import { tokensOf } from '../../../core/token-counter.js'
import { isRecord } from '../../../core/validation-rules.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { UnknownWords } from '../../translator.js'
import type { Members } from '../members.js'
import { madeSignature } from '../seals.js'
import { type AnswerEnd, endOfChat, MESSAGES_STOP } from '../stop-reasons.js'
import { inputOfArguments } from '../tool-forms.js'
import { type CallPiece, contentIn, messageIn, readCall, thoughtsIn, usageIn } from '../to-chat/answers.js'
import { messagesUsage, type TokenFigures } from '../usage.js'
import type { ToolNames } from './request-draft.js'

/** What an answer needs of its request. */
export interface AnswerContext {
  /** The caller's name. */
  readonly model: string
  readonly requestId: string
  readonly unknownWords: UnknownWords | undefined
  readonly toolNames: ToolNames
  /** Estimated tokens of the prompt. */
  readonly inputTokens: () => number
}

/** JSON text of a message for a chat completion; `texts` is the same with numbers as they came. Throws `upstream_failed` for one without a message or a finish reason. */
export function messageTextOf(answer: Members, texts: JsonTexts, context: AnswerContext): string {
  const { message, finishReason } = messageIn(answer)
  const calls = callsIn(message, texts.at('choices', 0, 'message'), context)
  const refusal = textIn(message, 'refusal')
  const end = endOfChat(finishReason, { hasCalls: calls.length > 0, hasRefusal: refusal !== '' }, context.unknownWords)
  const thoughts = thoughtsIn(message)
  const text = contentIn(message)
  const content = [
    ...(thoughts === '' ? [] : [thinkingBlock(thoughts, madeSignature())]),
    ...(text === '' ? [] : [{ ...textBlock(), text }]),
    ...(end === 'refused' ? [] : calls.map((call) => toolUseOf(call, context))),
  ]
  const figures = usageIn(answer) ?? {
    ...estimated(context.inputTokens()),
    output: calls.reduce((sum, call) => sum + tokensOf(call.arguments), tokensOf(thoughts) + tokensOf(text)),
  }
  return jsonTextOf({ ...emptyMessage(answer, context, figures), content, ...stopOf(end, refusal) })
}

/** A message of which nothing has come yet, with every member of its type. */
export const emptyMessage = ({ id }: Members, { model, requestId }: AnswerContext, figures: TokenFigures): object => ({
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

/** Of an upstream that has told no usage. */
export const estimated = (input: number): TokenFigures => ({
  input,
  cacheRead: 0,
  cacheWrite: 0,
  output: 0,
  reasoning: undefined,
})

export const textBlock = (): object => ({ type: 'text', text: '', citations: null })

export const thinkingBlock = (thinking: string, signature: string): object => ({
  type: 'thinking',
  thinking,
  signature,
})

export const toolUseBlock = (id: string, name: string, input: object, { toolNames }: AnswerContext): object => ({
  type: 'tool_use',
  id,
  name: toolNames.original(name),
  input,
  caller: { type: 'direct' },
})

/** '' for a member that is absent or null. */
export function textIn(members: Members, name: string): string {
  const value = members[name]
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string') throw malformedResponse(`The upstream answered with a '${name}' that is no text.`)
  return value
}

interface Call {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

function callsIn(message: Members, texts: JsonTexts | undefined, context: AnswerContext): Call[] {
  const { tool_calls: calls, function_call: functionCall } = message
  if (Array.isArray(calls) && calls.length > 0) {
    return calls.map((call: unknown, index) => {
      const spelled = texts?.at('tool_calls', index, 'function', 'arguments')
      return callOf(readCall(call), spelled, madeCallId(index, context))
    })
  }
  if (!isRecord(functionCall)) return []
  return [callOf(readCall({ function: functionCall }), texts?.at('function_call', 'arguments'), FUNCTION_CALL_ID)]
}

/** Of the one call that the older form of chat answers has. */
export const FUNCTION_CALL_ID = 'call_0'

/** For a call that the upstream gives none: the client names it by its id. */
export const madeCallId = (index: number, { requestId }: Pick<AnswerContext, 'requestId'>): string =>
  `call_${requestId}_${index}`

function callOf({ id, name, text, isCustom }: CallPiece, spelled: JsonTexts | undefined, madeId: string): Call {
  if (name === undefined || isCustom) throw malformedResponse('The upstream called no function by its name.')
  // Some upstreams write an object where there should be its text.
  const json = isRecord(text) ? spelled?.text.text : (text ?? '')
  if (typeof json !== 'string') throw malformedResponse('The upstream answered with arguments that are no text.')
  return { id: id ?? madeId, name, arguments: json }
}

const toolUseOf = (call: Call, context: AnswerContext): object =>
  toolUseBlock(call.id, call.name, inputOfArguments(call.arguments), context)
