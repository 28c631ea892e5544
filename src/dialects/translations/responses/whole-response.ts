import type { AnswerEnd } from '../stop-reasons.js'
import type { TokenFigures } from '../usage.js'
import { END_STATES, type ResponseEnvelope } from './envelope.js'
import {
  callItem,
  type CalledTool,
  callStatus,
  isWithoutArguments,
  type ItemStatus,
  messageItem,
  NO_ARGUMENTS,
  type OutputPart,
  reasoningItem,
} from './output-items.js'

/** One item of an answer, before it has an id. */
export type AnswerEntry =
  | { readonly kind: 'reasoning'; readonly summaries: readonly string[]; readonly sealed: string | undefined }
  | { readonly kind: 'message'; readonly parts: OutputPart[] }
  | { readonly kind: 'call'; readonly tool: CalledTool; readonly text: string }

interface WholeAnswer {
  readonly entries: readonly AnswerEntry[]
  readonly end: AnswerEnd
  readonly usage: TokenFigures | undefined
  readonly serviceTier?: string | undefined
}

/** JSON text of a response that is over. Calls of a refused turn are not handed on: a client would make them. */
export function wholeResponse(envelope: ResponseEnvelope, { entries, end, usage, serviceTier }: WholeAnswer): string {
  const isCut = end === 'truncated' || end === 'refused'
  const output = entries.flatMap((entry, index) => {
    if (end === 'refused' && entry.kind === 'call') return []
    const status = isCut && index === entries.length - 1 ? 'incomplete' : 'completed'
    return [JSON.stringify(itemOf(entry, index, status, envelope))]
  })
  return envelope.text({ ...END_STATES[end], output, usage, serviceTier })
}

function itemOf(entry: AnswerEntry, index: number, status: ItemStatus, envelope: ResponseEnvelope): object {
  if (entry.kind === 'reasoning') return reasoningItem(envelope.itemId('rs', index), entry.summaries, entry.sealed)
  if (entry.kind === 'message') return messageItem(envelope.itemId('msg', index), status, entry.parts)
  const { tool, text } = entry
  const id = envelope.itemId(tool.isCustom ? 'ctc' : 'fc', index)
  const shown = isWithoutArguments(tool, text, status) ? NO_ARGUMENTS : text
  return callItem(id, callStatus(tool, text, status), tool, shown)
}
