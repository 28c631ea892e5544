import { AlsoReads, Field } from '../core/dto.js'
import { GatewayError } from '../core/errors.js'
import {
  anyOf,
  anything,
  decimal,
  flag,
  integer,
  list,
  named,
  oneOf,
  optional,
  record,
  required,
  text,
} from '../core/validation-rules.js'
import type { ResponsesFields } from '../dialects/openai-responses.js'
import { REASONING_FIELDS } from '../limits/estimate-usage.js'
import type { KeptResponseCall } from '../providers/contract.js'

const nonBlank = text({ allowBlank: false })

/** Only what cannot be right is refused here; kinds of items and what they hold are the upstream's business. */
const item = named(
  'ResponseInputItem',
  'A message, a call of a tool, its answer, reasoning, or a reference to an item that is kept',
  record({
    type: optional(text()),
    id: optional(text()),
    role: optional(nonBlank),
    encrypted_content: anything,
    result: anything,
  }),
)

const tool = named('ResponseTool', 'A tool the model may call', record({ type: required(nonBlank) }))

const reasoning = named(
  'ResponseReasoning',
  'How much the model thinks, and whether it says so',
  record({ effort: optional(text()), summary: optional(text()) }),
)

const form = named('ResponseText', 'Form of the text', record({}))

const truncation = named('ResponseTruncation', 'What is left out of a long conversation', oneOf(['auto', 'disabled']))

const metadata = named('ResponseMetadata', 'Names and values of the caller', record({}))

/** Fields of the Responses API that can be judged without knowing the model; all others are relayed unchanged. */
@AlsoReads(...REASONING_FIELDS)
export class ResponsesRequestDto implements ResponsesFields {
  @Field(required(nonBlank), { description: 'Model identifier', example: 'gpt-5-mini' })
  readonly model!: string

  @Field(optional(anyOf('a string or an array', text(), list(item))), { description: 'What is asked' })
  readonly input?: unknown

  @Field(optional(text()), { description: 'What stands before the conversation' })
  readonly instructions?: string | null

  @Field(optional(flag), { default: false, description: 'Events instead of one answer' })
  readonly stream?: boolean | null

  @Field(optional(flag), { default: true, description: 'Whether the response is kept, for 30 days' })
  readonly store?: boolean | null

  @Field(optional(nonBlank), { description: 'A kept response of the same key, whose conversation goes on' })
  readonly previous_response_id?: string | null

  @Field(optional(list(tool)), { description: 'What the model may call' })
  readonly tools?: readonly unknown[] | null

  @Field(optional(flag), { description: 'Whether several tools may be called at once' })
  readonly parallel_tool_calls?: boolean | null

  @Field(optional(integer({ minimum: 1 })), { description: 'The longest answer, reasoning included' })
  readonly max_output_tokens?: number | null

  @Field(optional(decimal({ minimum: 0, maximum: 2 })), { description: 'Sampling temperature' })
  readonly temperature?: number | null

  @Field(optional(decimal({ minimum: 0, maximum: 1 })), { description: 'Nucleus sampling' })
  readonly top_p?: number | null

  @Field(optional(reasoning), { description: 'How much the model thinks' })
  readonly reasoning?: Readonly<Record<string, unknown>> | null

  @Field(optional(form), { description: 'Form of the text: format, verbosity' })
  readonly text?: Readonly<Record<string, unknown>> | null

  @Field(optional(truncation), { description: 'What happens when the conversation is too long' })
  readonly truncation?: string | null

  @Field(optional(metadata), { description: 'The caller’s own names and values' })
  readonly metadata?: Readonly<Record<string, unknown>> | null

  @Field(optional(flag), { description: 'Whether the response is made without a connection; needs store' })
  readonly background?: boolean | null

  @Field(optional(anything), { description: 'Only null: conversations are not served' })
  readonly conversation?: unknown
}

/** What an upstream may be told of a question about a response; SDKs spell lists with brackets. */
const QUERY_NAMES: ReadonlySet<string> = new Set(['include', 'include[]', 'after', 'before', 'limit', 'order'])

/** Those of events, beside. */
const STREAM_NAMES: ReadonlySet<string> = new Set(['include_obfuscation', 'starting_after', 'stream'])

/** A question about a response, or one that asks for its events. */
export interface FindResponseCall extends KeptResponseCall {
  readonly isStreamed: boolean
}

/** The same query without anything else: begins with `?`, or is empty. Throws `invalid_request` for what is not served. */
export function keptResponseQuery(query: Readonly<Record<string, unknown>>): string {
  if (streamIn(query)) {
    throw new GatewayError(
      'invalid_request',
      "Unsupported value: 'stream' is supported on GET /v1/responses/{id} only.",
      {
        param: 'stream',
        code: 'unsupported_value',
      },
    )
  }
  return passedQuery(query, (name) => QUERY_NAMES.has(name))
}

/** The query of a question that may ask for events. Throws `invalid_request` for a `stream` that is neither true nor false. */
export function findResponseQuery(
  query: Readonly<Record<string, unknown>>,
): Pick<FindResponseCall, 'query' | 'isStreamed'> {
  const isStreamed = streamIn(query)
  const isPassed = (name: string): boolean => QUERY_NAMES.has(name) || (isStreamed && STREAM_NAMES.has(name))
  return { query: passedQuery(query, isPassed), isStreamed }
}

function streamIn({ stream = 'false' }: Readonly<Record<string, unknown>>): boolean {
  if (stream === 'true' || stream === 'false') return stream === 'true'
  throw new GatewayError('invalid_request', "Invalid value: 'stream' must be true or false.", {
    param: 'stream',
    code: 'invalid_value',
  })
}

function passedQuery(query: Readonly<Record<string, unknown>>, isPassed: (name: string) => boolean): string {
  const passed = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (!isPassed(name)) continue
    for (const each of [value].flat()) if (typeof each === 'string') passed.append(name, each)
  }
  return passed.size === 0 ? '' : `?${passed.toString()}`
}
