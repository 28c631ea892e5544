import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { GatewayError } from '../core/errors.js'
import { RequestContext } from '../core/request-context.js'
import { jsonTextResponse, successEnvelope, taskResponse, TaskEvents } from './task-response.js'

describe('A success in the task dialect', () => {
  it('has code 0, a message, the id of the request, and the data as the text it was', () => {
    const call = new RequestContext('req "1"', 'GET', '/vidgen', 0)
    const answer = taskResponse(call, '{ "n": 12345678901234567890, "d": 1.0 }')
    expect(answer.status).toBe(200)
    expect(answer.headers).toEqual({ 'content-type': 'application/json' })
    expect((answer.body as Buffer).toString()).toBe(
      '{"code":0,"message":"SUCCEED","request_id":"req \\"1\\"","data":{ "n": 12345678901234567890, "d": 1.0 }}',
    )
  })

  it('may have a message of its own', () => {
    expect(JSON.parse(successEnvelope('1', 'null', 'O"K'))).toEqual({
      code: 0,
      message: 'O"K',
      request_id: '1',
      data: null,
    })
  })
})

it('JSON text is answered as it is, with the headers given', () => {
  const answer = jsonTextResponse(202, '{"a":1.0}', { 'x-more': 'yes' })
  expect([answer.status, answer.headers, (answer.body as Buffer).toString()]).toEqual([
    202,
    { 'x-more': 'yes', 'content-type': 'application/json' },
    '{"a":1.0}',
  ])
})

describe('The event stream of a task', () => {
  const MAX_AGE_MS = 100_000

  const frame = (count: number): string => `event: task\ndata: {"n":${count}}\n\n`

  let text: string
  let end: string | undefined
  let leavings: number
  let call: RequestContext

  function begin(maxAgeMs = MAX_AGE_MS): TaskEvents {
    const follow = () => () => {
      leavings++
    }
    const events = new TaskEvents(follow, call, maxAgeMs)
    events.start({
      data: (chunk) => {
        text += chunk.toString()
      },
      end: () => {
        end = 'end'
      },
      fail: ({ kind }) => {
        end = kind
      },
    })
    return events
  }

  beforeEach(() => {
    jest.useFakeTimers()
    text = ''
    end = undefined
    leavings = 0
    call = new RequestContext('req_1', 'GET', '/tasks/1/events', 0)
  })
  afterEach(() => {
    expect(jest.getTimerCount()).toBe(0)
    jest.useRealTimers()
  })

  it('shows the object on one line', () => {
    const events = begin()
    events.changed({ object: '{\r\n "a": "x\\ny",\n\n "b": 1.0\r}' })
    events.ended()
    expect(text).toBe('event: task\ndata: {  "a": "x\\ny",  "b": 1.0 }\n\n')
    expect([end, leavings]).toEqual(['end', 1])
  })

  it('gives a reader who is behind the newest object only, and the last one in any case', () => {
    const events = begin()
    events.changed({ object: '{"n":0}' })
    events.pause()
    events.changed({ object: '{"n":1}' })
    events.changed({ object: '{"n":2}' })
    expect(text).toBe(frame(0))
    events.resume()
    expect(text).toBe(frame(0) + frame(2))
    events.pause()
    events.changed({ object: '{"n":3}' })
    events.ended()
    expect(text).toBe(frame(0) + frame(2) + frame(3))
    expect(end).toBe('end')
  })

  it('is kept alive every 15 s of silence once the upstream has answered, unless the reader is behind', () => {
    const events = begin()
    jest.advanceTimersByTime(60_000)
    expect(text).toBe('')
    events.changed({ object: '{"n":0}' })
    jest.advanceTimersByTime(14_999)
    expect(text).toBe(frame(0))
    jest.advanceTimersByTime(1)
    expect(text).toBe(`${frame(0)}: keep-alive\n\n`)
    jest.advanceTimersByTime(10_000)
    events.changed({ object: '{"n":1}' })
    jest.advanceTimersByTime(14_999)
    expect(text).toBe(`${frame(0)}: keep-alive\n\n${frame(1)}`)
    events.pause()
    jest.advanceTimersByTime(30_000)
    expect(text).toBe(`${frame(0)}: keep-alive\n\n${frame(1)}`)
    events.cancel()
    expect(leavings).toBe(1)
  })

  it.each([
    [MAX_AGE_MS, MAX_AGE_MS],
    [86_400_000 * 365, 2_147_483_647],
  ])('of at most %i ms ends after %i ms', (maxAgeMs, afterMs) => {
    const events = begin(maxAgeMs)
    events.changed({ object: '{"n":0}' })
    events.pause()
    jest.advanceTimersByTime(afterMs - 1)
    expect(end).toBeUndefined()
    jest.advanceTimersByTime(1)
    expect([text, end, leavings]).toEqual([frame(0), 'end', 1])
  })

  it('ends once: with the failure, with the caller, or when it is given up', () => {
    const failed = begin()
    failed.failed(new GatewayError('not_found', 'No.'))
    failed.ended()
    call.disconnect.abort()
    expect([end, leavings]).toEqual(['not_found', 1])
    call = new RequestContext('req_2', 'GET', '/tasks/1/events', 0)
    const left = begin()
    left.changed({ object: '{"n":0}' })
    call.disconnect.abort()
    left.cancel()
    expect([end, leavings]).toEqual(['caller_left', 2])
  })
})
