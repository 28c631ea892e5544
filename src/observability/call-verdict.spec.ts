import { describe, expect, it } from '@jest/globals'
import { ERROR_KINDS, type ErrorKind } from '../core/errors.js'
import { GatewayError } from '../core/gateway-error.js'
import { Call } from '../core/request-context.js'
import { CALL_VERDICTS, type CallVerdict, verdictOf } from './call-verdict.js'

function verdict(failure: unknown, status: number, left = false): CallVerdict {
  const call = new Call('req_1', 'POST', '/v1/chat/completions', 0)
  call.log.failure = failure
  return verdictOf(call, { status, left, totalMs: 1, gatewayMs: 1 })
}

const failed = (kind: ErrorKind): GatewayError => new GatewayError(kind, 'It failed.')

describe('The word for how a call ended', () => {
  it.each([
    ['an answer', undefined, 200, 'ok'],
    ['a socket', undefined, 101, 'ok'],
    ['an upstream that fails', failed('upstream_failed'), 502, 'upstream_failed'],
    ['an upstream that is late', failed('upstream_timeout'), 504, 'upstream_failed'],
    ['a stream that its upstream cut after 200', failed('upstream_failed'), 200, 'upstream_failed'],
    ['a limit', failed('rate_limited'), 429, 'refused'],
    ['an invalid request', failed('invalid_request'), 400, 'refused'],
    ['a probe that is told no', undefined, 503, 'refused'],
    ['no room', failed('overloaded'), 503, 'overloaded'],
    ['a fault of the gateway', failed('internal'), 500, 'gateway_failed'],
    ['an error nobody knows', new Error('odd'), 500, 'gateway_failed'],
  ])('after %s', (_what, failure, status, expected) => {
    expect(verdict(failure, status)).toBe(expected)
  })

  it('is that its caller left, whatever failed because of it', () => {
    expect(verdict(failed('caller_left'), 499, true)).toBe('left')
    expect(verdict(undefined, 499, true)).toBe('left')
  })

  it('is one of the list for every kind of error', () => {
    for (const kind of Object.keys(ERROR_KINDS) as ErrorKind[])
      expect(CALL_VERDICTS).toContain(verdict(failed(kind), 500))
  })
})
