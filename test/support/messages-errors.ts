import { expect } from '@jest/globals'
import type { RawAnswer } from './raw-http.js'

export interface MessagesError {
  readonly type: string
  readonly error: { readonly type: string; readonly message: string }
  readonly request_id: string
}

/** The whole body is compared: no other key may stand in it. */
export function expectError(answer: RawAnswer, status: number, type: string, words: RegExp = /.{10}/): void {
  const body = JSON.parse(answer.text) as MessagesError
  expect({ status: answer.status, body }).toEqual({
    status,
    body: {
      type: 'error',
      error: { type, message: expect.stringMatching(words) },
      request_id: answer.headers['request-id'],
    },
  })
  expect(answer.headers['content-type']).toBe('application/json')
  expect(answer.headers['x-request-id']).toBe(answer.headers['request-id'])
  expect(answer.headers['request-id']).toMatch(/^req_[0-9a-f]{32}$/)
  expect(answer.text).not.toMatch(/req_011|org-simulated|upstream-canary-key/)
}
