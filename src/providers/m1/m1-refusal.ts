import type { GatewayError } from '../../common/errors/gateway-error.js'
import { scrubbedJson } from '../../common/errors/message-text.js'
import type { UpstreamResponse } from '../../common/http/upstream-exchange.js'
import { readRefusal, type RefusalBody } from '../../common/http/upstream-refusal.js'
import type { CallContext } from '../contracts/call-context.js'

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
