import { describe, expect, it } from '@jest/globals'
import { GatewayError } from '../core/gateway-error.js'
import { readKey } from './bearer.js'

const LONGEST = 'k'.repeat(512)

function refusal(headers: Record<string, string>, acceptsApiKeyHeader = false): GatewayError {
  try {
    readKey(headers, acceptsApiKeyHeader)
  } catch (error) {
    if (error instanceof GatewayError) return error
  }
  throw new Error('the key was accepted')
}

describe('The key of a request', () => {
  it.each([
    ['Bearer abc', 'abc'],
    ['bearer abc', 'abc'],
    ['BEARER   abc  ', 'abc'],
    ['Bearer app|token', 'app|token'],
    [`Bearer ${LONGEST}`, LONGEST],
  ])('is read from Authorization: %s', (authorization, key) => {
    expect(readKey({ authorization }, false)).toBe(key)
  })

  it.each([{}, { authorization: '' }, { 'x-api-key': 'abc' }])('is missing in %j', (headers) => {
    expect(refusal(headers)).toMatchObject({ kind: 'key_missing' })
  })

  it.each([
    'Bearer',
    'Bearer ',
    'Basic YTpi',
    'abc',
    'Bearer a b',
    'Bearer\tabc',
    'Bearer schlüssel',
    'Bearer a\u007f',
    `Bearer ${LONGEST}k`,
    `Bearer${' '.repeat(600)}abc`,
    `Bearer ${'k'.repeat(15_000)}`,
  ])('is malformed in Authorization: %.40s', (authorization) => {
    const error = refusal({ authorization })
    expect(error.kind).toBe('key_malformed')
    expect(error.message).not.toContain(authorization.slice(7) || 'Bearer \u0000')
  })

  it('is read from x-api-key on the messages routes, after Authorization', () => {
    expect(readKey({ 'x-api-key': LONGEST }, true)).toBe(LONGEST)
    expect(readKey({ authorization: '', 'x-api-key': 'abc' }, true)).toBe('abc')
    expect(readKey({ authorization: 'Bearer one', 'x-api-key': 'two' }, true)).toBe('one')
  })

  it.each([`${LONGEST}k`, 'a b', 'schlüssel'])('is malformed in x-api-key: %.20s', (key) => {
    expect(refusal({ 'x-api-key': key }, true)).toMatchObject({ kind: 'key_malformed' })
  })

  it('is asked for in the words of the route', () => {
    expect(refusal({}, true).message).toContain('x-api-key')
    expect(refusal({}).message).not.toContain('x-api-key')
  })
})
