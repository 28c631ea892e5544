import { describe, expect, it } from '@jest/globals'
import { contextAt, dialectOf } from '../../test/support/endpoints.js'
import { GatewayError, type GatewayErrorDetails } from '../core/errors.js'
import { ERROR_FORMATS, renderError } from './error-format.js'

const headersOf = (kind: 'upstream_failed' | 'upstream_timeout' | 'rate_limited', details: GatewayErrorDetails) =>
  renderError(new GatewayError(kind, 'Words.', details), dialectOf('/v1/models'), 'req_1').headers

describe('The dialect of a path', () => {
  it.each([
    ['/v1/audio/speech', 'openai-audio'],
    ['/v1/audio', 'openai-audio'],
    ['/v1/audio/', 'openai-audio'],
    ['/v1/audiox', 'openai'],
    ['/v1/audiox/speech', 'openai'],
    ['/V1/audio/speech', 'openai'],
    ['/v1/messages', 'messages'],
    ['/v1/messages/count_tokens', 'messages'],
    ['/v1/messagesx', 'openai'],
    ['/v1/document/parse', 'task'],
    ['/v1/documents', 'openai'],
    ['/vidgen/v1/videos/text2video', 'task'],
    ['/vidgenx', 'openai'],
    ['/imggen/task/1/fetch', 'image'],
    ['/imggen', 'image'],
    ['/v1/chat/completions', 'openai'],
    ['/v1/models', 'openai'],
    ['/v1', 'openai'],
    ['', 'openai'],
  ])('%j is found by whole segments of its prefix', (path, dialect) => {
    expect(dialectOf(path)).toBe(dialect)
    expect(contextAt('GET', path).dialect).toBe(dialect)
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
    expect(ERROR_FORMATS[dialectOf(path)].frame(error, 'req_1')).toBe(frame)
  })
})

describe('The answer for a failure', () => {
  it('names code and field where they are known', () => {
    const error = new GatewayError('invalid_request', 'Words.', { param: 'messages[2].role', code: 'invalid_type' })
    expect(JSON.parse(renderError(error, dialectOf('/v1/chat/completions'), 'req_1').body)).toEqual({
      error: { message: 'Words.', type: 'invalid_request_error', param: 'messages[2].role', code: 'invalid_type' },
    })
  })

  it('is the one the upstream gave in the dialect of the caller, under our own headers', () => {
    const error = new GatewayError('unknown_model', 'Words.', { relayed: { status: 418, body: '{"error":1.0}' } })
    expect(renderError(error, dialectOf('/v1/messages'), 'req_1')).toEqual({
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
    expect(renderError(method, dialectOf('/v1/models'), 'req_1').headers).toMatchObject({ allow: 'GET, HEAD' })
    expect(headersOf('rate_limited', {})).not.toHaveProperty('allow')
  })

  it('lets the failure itself decide whether a retry makes sense', () => {
    expect(headersOf('upstream_failed', { retryable: false })['x-should-retry']).toBe('false')
    expect(headersOf('upstream_timeout', { retryable: true })).not.toHaveProperty('x-should-retry')
  })

  it('never shows the cause', () => {
    const cause = new Error('connect ECONNREFUSED 10.0.0.1:443')
    const { body, headers } = renderError(
      new GatewayError('upstream_failed', 'Words.', { cause }),
      dialectOf('/v1/models'),
      'r',
    )
    expect(body + JSON.stringify(headers)).not.toContain('10.0.0.1')
  })

  it('shows messages of at most 512 characters, without control characters', () => {
    const error = new GatewayError('invalid_request', `a\u0000\u001b[31m\nb${'x'.repeat(600)}`)
    for (const path of ['/v1/models', '/v1/messages', '/vidgen/x']) {
      const [message] = JSON.stringify(JSON.parse(renderError(error, dialectOf(path), 'r').body)).match(/a [^"]*/) ?? []
      expect(message).toMatch(/^a \[31m b(x+)…$/)
      expect(message).toHaveLength(512)
    }
  })
})
