import { describe, expect, it } from '@jest/globals'
import { GatewayError, type GatewayErrorDetails } from '../core/errors.js'
import {
  audioErrorFormat,
  chatErrorFormat,
  errorFormatFor,
  imageErrorFormat,
  messagesErrorFormat,
  renderError,
  taskErrorFormat,
} from './error-format.js'

const headersOf = (kind: 'upstream_failed' | 'upstream_timeout' | 'rate_limited', details: GatewayErrorDetails) =>
  renderError(new GatewayError(kind, 'Words.', details), '/v1/models', 'req_1').headers

describe('The dialect of a path', () => {
  it.each([
    ['/v1/audio/speech', audioErrorFormat],
    ['/v1/audio', audioErrorFormat],
    ['/v1/audio/', audioErrorFormat],
    ['/v1/audiox', chatErrorFormat],
    ['/v1/audiox/speech', chatErrorFormat],
    ['/V1/audio/speech', chatErrorFormat],
    ['/v1/messages', messagesErrorFormat],
    ['/v1/messages/count_tokens', messagesErrorFormat],
    ['/v1/messagesx', chatErrorFormat],
    ['/v1/document/parse', taskErrorFormat],
    ['/v1/documents', chatErrorFormat],
    ['/vidgen/v1/videos/text2video', taskErrorFormat],
    ['/vidgenx', chatErrorFormat],
    ['/imggen/task/1/fetch', imageErrorFormat],
    ['/imggen', imageErrorFormat],
    ['/v1/chat/completions', chatErrorFormat],
    ['/v1/models', chatErrorFormat],
    ['/v1', chatErrorFormat],
    ['', chatErrorFormat],
  ])('%j is found by whole segments of its prefix', (path, envelope) => {
    expect(errorFormatFor(path)).toBe(envelope)
  })
})

describe('The frame of a failure after the first byte', () => {
  const error = new GatewayError('upstream_failed', 'Words.', { param: 'input', code: 'broken' })
  const audio = '{"error":{"message":"Words.","type":"upstream_error","param":"input","code":"broken"}}'

  it.each([
    ['/v1/chat/completions', `data: ${audio}\n\n`],
    ['/v1/audio/speech', `data: ${audio}\r\n\r\n`],
    [
      '/v1/messages',
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"Words."},"request_id":"req_1"}\n\n',
    ],
    ['/vidgen/x', 'data: {"code":5000,"message":"Words.","request_id":"req_1"}\n\n'],
    ['/imggen/x', 'data: {"code":5000,"message":"Words.","request_id":"req_1","description":"Words."}\n\n'],
  ])('is one of its dialect under %s', (path, frame) => {
    expect(errorFormatFor(path).frame(error, 'req_1')).toBe(frame)
  })
})

describe('The answer for a failure', () => {
  it('names code and field where they are known', () => {
    const error = new GatewayError('invalid_request', 'Words.', { param: 'messages[2].role', code: 'invalid_type' })
    expect(JSON.parse(renderError(error, '/v1/chat/completions', 'req_1').body)).toEqual({
      error: { message: 'Words.', type: 'invalid_request_error', param: 'messages[2].role', code: 'invalid_type' },
    })
  })

  it('is the one the upstream gave in the dialect of the caller, under our own headers', () => {
    const error = new GatewayError('unknown_model', 'Words.', { relayed: { status: 418, body: '{"error":1.0}' } })
    expect(renderError(error, '/v1/messages', 'req_1')).toEqual({
      status: 418,
      body: '{"error":1.0}',
      headers: {
        'content-type': 'application/json',
        'x-request-id': 'req_1',
        'request-id': 'req_1',
        'x-should-retry': 'false',
      },
    })
  })

  it('carries Retry-After and Allow when the failure knows them, and neither otherwise', () => {
    expect(headersOf('rate_limited', { retryAfterSeconds: 7 })).toMatchObject({ 'retry-after': '7' })
    expect(headersOf('rate_limited', {})).not.toHaveProperty('retry-after')
    const method = new GatewayError('method_not_allowed', 'Words.', { allow: ['GET', 'HEAD'] })
    expect(renderError(method, '/v1/models', 'req_1').headers).toMatchObject({ allow: 'GET, HEAD' })
    expect(headersOf('rate_limited', {})).not.toHaveProperty('allow')
  })

  it('lets the failure itself decide whether a retry makes sense', () => {
    expect(headersOf('upstream_failed', { retryable: false })['x-should-retry']).toBe('false')
    expect(headersOf('upstream_timeout', { retryable: true })).not.toHaveProperty('x-should-retry')
  })

  it('never shows the cause', () => {
    const cause = new Error('connect ECONNREFUSED 10.0.0.1:443')
    const { body, headers } = renderError(new GatewayError('upstream_failed', 'Words.', { cause }), '/v1/models', 'r')
    expect(body + JSON.stringify(headers)).not.toContain('10.0.0.1')
  })

  it('shows messages of at most 512 characters, without control characters', () => {
    const error = new GatewayError('invalid_request', `a\u0000\u001b[31m\nb${'x'.repeat(600)}`)
    for (const path of ['/v1/models', '/v1/messages', '/vidgen/x']) {
      const [message] = JSON.stringify(JSON.parse(renderError(error, path, 'r').body)).match(/a [^"]*/) ?? []
      expect(message).toMatch(/^a \[31m b(x+)…$/)
      expect(message).toHaveLength(512)
    }
  })
})
