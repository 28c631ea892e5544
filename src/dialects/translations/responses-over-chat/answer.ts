import type { JsonTexts } from '../../../core/json-text.js'
import { isRecord } from '../../../core/validation-rules.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { TranslationTarget } from '../../translator.js'
import type { Members } from '../members.js'
import type { ResponseEnvelope } from '../responses/envelope.js'
import type { OutputPart } from '../responses/output-items.js'
import type { ReasoningWishes } from '../responses/request-draft.js'
import { type AnswerEntry, wholeResponse } from '../responses/whole-response.js'
import { endOfChat } from '../stop-reasons.js'
import { figuresOfChat, type TokenFigures } from '../usage.js'
import { sealReasoning } from './reasoning-seal.js'

/** What an answer depends on beside itself. */
export interface AnswerContext {
  readonly envelope: ResponseEnvelope
  readonly wishes: Readonly<ReasoningWishes>
  readonly target: TranslationTarget
}

/** Missing figures stay missing. */
export const usageOf = ({ usage }: Members): TokenFigures | undefined =>
  isRecord(usage) ? figuresOfChat(usage) : undefined

/** The class in which the upstream has served the request, where it says so. */
export const tierOf = ({ service_tier: tier }: Members): string | undefined =>
  typeof tier === 'string' ? tier : undefined

const FIELDS_OF_THOUGHTS = ['reasoning_content', 'reasoning'] as const

/** What the model thinks, in a message or a delta, whichever of its two names the upstream has for it. */
export function thoughtsIn(message: Members): string {
  for (const name of FIELDS_OF_THOUGHTS) {
    const text = message[name]
    if (typeof text === 'string' && text !== '') return text
  }
  return ''
}

/** What a client sends back, if it wants it or the upstream does. */
export function sealedThoughts(text: string, { wishes, target }: AnswerContext): string | undefined {
  const isSealed = wishes.isSealWanted || target.facts.reasoningField !== undefined
  return isSealed && text !== '' ? sealReasoning(target.seals, text) : undefined
}

/** A chat completion as a response; `texts` is the same with numbers as they came. Throws `upstream_failed`. */
export function responseOfChat(answer: Members, texts: JsonTexts, context: AnswerContext): string {
  const choice = Array.isArray(answer['choices']) ? (answer['choices'] as readonly unknown[])[0] : undefined
  const message = isRecord(choice) ? choice['message'] : undefined
  if (!isRecord(choice) || !isRecord(message)) throw malformedResponse('The upstream answered without a message.')
  const { finish_reason: reason } = choice
  if (typeof reason !== 'string') throw malformedResponse('The upstream answered without a finish reason.')
  const calls = callsIn(message, texts, context)
  const refusal = typeof message['refusal'] === 'string' ? message['refusal'] : ''
  return wholeResponse(context.envelope, {
    entries: [...reasoningIn(message, context), ...messageIn(message, refusal), ...calls],
    end: endOfChat(reason, calls.length > 0, refusal !== ''),
    usage: usageOf(answer),
    serviceTier: tierOf(answer),
  })
}

function reasoningIn(message: Members, context: AnswerContext): readonly AnswerEntry[] {
  const text = thoughtsIn(message)
  if (text === '') return []
  const summaries = context.wishes.isSummaryWanted ? [text] : []
  return [{ kind: 'reasoning', summaries, sealed: sealedThoughts(text, context) }]
}

function messageIn({ content }: Members, refusal: string): readonly AnswerEntry[] {
  const parts: OutputPart[] = []
  if (typeof content === 'string' && content !== '') parts.push({ type: 'output_text', text: content })
  if (refusal !== '') parts.push({ type: 'refusal', refusal })
  return parts.length === 0 ? [] : [{ kind: 'message', parts }]
}

function callsIn({ tool_calls: calls }: Members, texts: JsonTexts, { envelope }: AnswerContext): AnswerEntry[] {
  if (!Array.isArray(calls)) return []
  const spelled = texts.at('choices', 0, 'message', 'tool_calls')
  return calls.map((call: unknown, index) => {
    const { isCustom, name, text, id } = readCall(call)
    if (name === undefined) throw malformedResponse('The upstream called a tool without a name.')
    const callId = id ?? envelope.callId(index)
    // Some upstreams write an object where there should be its text.
    const object = isRecord(text) ? spelled?.at(index, 'function', 'arguments')?.text.text : undefined
    return { kind: 'call', tool: { isCustom, name, callId }, text: object ?? (typeof text === 'string' ? text : '') }
  })
}

/** One call of a message, or a piece of it in a delta. Empty words are no news. */
export interface CallPiece {
  readonly isCustom: boolean
  readonly id: string | undefined
  readonly name: string | undefined
  readonly text: unknown
}

export function readCall(call: unknown): CallPiece {
  if (!isRecord(call)) throw malformedResponse('The upstream called a tool in a form that is not known.')
  const isCustom = isRecord(call['custom'])
  const tool = isCustom ? call['custom'] : call['function']
  const { name, arguments: args, input } = isRecord(tool) ? tool : {}
  return { isCustom, id: wordOf(call['id']), name: wordOf(name), text: isCustom ? input : args }
}

const wordOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
