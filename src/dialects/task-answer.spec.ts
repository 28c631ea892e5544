import { describe, expect, it } from '@jest/globals'
import { Call } from '../core/request-context.js'
import { jsonTextAnswer, successEnvelope, taskAnswer } from './task-answer.js'

describe('A success in the task dialect', () => {
  it('has code 0, a message, the id of the request, and the data as the text it was', () => {
    const call = new Call('req "1"', 'GET', '/vidgen', 0)
    const answer = taskAnswer(call, '{ "n": 12345678901234567890, "d": 1.0 }')
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
  const answer = jsonTextAnswer(202, '{"a":1.0}', { 'x-more': 'yes' })
  expect([answer.status, answer.headers, (answer.body as Buffer).toString()]).toEqual([
    202,
    { 'x-more': 'yes', 'content-type': 'application/json' },
    '{"a":1.0}',
  ])
})
