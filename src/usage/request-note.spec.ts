import { describe, expect, it } from '@jest/globals'
import { GatewayError } from '../core/gateway-error.js'
import { Call } from '../core/request-context.js'
import { PriceTable } from './price-table.js'
import { requestNote } from './usage-entry.js'

const PRICES = new PriceTable([])
const OK = { status: 200, left: false, totalMs: 12.3, gatewayMs: 1 }

function callTo(method: string, path: string, keyId = 'team-a'): Call {
  const call = new Call('req_1', method, path, 0)
  call.caller = { keyId }
  call.log.model = 'gpt-4o'
  call.log.channelId = 'p1-main'
  return call
}

describe('What a call leaves to be recorded', () => {
  it('is who asked for what, where it went, and what was used', () => {
    const call = callTo('POST', '/v1/chat/completions')
    call.log.modelClass = 'chat-audio'
    call.log.usage = { units: { prompt_tokens: 3 }, estimated: false }
    expect(requestNote(call, OK, PRICES)).toMatchObject({
      requestId: 'req_1',
      keyId: 'team-a',
      ownerId: 'team-a',
      kind: 'request',
      route: '/v1/chat/completions',
      model: 'gpt-4o',
      usageClass: 'chat-audio',
      channelId: 'p1-main',
      outcome: 'ok',
      durationMs: 12.3,
      usage: { units: { prompt_tokens: 3 }, estimated: false },
    })
  })

  it('holds no more of an invented name than any model has', () => {
    const call = callTo('POST', '/v1/chat/completions')
    call.log.model = 'x'.repeat(4_000_000)
    expect(requestNote(call, { ...OK, status: 400 }, PRICES)?.model).toBe('x'.repeat(256))
  })

  it('belongs to one bearer alone where callers bring keys of their own', () => {
    const call = callTo('POST', '/v1/chat/completions')
    call.caller = { keyId: 'caller', bearer: 'secret' }
    const note = requestNote(call, OK, PRICES)
    expect(note).toMatchObject({ keyId: 'caller', ownerId: expect.stringMatching(/^bearer:[0-9a-f]{32}$/) })
    expect(JSON.stringify(note)).not.toContain('secret')
  })

  it.each([
    ['GET', '/v1/models'],
    ['GET', '/v1/usage'],
    ['GET', '/vidgen/v1/videos/text2video/1'],
    ['GET', '/vidgen/v1/videos/text2video'],
    ['GET', '/v1/chat/completions'],
    ['POST', '/v1/chat/completions/'],
    ['POST', '/v1/Chat/completions'],
    ['GET', '/health/live'],
  ])('is nothing for %s %s', (method, path) => {
    expect(requestNote(callTo(method, path), OK, PRICES)).toBeUndefined()
  })

  it('is nothing for callers nobody knows', () => {
    expect(requestNote(callTo('POST', '/v1/chat/completions', '-'), OK, PRICES)).toBeUndefined()
  })

  it('leaves the units of a session to its responses', () => {
    const call = callTo('GET', '/v1/realtime')
    call.log.usage = { units: { input_tokens: 5 }, estimated: false }
    expect(requestNote(call, { ...OK, status: 101 }, PRICES)).toMatchObject({ outcome: 'ok', usage: undefined })
  })

  it('names documents by what they are', () => {
    const call = callTo('POST', '/v1/document/parse')
    call.log.modelClass = 'chat'
    expect(requestNote(call, OK, PRICES)).toMatchObject({ model: 'documents', usageClass: 'document' })
  })

  it.each<[string, unknown, Partial<typeof OK>, string]>([
    ['all went well', undefined, {}, 'ok'],
    ['the caller left', undefined, { left: true, status: 499 }, 'caller_left'],
    [
      'the caller left and the upstream failed of it',
      new GatewayError('upstream_failed', ''),
      { left: true },
      'caller_left',
    ],
    ['the caller left before anything was sent', new GatewayError('caller_left', ''), {}, 'caller_left'],
    ['the upstream failed', new GatewayError('upstream_failed', ''), { status: 502 }, 'upstream_failed'],
    ['the upstream fell silent', new GatewayError('upstream_timeout', ''), { status: 504 }, 'upstream_failed'],
    ['the stream broke behind its first byte', new GatewayError('upstream_failed', ''), {}, 'upstream_failed'],
    ['the request was wrong', new GatewayError('invalid_request', ''), { status: 400 }, 'refused'],
    ['a limit was reached', new GatewayError('rate_limited', ''), { status: 429 }, 'refused'],
    ['the gateway had too much to do', new GatewayError('overloaded', ''), { status: 503 }, 'refused'],
    ['the gateway broke', new Error('bug'), { status: 500 }, 'refused'],
    ['an error was answered without a word', undefined, { status: 400 }, 'refused'],
  ])('has an outcome when %s', (_what, failure, changes, outcome) => {
    const call = callTo('POST', '/v1/chat/completions')
    call.log.failure = failure
    expect(requestNote(call, { ...OK, ...changes }, PRICES)?.outcome).toBe(outcome)
  })
})
