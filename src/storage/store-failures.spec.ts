import { describe, expect, it } from '@jest/globals'
import { isSilence, storeFailure, storeOverloaded } from './store-failures.js'

const withCode = (code: string): Error => Object.assign(new Error('said the server'), { code })

describe('storeFailure', () => {
  it.each(['08000', '08006', '57P01', '57P02', '57P03', '57P05', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'])(
    'takes %s for a lost connection',
    (code) => {
      expect(storeFailure(withCode(code))).toBe('lost')
    },
  )

  it.each(['EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'])('takes %s for a lost connection', (code) => {
    expect(storeFailure(withCode(code))).toBe('lost')
  })

  it.each([
    'Connection terminated unexpectedly',
    'Connection terminated due to connection timeout',
    'Client has encountered a connection error and is not queryable',
    'Cannot use a pool after calling end on the pool',
    'Query read timeout',
  ])('takes "%s" for a lost connection', (message) => {
    expect(storeFailure(new Error(message))).toBe('lost')
  })

  it.each(['53100', '53200', '53300', '57014', '55P03'])('takes %s for a server that is busy', (code) => {
    expect(storeFailure(withCode(code))).toBe('busy')
  })

  it('takes a pool without a free connection for busy, not for lost', () => {
    expect(storeFailure(new Error('timeout exceeded when trying to connect'))).toBe('busy')
  })

  it.each([withCode('23505'), withCode('42P01'), withCode('22003'), new Error('anything else'), 'no error at all'])(
    'leaves %s to whoever wrote the statement',
    (error) => {
      expect(storeFailure(error)).toBe('statement')
    },
  )

  it('knows a connection that is still waiting for its answer', () => {
    expect(isSilence(new Error('Query read timeout'))).toBe(true)
    expect(isSilence(withCode('ECONNRESET'))).toBe(false)
  })

  it.each(['lost', 'busy'] as const)('tells callers when to come back, and no more than that (%s)', (failure) => {
    const error = storeOverloaded(failure, withCode('ECONNREFUSED'))
    expect(error).toMatchObject({ kind: 'overloaded', cause: { code: 'ECONNREFUSED' } })
    expect(error.message).not.toContain('said the server')
    expect(error.details.retryAfterSeconds).toBeGreaterThanOrEqual(1)
    expect(error.details.retryAfterSeconds).toBeLessThanOrEqual(5)
  })
})
