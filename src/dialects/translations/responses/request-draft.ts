import { JsonBody } from '../../../core/json-body.js'
import { jsonTextOf, JsonTexts } from '../../../core/json-text.js'
import type { ResponsesFields } from '../../openai-responses.js'
import type { TranslationTarget } from '../../translator.js'
import type { Verdicts } from '../../verdicts.js'
import { PathMap } from '../caller-paths.js'
import { applyFieldTable, elsewhere, type FieldRule, type FieldTable, refused, refusedUnless } from '../field-table.js'
import { isAbsent, isEmpty, listAt, objectAt, optionalTextAt } from '../members.js'
import type { Tool } from '../tools.js'
import { SEND_ITEMS } from './conversation.js'
import type { PartReading } from './parts.js'

/** What the caller wants to be shown of the thoughts. */
export interface ReasoningWishes {
  /** A summary of them. */
  isSummaryWanted: boolean
  /** What a client without a memory of its own sends back. */
  isSealWanted: boolean
}

/** The upstream's request while it is made, field by field. */
export class ResponsesDraft implements PartReading {
  /** Members of the upstream's request; undefined ones are left out. */
  readonly upstream: Record<string, unknown> = {}
  readonly paths = new PathMap()
  readonly wishes: ReasoningWishes = { isSummaryWanted: false, isSealWanted: false }
  tools: readonly Tool[] = []
  /** The request as it was spelled. */
  readonly texts: JsonTexts

  constructor(
    readonly body: JsonBody<ResponsesFields>,
    readonly target: TranslationTarget,
    readonly verdicts: Verdicts,
  ) {
    this.texts = new JsonTexts(body.bytes)
  }

  get facts(): TranslationTarget['facts'] {
    return this.target.facts
  }

  /** What the caller calls an item of the input. */
  itemPath(index: number): string {
    return this.target.kept?.pathOf?.(index) ?? `input[${index}]`
  }

  /** A member of the upstream's request that comes from a field of the caller. */
  set(name: string, value: unknown, callerPath: string): void {
    this.upstream[name] = value
    this.paths.set(name, callerPath)
  }

  /** Throws `invalid_request`. */
  translateFields(table: FieldTable<this>): void {
    applyFieldTable({ ...this.body.fields }, table, this)
  }

  /** The request as it is sent. */
  written<UpstreamFields extends object>(fields: UpstreamFields): JsonBody<UpstreamFields> {
    return JsonBody.written(jsonTextOf(fields), fields)
  }
}

const include: FieldRule<ResponsesDraft> = (value, { verdicts, wishes }) => {
  listAt(value, 'include').forEach((word, index) => {
    const path = `include[${index}]`
    if (word === 'reasoning.encrypted_content') wishes.isSealWanted = true
    else if (word === 'message.output_text.logprobs') verdicts.refuse(path, 'Log probabilities are not translated.')
    else verdicts.drop(path)
  })
}

/** Fields with the same fate whatever the upstream's dialect. */
export const COMMON_FIELDS: FieldTable<ResponsesDraft> = {
  background: refusedUnless((value) => value === false, 'Send the request without it, and wait or stream.'),
  context_management: refusedUnless(isEmpty, 'Shorten the conversation yourself.'),
  conversation: refused(SEND_ITEMS),
  include,
  input: elsewhere,
  instructions: elsewhere,
  // Said back in the answer.
  metadata: elsewhere,
  model: elsewhere,
  moderation: refused('Send the request without it.'),
  previous_response_id: refused(SEND_ITEMS),
  prompt: refused('Send the instructions and items of the prompt themselves.'),
  store: (value, { verdicts, target }) => {
    if (value === true && target.kept?.isStored !== true) verdicts.drop('store')
  },
  // No padding is added to events.
  stream_options: (value, { verdicts }) => {
    for (const [name, option] of Object.entries(objectAt(value, 'stream_options'))) {
      if (!isAbsent(option) && option !== false) verdicts.drop(`stream_options.${name}`)
    }
  },
  top_logprobs: refusedUnless((value) => value === 0, 'Log probabilities are not translated.'),
  truncation: refusedUnless((value) => value === 'disabled', 'Shorten the conversation yourself, and send disabled.'),
}

/** How much is thought, and what is shown of it, as the caller asks. */
export interface ReasoningAsked {
  readonly effort: string | undefined
  /** Path of the field that asks for a summary; undefined = none does. */
  readonly summaryPath: string | undefined
}

/** Reads `reasoning`. */
export function readReasoningAsked(value: unknown, { verdicts, wishes }: ResponsesDraft): ReasoningAsked {
  const reasoning = objectAt(value, 'reasoning')
  let summaryPath: string | undefined
  for (const [name, member] of Object.entries(reasoning)) {
    const path = `reasoning.${name}`
    if (isAbsent(member) || name === 'effort') continue
    // The name of before.
    if (name === 'summary' || name === 'generate_summary') summaryPath = path
    else if (name === 'mode') {
      if (member !== 'standard') verdicts.refuse(path, 'Only the mode standard is served.')
    } else if (name !== 'context' || member !== 'auto') verdicts.drop(path)
  }
  wishes.isSummaryWanted = summaryPath !== undefined
  const { effort } = reasoning
  return { effort: optionalTextAt(effort, 'reasoning.effort'), summaryPath }
}
