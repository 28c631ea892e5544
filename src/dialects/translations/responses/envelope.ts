import type { JsonBody } from '../../../core/json-body.js'
import { jsonTextOf, JsonTexts } from '../../../core/json-text.js'
import { nowSeconds } from '../../../core/time.js'
import { MadeIds } from '../../made-ids.js'
import { isRecord } from '../../../core/validation-rules.js'
import type { MadeResponse } from '../../kept-answers.js'
import type { ResponsesFields } from '../../openai-responses.js'
import type { KeptTurn } from '../../translator.js'
import { isAbsent, type Members, recordOr } from '../members.js'
import type { AnswerEnd } from '../stop-reasons.js'
import type { Tool } from '../tools.js'
import { responseUsage, type TokenFigures } from '../usage.js'

/** The response as it stands. */
export interface ResponseState {
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed'
  /** JSON texts of the items. */
  readonly output?: readonly string[]
  readonly usage?: TokenFigures | undefined
  readonly incompleteReason?: 'max_output_tokens' | 'content_filter' | undefined
  readonly error?: { readonly code: string; readonly message: string }
  /** The upstream's word for what it used; undefined = what was asked for. */
  readonly serviceTier?: string | undefined
}

/** The status of a response by the end of its answer. */
export const END_STATES: Readonly<Record<AnswerEnd, Pick<ResponseState, 'status' | 'incompleteReason'>>> = {
  ended: { status: 'completed' },
  called: { status: 'completed' },
  truncated: { status: 'incomplete', incompleteReason: 'max_output_tokens' },
  refused: { status: 'incomplete', incompleteReason: 'content_filter' },
}

/** What of every response is known before its answer: its ids, and the request, which is said back in it. */
export class ResponseEnvelope {
  readonly ids = new MadeIds()
  private readonly createdAt = nowSeconds()
  private saidBack: string | undefined
  /** Once it is over, unless it failed. */
  made: MadeResponse | undefined

  constructor(
    private readonly body: JsonBody<ResponsesFields>,
    private readonly kept: KeptTurn | undefined,
    private readonly tools: readonly Tool[],
  ) {}

  /** Of the item with this number in the output. */
  itemId(prefix: 'msg' | 'rs' | 'fc' | 'ctc', index: number): string {
    return this.ids.id(prefix, index + 1)
  }

  /** JSON text of the response; remembered where it is over. */
  text({ status, output = [], usage, incompleteReason, error, serviceTier }: ResponseState): string {
    const responseId = this.ids.id('resp', 0)
    const state = {
      id: responseId,
      object: 'response',
      created_at: this.createdAt,
      status,
      completed_at: status === 'completed' ? nowSeconds() : null,
      error: error ?? null,
      incomplete_details: incompleteReason === undefined ? null : { reason: incompleteReason },
      service_tier: serviceTier ?? askedTier(this.body.fields),
      usage: usage === undefined ? null : responseUsage(usage),
    }
    this.saidBack ??= jsonTextOf(saidBack(this.body, this.kept, this.tools)).slice(1)
    const before = `${JSON.stringify(state).slice(0, -1)},"output":[`
    const after = `],${this.saidBack}`
    if (status === 'completed' || status === 'incomplete') this.made = { responseId, response: before + after, output }
    return before + output.join(',') + after
  }
}

/** `auto` is what the project is set to; a response says what was used. */
function askedTier(fields: object): unknown {
  const tier = 'service_tier' in fields ? fields.service_tier : null
  return isAbsent(tier) || tier === 'auto' ? 'default' : tier
}

/** What was asked, with the defaults of what was left out; schemas as they were spelled, and `tools` as they were sent. */
function saidBack(
  { fields, bytes }: JsonBody<ResponsesFields>,
  kept: KeptTurn | undefined,
  tools: readonly Tool[],
): object {
  const asked: Members = { ...fields }
  const texts = new JsonTexts(bytes)
  const reasoning = recordOr(asked['reasoning'])
  return {
    background: false,
    instructions: asked['instructions'] ?? null,
    max_output_tokens: asked['max_output_tokens'] ?? null,
    metadata: asked['metadata'] ?? {},
    model: fields.model,
    parallel_tool_calls: asked['parallel_tool_calls'] ?? true,
    previous_response_id: kept?.previousResponseId ?? null,
    prompt_cache_key: asked['prompt_cache_key'] ?? null,
    prompt_cache_retention: asked['prompt_cache_retention'] ?? null,
    reasoning: {
      effort: reasoning['effort'] ?? null,
      summary: reasoning['summary'] ?? reasoning['generate_summary'] ?? null,
    },
    safety_identifier: asked['safety_identifier'] ?? null,
    store: kept?.isStored ?? false,
    temperature: asked['temperature'] ?? 1,
    text: textSaidBack(recordOr(asked['text']), texts),
    tool_choice: asked['tool_choice'] ?? 'auto',
    tools: toolsSaidBack(fields.tools, tools, texts),
    top_logprobs: 0,
    top_p: asked['top_p'] ?? 1,
    truncation: 'disabled',
    user: asked['user'] ?? null,
  }
}

function textSaidBack({ format, verbosity }: Members, texts: JsonTexts): object {
  if (!isRecord(format)) return { format: { type: 'text' }, verbosity: verbosity ?? 'medium' }
  const schema = texts.at('text', 'format', 'schema')?.text
  const defaults = format['type'] === 'json_schema' ? { description: null, strict: false } : {}
  const spelled = schema === undefined ? {} : { schema }
  return { format: { ...defaults, ...format, ...spelled }, verbosity: verbosity ?? 'medium' }
}

function toolsSaidBack(asked: ResponsesFields['tools'], sent: readonly Tool[], texts: JsonTexts): readonly object[] {
  return (asked ?? []).map((value, index) => {
    const tool = recordOr(value)
    const sentTool = sent[index]
    if (sentTool?.kind !== 'function') return { description: null, format: { type: 'text' }, ...tool }
    const parameters = isAbsent(tool['parameters']) ? null : texts.at('tools', index, 'parameters')?.text
    return { ...tool, description: tool['description'] ?? null, parameters, strict: sentTool.strict }
  })
}
