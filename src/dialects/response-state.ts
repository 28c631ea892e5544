import { type ByteSource, ProviderResponse } from '../core/byte-stream.js'
import type { Usage } from '../core/request-context.js'
import { tokensOf } from '../core/token-counter.js'
import { RelayedUsage, reportedUsage, withUsageFromEnds } from '../core/usage.js'
import type { UsageOutcome } from '../core/usage-record.js'
import { isRecord } from '../core/validation-rules.js'
import type { UpstreamResponse } from '../upstream/exchange.js'
import { type HeaderAllowList, jsonResponse } from '../upstream/upstream-response.js'
import { idsOf, KEPT_RESPONSE_BYTES, type ResponseIds } from './kept-answers.js'

type Response = Readonly<Record<string, unknown>>

/** A response that is not being made any more. */
export interface EndedResponse extends ResponseIds {
  readonly outcome: UsageOutcome
  /** undefined where nothing is known of it. */
  readonly usage: Usage | undefined
}

/** What has become of a response; `unknown`: its upstream does not have it, or not any more. */
export type ResponseProgress = EndedResponse | 'running' | 'unknown'

/** Called before the caller is shown the end of a response that may have been made in the background. Never rejects. */
export type EndOfResponse = (response: EndedResponse) => Promise<void>

/** What an upstream that failed, and reports nothing, has used. */
const NOTHING: Usage = { units: { input_tokens: 0, output_tokens: 0, total_tokens: 0 }, estimated: true }

/** What a response says that it has used; undefined where that is to be estimated. */
export const usageIn = ({ usage, status }: Response): Usage | undefined =>
  reportedUsage(usage) ?? (status === 'failed' ? NOTHING : undefined)

/** Members of items, and of their parts, in which text stands. */
const TEXT_MEMBERS = ['content', 'text', 'refusal', 'summary', 'arguments', 'input', 'output'] as const

export function textTokensIn(value: unknown): number {
  if (typeof value === 'string') return tokensOf(value)
  if (Array.isArray(value)) return value.reduce<number>((sum, part: unknown) => sum + textTokensIn(part), 0)
  if (!isRecord(value)) return 0
  return TEXT_MEMBERS.reduce((sum, name) => sum + textTokensIn(value[name]), 0)
}

/** Whether a response is made while its caller does not wait for it. Some upstreams do not know `background`, and answer at once. */
export const isInBackground = ({ status, background }: Response): boolean =>
  background !== false && (status === 'queued' || status === 'in_progress')

const OUTCOMES: ReadonlyMap<unknown, UsageOutcome> = new Map([
  ['completed', 'ok'],
  ['incomplete', 'ok'],
  ['failed', 'upstream_failed'],
  ['cancelled', 'caller_left'],
])

/** Undefined while the response is made. */
export function endOf(response: Response): EndedResponse | undefined {
  const outcome = OUTCOMES.get(response['status'])
  const ids = idsOf(response)
  if (outcome === undefined || ids === undefined) return undefined
  return { ...ids, outcome, usage: usageIn(response) ?? countedUsage(response['output']) }
}

/** Of the answer alone, as what was asked is not seen. Where none is shown it may have been thought about: 0 would say that it was not. */
function countedUsage(output: unknown): Usage | undefined {
  const tokens = textTokensIn(output)
  return tokens === 0 ? undefined : { units: { output_tokens: tokens }, estimated: true }
}

/**
 * What has become of a response, in the answer to a poll. Of one that is too large to be held, only the beginning and the end are read: it is
 * over if there are figures.
 */
export async function progressIn(
  response: UpstreamResponse,
  allowed: HeaderAllowList,
  responseId: string,
): Promise<EndedResponse | 'running'> {
  const { response: answer, value } = await jsonResponse(response, allowed, KEPT_RESPONSE_BYTES)
  if (value !== undefined) return endOf(value) ?? 'running'
  const usage = new RelayedUsage()
  const { body } = withUsageFromEnds(answer, usage)
  if (!Buffer.isBuffer(body)) await drained(body)
  const { reportedUsage: reported } = usage
  return reported === undefined ? 'running' : { responseId, itemIds: [], outcome: 'ok', usage: reported }
}

const drained = (source: ByteSource): Promise<void> =>
  new Promise((resolve, reject) => {
    source.start({ data: () => undefined, end: resolve, fail: reject })
  })

/** A response that its upstream keeps, byte for byte; it is looked into where its end is not yet known. */
export async function relayKeptResponse(
  response: UpstreamResponse,
  allowed: HeaderAllowList,
  ended: EndOfResponse | undefined,
): Promise<ProviderResponse> {
  if (ended === undefined) return (await jsonResponse(response, allowed)).response
  const { response: answer, value } = await jsonResponse(response, allowed, KEPT_RESPONSE_BYTES)
  const end = value === undefined || value['background'] === false ? undefined : endOf(value)
  if (end !== undefined) await ended(end)
  return answer
}
