import { JsonBody } from '../../../core/json-body.js'
import { jsonTextOf, JsonTexts } from '../../../core/json-text.js'
import type { ResponsesFields } from '../../openai-responses.js'
import type { TranslationTarget } from '../../translator.js'
import type { Verdicts } from '../../verdicts.js'
import { PathMap } from '../caller-paths.js'
import { isAbsent, listAt, objectAt, optionalTextAt } from '../members.js'
import { SEND_ITEMS } from './conversation.js'
import type { PartReading } from './parts.js'

/** Translates one field. What is null or absent is not shown to it. */
export type FieldHandler<Draft> = (value: unknown, draft: Draft, name: string) => void

/** The fields of a request and what becomes of each. */
export type FieldTable<Draft> = Readonly<Record<string, FieldHandler<Draft>>>

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

  /** Shows each field to its handler; fields that have none are dropped. Throws `invalid_request`. */
  translateFields(table: FieldTable<this>): void {
    for (const [name, value] of Object.entries(this.body.fields)) {
      if (isAbsent(value)) continue
      if (Object.hasOwn(table, name)) table[name]?.(value, this, name)
      else this.verdicts.drop(name)
    }
  }

  /** The request as it is sent. */
  written<UpstreamFields extends object>(fields: UpstreamFields): JsonBody<UpstreamFields> {
    return JsonBody.written(jsonTextOf(fields), fields)
  }
}

/** Means nothing there, and nothing is lost by it; or is read elsewhere. */
export const silent = (): void => undefined

export const dropped: FieldHandler<ResponsesDraft> = (_value, { verdicts }, name) => {
  verdicts.drop(name)
}

/** The same field. */
export const passed: FieldHandler<ResponsesDraft> = (value, draft, name) => {
  draft.set(name, value, name)
}

/** Refuses every value but the one that means what an upstream of another dialect does anyway. */
export const refusedUnless =
  (harmless: (value: unknown) => boolean, wayOut: string): FieldHandler<ResponsesDraft> =>
  (value, { verdicts }, name) => {
    if (!harmless(value)) verdicts.refuse(name, wayOut)
  }

const never = (): boolean => false
const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0

const include: FieldHandler<ResponsesDraft> = (value, { verdicts, wishes }) => {
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
  context_management: refusedUnless(isEmptyList, 'Shorten the conversation yourself.'),
  conversation: refusedUnless(never, SEND_ITEMS),
  include,
  input: silent,
  instructions: silent,
  // Said back in the answer.
  metadata: silent,
  model: silent,
  moderation: refusedUnless(never, 'Send the request without it.'),
  previous_response_id: refusedUnless(never, SEND_ITEMS),
  prompt: refusedUnless(never, 'Send the instructions and items of the prompt themselves.'),
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
