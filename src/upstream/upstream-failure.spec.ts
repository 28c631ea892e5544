import { describe, expect, it } from '@jest/globals'
import { GatewayError } from '../core/gateway-error.js'
import { classifyFailure } from './upstream-failure.js'

const failure = (code: string): Error => Object.assign(new Error(`words of 10.0.0.1 ${code}`), { code })

describe('A transport failure', () => {
  it.each(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ERR_TLS_CERT_ALTNAME_INVALID'])(
    '%s means that nothing was sent, so that trying again is safe',
    (code) => {
      expect(classifyFailure(failure(code), true)).toMatchObject({
        kind: 'upstream_failed',
        details: { attempt: { phase: 'unsent', channelFault: true }, retryable: true },
      })
    },
  )

  it.each(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'HPE_INVALID_CONSTANT', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH', ''])(
    '%s after the request began means that it may have been done and billed',
    (code) => {
      expect(classifyFailure(failure(code), true)).toMatchObject({
        kind: 'upstream_failed',
        details: { attempt: { phase: 'sent', channelFault: true }, retryable: false },
      })
      expect(classifyFailure(failure(code), false).details.attempt?.phase).toBe('unsent')
    },
  )

  it.each([
    ['UND_ERR_CONNECT_TIMEOUT', 'unsent', true],
    ['UND_ERR_HEADERS_TIMEOUT', 'sent', false],
    ['UND_ERR_BODY_TIMEOUT', 'sent', false],
  ])('%s is a timeout, %s', (code, phase, retryable) => {
    expect(classifyFailure(failure(code), true)).toMatchObject({
      kind: 'upstream_timeout',
      details: { attempt: { phase, channelFault: true }, retryable },
    })
  })

  it('is recognised inside the errors that wrap it', () => {
    const aggregate = new AggregateError([failure('ECONNREFUSED'), failure('ENETUNREACH')])
    const wrapped = new Error('outer', { cause: failure('ECONNREFUSED') })
    expect(classifyFailure(aggregate, true).details.attempt?.phase).toBe('unsent')
    expect(classifyFailure(wrapped, true).details.attempt?.phase).toBe('unsent')
  })

  it('keeps its address out of the message, and for the log in the cause', () => {
    const cause = failure('ECONNREFUSED')
    const { message, details } = classifyFailure(cause, false)
    expect(message).toBe('The connection to the upstream failed.')
    expect(details.cause).toBe(cause)
  })

  it('stays what it is when it is one of ours', () => {
    const error = new GatewayError('caller_left', 'gone')
    expect(classifyFailure(error, true)).toBe(error)
  })
})
