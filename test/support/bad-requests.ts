import { expect } from '@jest/globals'
import type { P1Gateway } from './p1-gateway.js'
import { errorOf, sendRaw, type RawRequest } from './raw-http.js'

/** What a refusal must say; all four keys of the error are compared. */
export interface Refusal {
  readonly status: number
  readonly type?: string
  readonly code: string | null
  readonly param?: string | null
  /** What the message must say; default: anything worth reading. */
  readonly message?: RegExp
}

/** Sends the request and asserts that it was refused in these words before anything reached the upstream. */
export async function expectRefused(
  { gateway, simulator }: P1Gateway,
  request: RawRequest,
  refusal: Refusal,
): Promise<void> {
  const answer = await sendRaw(gateway.url, request)
  const { status, type = 'invalid_request_error', code, param = null } = refusal
  const error = errorOf(answer)
  expect({ status: answer.status, ...error }).toEqual({
    status,
    type,
    code,
    param,
    message: expect.any(String),
  })
  expect(error.message).toMatch(refusal.message ?? /^.{10}/)
  expect(error.message.length).toBeLessThanOrEqual(512)
  expect(answer.headers['content-type']).toBe('application/json')
  expect(answer.headers['x-should-retry']).toBe('false')
  expect(answer.headers['x-request-id']).toMatch(/^req_/)
  expect(simulator.requests).toEqual([])
}

/** A JSON object nested this many levels deep, itself included. */
export const nested = (levels: number): string => '{"a":'.repeat(levels - 1) + '{}' + '}'.repeat(levels - 1)
