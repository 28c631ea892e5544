import type { JsonTexts } from '../../../core/json-text.js'
import type { GatewayError } from '../../../core/errors.js'
import { isRecord } from '../../../core/validation-rules.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import { checkArguments } from '../cut-calls.js'
import { isAbsent, type Members, recordOr } from '../members.js'
import type { AnswerEnd } from '../stop-reasons.js'
import { figuresOfChat, type ReportedFigures } from '../usage.js'

/** Members of chat completions and of their chunks, as far as upstreams agree on them. */

/** '' and null say nothing. */
const wordOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

/** Why the model stopped, in a choice that says so. Throws `upstream_failed` where the upstream broke off. */
export function finishReasonIn(choice: Members): string | undefined {
  const reason = wordOf(choice['finish_reason'])
  if (reason !== undefined && BROKEN_OFF.has(reason)) throw brokenOff()
  return reason
}

/** Words of upstreams that broke off: what they have said is no answer. */
const BROKEN_OFF: ReadonlySet<string> = new Set(['error', 'network_error', 'abort', 'insufficient_system_resource'])

/** Without the upstream's own words, which may name the account. */
const brokenOff = (): GatewayError => malformedResponse('The upstream reported an error.')

/** Some upstreams put an error beside what they said until then. */
function assertNoError({ error }: Members): void {
  if (!isEmpty(error)) throw brokenOff()
}

/** What a whole answer says, and why it ended. Throws `upstream_failed` for one without. */
export function messageIn(answer: Members): { readonly message: Members; readonly finishReason: string } {
  const { choices } = answer
  assertNoError(answer)
  const choice = Array.isArray(choices) ? (choices as readonly unknown[])[0] : undefined
  const message = isRecord(choice) ? choice['message'] : undefined
  if (!isRecord(choice) || !isRecord(message)) throw malformedResponse('The upstream answered without a message.')
  const finishReason = finishReasonIn(choice)
  if (finishReason === undefined) throw malformedResponse('The upstream answered without a finish reason.')
  return { message, finishReason }
}

/** The first choice of a chunk, if it has one; no others are asked for. */
export function choiceIn(chunk: Members): Members | undefined {
  const { choices } = chunk
  assertNoError(chunk)
  if (isAbsent(choices)) return undefined
  if (!Array.isArray(choices)) throw malformedResponse('The upstream sent choices that are no list.')
  const choice = (choices as unknown[]).find((other) => !isRecord(other) || (other['index'] ?? 0) === 0)
  if (choice === undefined) return undefined
  if (!isRecord(choice)) throw malformedResponse('The upstream sent a choice that is no object.')
  return choice
}

/** What a chunk's choice adds; some upstreams leave it out where that is nothing. */
export function deltaIn({ delta }: Members): Members {
  if (isRecord(delta)) return delta
  if (isEmpty(delta)) return {}
  throw malformedResponse('The upstream sent a delta that is no object.')
}

/** Missing figures stay missing. */
export const usageIn = ({ usage }: Members): ReportedFigures | undefined =>
  isRecord(usage) ? figuresOfChat(usage) : undefined

/** Under the name that most upstreams use, or the other; some say the same under both. */
export const thoughtsIn = ({ reasoning_content: thoughts, reasoning }: Members): string =>
  wordOf(thoughts) ?? wordOf(reasoning) ?? ''

/** What a message or a delta says: most upstreams write a text, and some a list of parts, of which the texts count. */
export function contentIn({ content }: Members): string {
  if (typeof content === 'string') return content
  if (isAbsent(content)) return ''
  if (!Array.isArray(content)) throw malformedResponse("The upstream answered with a 'content' that is no text.")
  return content.map((part: unknown) => (isRecord(part) && isText(part) ? part.text : '')).join('')
}

/** Why the model refused, or a piece of it; '' where it did not. */
export function refusalIn({ refusal }: Members): string {
  if (isAbsent(refusal)) return ''
  if (typeof refusal !== 'string') throw malformedResponse("The upstream answered with a 'refusal' that is no text.")
  return refusal
}

const isText = (part: Members): part is Members & { readonly text: string } =>
  part['type'] === 'text' && typeof part['text'] === 'string'

/** One call of a message, or a piece of it in a delta. */
export interface CallPiece {
  readonly index: number | undefined
  readonly isCustom: boolean
  /** Of the older form of chat, which has one call, and no id for it. */
  readonly isLegacy: boolean
  readonly id: string | undefined
  readonly name: string | undefined
  /** Of the input, in the spelling of the upstream; '' = none. */
  readonly text: string
}

/**
 * The calls of a message, or their pieces in a delta, in the form of today or in the older one; `spelled` is the message as it came.
 * Throws `upstream_failed` for what is no call.
 */
export function callsIn(
  { tool_calls: calls, function_call: older }: Members,
  spelled?: JsonTexts,
): readonly CallPiece[] {
  if (!isEmpty(calls)) {
    if (!Array.isArray(calls)) throw malformedResponse('The upstream answered with calls of tools that are no list.')
    return calls.map((call: unknown, index) => callOf(call, (...path) => spelled?.at('tool_calls', index, ...path)))
  }
  if (!isRecord(older)) {
    if (isEmpty(older)) return []
    throw malformedResponse('The upstream called a tool in a form that is not known.')
  }
  const call = callOf({ index: 0, function: older }, (_tool, member) => spelled?.at('function_call', member))
  return [{ ...call, isLegacy: true }]
}

/** Throws `upstream_failed` for a whole answer in which a call is cut, and whose end does not say so, or goes on behind its arguments. */
export function checkCalls(calls: readonly CallPiece[], end: AnswerEnd): void {
  for (const { isCustom, text } of calls) if (!isCustom) checkArguments(text, end)
}

/** Some upstreams write an empty value of any kind where they mean none. */
const isEmpty = (value: unknown): boolean =>
  isAbsent(value) || value === '' || (typeof value === 'object' && Object.keys(value).length === 0)

type InputSpelling = (tool: 'custom' | 'function', member: 'input' | 'arguments') => JsonTexts | undefined

function callOf(call: unknown, spelled: InputSpelling): CallPiece {
  if (!isRecord(call)) throw malformedResponse('The upstream called a tool in a form that is not known.')
  const { index, id, custom } = call
  const isCustom = isRecord(custom)
  const { name, arguments: args, input } = recordOr(isCustom ? custom : call['function'])
  return {
    index: typeof index === 'number' ? index : undefined,
    isCustom,
    isLegacy: false,
    id: wordOf(id),
    name: wordOf(name),
    text: isCustom
      ? inputText(input, () => spelled('custom', 'input'))
      : inputText(args, () => spelled('function', 'arguments')),
  }
}

/** Some upstreams write an object where there should be its text. */
function inputText(value: unknown, spelled: () => JsonTexts | undefined): string {
  if (typeof value === 'string') return value
  if (isAbsent(value)) return ''
  if (!isRecord(value)) throw malformedResponse('The upstream called a tool with an input that is no text.')
  return spelled()?.text.text ?? JSON.stringify(value)
}
