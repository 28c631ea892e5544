import type { JsonTexts } from '../../../core/json-text.js'
import { AnswerCallIds } from '../../made-ids.js'
import { isRecord } from '../../../core/validation-rules.js'
import { malformedResponse } from '../../../upstream/upstream-response.js'
import type { Seals, TranslationTarget } from '../../translator.js'
import { type Members, parsedOr } from '../members.js'
import type { ResponseEnvelope } from '../responses/envelope.js'
import type { OutputPart } from '../responses/output-items.js'
import type { ReasoningWishes } from '../responses/request-draft.js'
import { type AnswerEntry, wholeResponse } from '../responses/whole-response.js'
import { endOfChat } from '../stop-reasons.js'
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
import { completeFigures } from '../usage.js'

/** What an answer depends on beside itself. */
export interface ResponseContext {
  readonly envelope: ResponseEnvelope
  readonly wishes: Readonly<ReasoningWishes>
  readonly target: TranslationTarget
}

/** The class in which the upstream has served the request, where it says so. */
export const tierOf = ({ service_tier: tier }: Members): string | undefined =>
  typeof tier === 'string' ? tier : undefined

/**
 * What a client sends back: where it wants that, where the upstream reads it, and where the response is not kept. An item without a seal
 * would then be a reference to what is kept nowhere.
 */
export function sealedThoughts(text: string, { wishes, target }: ResponseContext): string | undefined {
  const isSealed = wishes.isSealWanted || target.facts.reasoningField !== undefined || target.kept?.isStored !== true
  // Unlike what messages upstreams thought, which is sealed as a list of blocks, it is an object.
  return isSealed && text !== '' ? target.seals.seal(JSON.stringify({ reasoning: text })) : undefined
}

/** undefined for what was not sealed so, or not for this owner. */
export function openedThoughts(sealed: string, seals: Seals): string | undefined {
  const value = parsedOr(seals.open(sealed))
  return isRecord(value) && typeof value['reasoning'] === 'string' ? value['reasoning'] : undefined
}

/** A chat completion as a response; `texts` is the same with numbers as they came. Throws `upstream_failed`. */
export function responseOfChat(answer: Members, texts: JsonTexts, context: ResponseContext): string {
  const { message, finishReason } = messageIn(answer)
  const pieces = callsIn(message, texts.at('choices', 0, 'message'))
  const ids = new AnswerCallIds(context.envelope.ids)
  const calls = pieces.map((call, index) => entryOf(call, ids.next(call.id, index)))
  const refusal = refusalIn(message)
  const heard = { hasCalls: calls.length > 0, hasRefusal: refusal !== '' }
  const end = endOfChat(finishReason, heard, context.target.unknownWords)
  checkCalls(pieces, end)
  return wholeResponse(context.envelope, {
    // Calls beside a refusal are not handed on: it is the last that was said.
    entries: [...reasoningIn(message, context), ...saidIn(message, refusal), ...(refusal === '' ? calls : [])],
    end,
    usage: completeFigures(usageIn(answer)),
    serviceTier: tierOf(answer),
  })
}

function reasoningIn(message: Members, context: ResponseContext): readonly AnswerEntry[] {
  const text = thoughtsIn(message)
  if (text === '') return []
  const summaries = context.wishes.isSummaryWanted ? [text] : []
  return [{ kind: 'reasoning', summaries, sealed: sealedThoughts(text, context) }]
}

function saidIn(message: Members, refusal: string): readonly AnswerEntry[] {
  const text = contentIn(message)
  const parts: OutputPart[] = []
  if (text !== '') parts.push({ type: 'output_text', text })
  if (refusal !== '') parts.push({ type: 'refusal', refusal })
  return parts.length === 0 ? [] : [{ kind: 'message', parts }]
}

function entryOf({ isCustom, name, text }: CallPiece, callId: string): AnswerEntry {
  if (name === undefined) throw malformedResponse('The upstream called a tool without a name.')
  return { kind: 'call', tool: { isCustom, name, callId }, text }
}
