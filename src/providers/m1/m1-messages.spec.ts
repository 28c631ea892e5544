import { describe, expect, it } from '@jest/globals'
import { ManualSource } from '../../../test/support/byte-streams.js'
import type { GatewayError } from '../../core/gateway-error.js'
import { Call } from '../../core/request-context.js'
import type { CallContext } from '../call-context.js'
import { m1Refusal } from './m1-refusal.js'

const CONTEXT: CallContext = {
  call: new Call('req_of_key-gateway', 'POST', '/v1/messages', 0),
  channelId: 'm1',
  target: {
    poolKey: 'm1',
    origin: 'http://127.0.0.1:1',
    pathPrefix: '',
    timeouts: { connectMs: 1, firstByteMs: 1, idleMs: 1, totalMs: 1 },
  },
  credentials: 'secret',
  callersKey: false,
  upstreamModel: 'm',
  options: {},
  deadlineAtMs: 0,
}

async function refusal(status: number, body: object): Promise<GatewayError> {
  const source = new ManualSource()
  const reading = m1Refusal({ status, headers: {}, body: source }, CONTEXT)
  source.data(JSON.stringify(body))
  source.end()
  return await reading
}

const bodyOf = (type: string, message: string): object => ({
  type: 'error',
  error: { type, message, details: null },
  request_id: 'req_011CUpstream',
})

describe('A refusal of the messages upstream', () => {
  it('is relayed with its type and other keys, scrubbed, under the request id of the gateway', async () => {
    const { details } = await refusal(400, bodyOf('invalid_request_error', 'max_tokens: see https://docs.canary.com'))
    expect(details.relayed?.status).toBe(400)
    expect(JSON.parse(details.relayed?.body ?? '')).toEqual({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'max_tokens: see [address]', details: null },
      request_id: 'req_of_key-gateway',
    })
  })

  it.each([
    [404, 'not_found_error', 'unknown_model'],
    [413, 'request_too_large', 'payload_too_large'],
    [401, 'authentication_error', 'upstream_failed'],
    [403, 'permission_error', 'upstream_failed'],
    [402, 'billing_error', 'upstream_failed'],
    [429, 'rate_limit_error', 'rate_limited'],
    [500, 'api_error', 'upstream_failed'],
    [529, 'overloaded_error', 'upstream_failed'],
  ])('%i %s becomes %s', async (status, type, kind) => {
    expect(await refusal(status, bodyOf(type, 'Words.'))).toMatchObject({ kind })
  })

  it('is the fault of the channel when its balance is empty, although the status is 400', async () => {
    const message = 'Your credit balance is too low to access the API. Please go to Plans & Billing.'
    expect(await refusal(400, bodyOf('invalid_request_error', message))).toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { channelFault: true }, retryable: false },
    })
  })

  it('is not taken for an empty balance because a caller’s words are quoted in it', async () => {
    const message = 'messages.0: unexpected value "Your credit balance is too low"'
    expect(await refusal(400, bodyOf('invalid_request_error', message))).toMatchObject({ kind: 'invalid_request' })
  })
})
