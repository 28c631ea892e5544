import type { GatewayError } from '../../core/gateway-error.js'
import { scrubbedJson } from '../../core/message-text.js'
import { readRefusal, type RefusalBody } from '../../upstream/upstream-error.js'
import type { UpstreamResponse } from '../../upstream/upstream-exchange.js'
import type { CallContext } from '../call-context.js'

/** Older accounts report an empty balance as a bad request; there is no code to tell it by. */
const EMPTY_BALANCE = /^Your credit balance is too low/

/** Reads `{type: "error", error: {type, message}, request_id}`; the request id becomes ours. */
export function m1Refusal(
  response: UpstreamResponse,
  { call, callersKey, credentials }: CallContext,
): Promise<GatewayError> {
  return readRefusal(response, { read: (body) => readBody(body, call.requestId), callersKey, secret: credentials })
}

function readBody(body: Record<string, unknown>, requestId: string): RefusalBody | undefined {
  const { error } = body
  if (typeof error !== 'object' || error === null) return undefined
  const { message } = error as Record<string, unknown>
  if (typeof message !== 'string') return undefined
  const relayed = { ...body, type: 'error', request_id: requestId }
  return { message, relayable: scrubbedJson(relayed), quota: EMPTY_BALANCE.test(message) }
}
