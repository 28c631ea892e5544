import { PassThrough } from 'node:stream'
import { describe, expect, it } from '@jest/globals'
import { createLogging, describeError } from './logger.js'

describe('describeError', () => {
  it('names type, code and scrubbed text, and each cause without its stack', () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:443'), { code: 'ECONNREFUSED' })
    const described = describeError(new TypeError('https://api.canary.com broke', { cause }))
    expect(described).toEqual({
      type: 'TypeError',
      message: '[address] broke',
      cause: {
        type: 'Error',
        message: 'connect ECONNREFUSED [host]',
        code: 'ECONNREFUSED',
        stack: expect.stringContaining('Error: connect ECONNREFUSED [host]'),
      },
    })
  })

  it('describes what is not an error by its scrubbed text', () => {
    expect(describeError('Bearer canary')).toEqual({ message: 'Bearer [key]' })
    expect(describeError(undefined)).toEqual({ message: 'undefined' })
  })
})

describe('A log line', () => {
  it('is JSON with the time in words, scrubs errors, and is left out below the level', () => {
    const sink = new PassThrough()
    const { logger } = createLogging('info', sink)
    logger.error({ err: new Error('sk-canary12345') }, 'hello')
    logger.debug('canary')
    const text = String(sink.read())
    expect(text).not.toContain('canary')
    expect(JSON.parse(text)).toMatchObject({
      level: 50,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      err: { type: 'Error', message: '[key]' },
      msg: 'hello',
    })
  })
})
