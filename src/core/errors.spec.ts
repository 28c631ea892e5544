import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { codePoint } from '../../test/support/arbitraries.js'
import { dialectOf } from '../../test/support/endpoints.js'
import { renderError } from '../dialects/error-format.js'
import {
  ERROR_KINDS,
  type ErrorKind,
  GatewayError,
  presentableMessage,
  quoted,
  scrubbedJson,
  scrubMessage,
} from './errors.js'

type Audio = readonly [speechStatus: number, chatStatus: number, type: string, code: string | null]
type Messages = readonly [status: number, type: string]
type Task = readonly [status: number, code: number]

const INVALID = 'invalid_request_error'
const AUTH = 'authentication_error'

/** Design §4, written out anew: kind → audio and chat, messages, task; and whether a retry is discouraged. */
const TABLE: Readonly<Record<ErrorKind, readonly [Audio, Messages, Task, discouraged: boolean]>> = {
  invalid_request: [[400, 400, INVALID, null], [400, INVALID], [400, 1201], true],
  unauthorized: [[401, 401, AUTH, 'invalid_api_key'], [401, AUTH], [401, 1000], true],
  key_missing: [[401, 401, AUTH, 'invalid_api_key'], [401, AUTH], [401, 1001], true],
  key_malformed: [[401, 401, AUTH, 'invalid_api_key'], [401, AUTH], [401, 1002], true],
  forbidden_model: [[403, 403, 'permission_error', 'model_not_allowed'], [403, 'permission_error'], [403, 1103], true],
  forbidden_origin: [
    [403, 403, 'permission_error', 'origin_not_allowed'],
    [403, 'permission_error'],
    [403, 1103],
    true,
  ],
  unknown_model: [[400, 404, INVALID, 'model_not_found'], [404, 'not_found_error'], [400, 1201], true],
  not_found: [[404, 404, INVALID, 'not_found'], [404, 'not_found_error'], [404, 1203], true],
  method_not_allowed: [[405, 405, INVALID, 'method_not_allowed'], [405, INVALID], [405, 1202], true],
  upgrade_required: [[426, 426, INVALID, 'upgrade_required'], [426, INVALID], [426, 1200], true],
  unsupported_media_type: [[415, 415, INVALID, 'unsupported_media_type'], [415, INVALID], [415, 1200], true],
  request_timeout: [[408, 408, INVALID, 'request_timeout'], [408, INVALID], [408, 1200], false],
  header_fields_too_large: [[431, 431, INVALID, 'header_fields_too_large'], [431, INVALID], [431, 1200], true],
  conflict: [[409, 409, INVALID, 'conflict'], [409, 'conflict_error'], [400, 1201], true],
  idempotency_running: [[409, 409, INVALID, 'idempotency_running'], [409, 'conflict_error'], [409, 1303], false],
  unprocessable: [[422, 422, INVALID, 'unprocessable'], [422, INVALID], [422, 1201], true],
  payload_too_large: [[413, 413, INVALID, 'payload_too_large'], [413, 'request_too_large'], [413, 1200], true],
  rate_limited: [[429, 429, 'rate_limit_error', 'rate_limit_exceeded'], [429, 'rate_limit_error'], [429, 1302], false],
  overloaded: [[503, 503, 'overloaded_error', 'overloaded'], [529, 'overloaded_error'], [503, 5001], false],
  upstream_failed: [[500, 502, 'upstream_error', 'upstream_failed'], [502, 'api_error'], [502, 5000], false],
  upstream_overloaded: [
    [500, 503, 'upstream_error', 'upstream_overloaded'],
    [529, 'overloaded_error'],
    [503, 5001],
    false,
  ],
  upstream_timeout: [[500, 504, 'upstream_error', 'upstream_timeout'], [504, 'api_error'], [504, 5002], true],
  caller_left: [[499, 499, INVALID, 'client_closed_request'], [499, INVALID], [499, 1200], true],
  internal: [[500, 500, 'api_error', 'internal_error'], [500, 'api_error'], [500, 5000], true],
}

const KINDS = Object.keys(TABLE) as ErrorKind[]
const rendered = (kind: ErrorKind, path: string) =>
  renderError(new GatewayError(kind, 'Words.'), dialectOf(path), 'req_1')

describe('The table of errors', () => {
  it('knows exactly the kinds of the design', () => {
    expect(Object.keys(ERROR_KINDS).sort()).toEqual([...KINDS].sort())
  })

  it.each(KINDS)('%s speaks the audio dialect under /v1/audio, with all four keys', (kind) => {
    const [[status, , type, code]] = TABLE[kind]
    const answer = rendered(kind, '/v1/audio/speech')
    expect(answer.status).toBe(status)
    expect(answer.body).toBe(JSON.stringify({ error: { message: 'Words.', type, param: null, code } }))
    expect(answer.headers).not.toHaveProperty('request-id')
  })

  it.each(KINDS)('%s speaks the same body under the statuses of chat everywhere else', (kind) => {
    const [[, status, type, code]] = TABLE[kind]
    for (const path of ['/v1/chat/completions', '/v1/models', '/v1/realtime', '/', '/nowhere']) {
      const answer = rendered(kind, path)
      expect([answer.status, JSON.parse(answer.body)]).toEqual([
        status,
        { error: { message: 'Words.', type, param: null, code } },
      ])
    }
  })

  it.each(KINDS)('%s speaks the messages dialect under /v1/messages, and names the request id twice', (kind) => {
    const [, [status, type]] = TABLE[kind]
    const answer = rendered(kind, '/v1/messages/count_tokens')
    expect([answer.status, JSON.parse(answer.body)]).toEqual([
      status,
      { type: 'error', error: { type, message: 'Words.' }, request_id: 'req_1' },
    ])
    expect(answer.headers).toMatchObject({ 'request-id': 'req_1', 'x-request-id': 'req_1' })
  })

  it.each(KINDS)('%s speaks the task dialect for video, document and image', (kind) => {
    const [, , [status, code]] = TABLE[kind]
    const body = { code, message: 'Words.', request_id: 'req_1' }
    for (const path of ['/vidgen/v1/videos/text2video', '/v1/document/parse']) {
      expect([rendered(kind, path).status, JSON.parse(rendered(kind, path).body)]).toEqual([status, body])
    }
    const image = rendered(kind, '/imggen/task/1/fetch')
    expect([image.status, JSON.parse(image.body)]).toEqual([status, { ...body, description: 'Words.' }])
    expect(code).not.toBe(0)
  })

  it.each([
    ['rate_limited', 'concurrency_limit_exceeded', 429, 1303],
    ['rate_limited', undefined, 429, 1302],
    ['invalid_request', 'content_policy_violation', 400, 1301],
    ['invalid_request', 'empty_string', 400, 1201],
  ] as const)('%s with the code %s has status %s and the task code %s', (kind, code, status, expected) => {
    const error = new GatewayError(kind, 'Words.', code === undefined ? {} : { code })
    const answer = renderError(error, dialectOf('/vidgen/v1/videos/text2video'), 'req_1')
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([status, { code: expected }])
  })

  it.each(KINDS)('%s tells SDKs not to retry exactly where a retry cannot help or may be billed twice', (kind) => {
    const { headers } = rendered(kind, '/v1/chat/completions')
    expect(headers['x-should-retry']).toBe(TABLE[kind][3] ? 'false' : undefined)
  })
})

describe('scrubMessage', () => {
  it.each([
    ['Visit https://platform.openai.com/account?x=1 now', 'Visit [address] now'],
    ['at "https://a.example/b" there', 'at "[address]" there'],
    ['wss://realtime.example:443/v1, closed', '[address] closed'],
    ['no route to api.openai.com:443', 'no route to [host]'],
    ['host upstream-1.prod.internal.', 'host [host].'],
    ['..api.openai.com', '..[host]'],
    ['connect ECONNREFUSED 10.1.2.3:8443', 'connect ECONNREFUSED [host]'],
    ['connect ECONNREFUSED ::1:8443', 'connect ECONNREFUSED [host]'],
    ['getaddrinfo ENOTFOUND upstream-7', 'getaddrinfo ENOTFOUND [host]'],
    ['(attempted address: upstream-7:443, timeout: 10ms)', '(attempted address: [host], timeout: 10ms)'],
    ['Organization org-AbC123 in proj_xyz9', 'Organization [account] in [account]'],
    ['Incorrect API key provided: sk-proj-abc***xyz.', 'Incorrect API key provided: [key].'],
    ['header Bearer eyJhbGciOi.x.y seen', 'header Bearer [key] seen'],
    ['whsec_MfKQ9r8GKYqr', '[key]'],
  ])('takes hosts, accounts and keys out of %j', (text, scrubbed) => {
    expect(scrubMessage(text)).toBe(scrubbed)
  })

  it.each([
    "Invalid type for 'messages[2].role': expected a string, but got 1.5 instead.",
    'The model gpt-4o-mini-2024-07-18 does not exist.',
    'Rate limit reached: 3 requests per min. Try again in 20s.',
    'Expected a value <= 2.0, e.g. 1.',
  ])('leaves an ordinary message alone: %s', (text) => {
    expect(scrubMessage(text)).toBe(text)
  })

  it('takes CPU time in proportion to the text, whatever an upstream echoes', () => {
    const cost = (text: string): number => {
      const before = process.cpuUsage()
      scrubMessage(text)
      return process.cpuUsage(before).user / 1000
    }
    // A pattern that is quadratic takes 40 s for one of these, a linear one some milliseconds.
    for (const part of ['a.', 'a-', 'a', '1.', 'com.', 'sk-', 'Bearer ', 'org-', 'https://']) {
      expect(cost(part.repeat(262_144 / part.length))).toBeLessThan(5000)
    }
  })
})

describe('scrubbedJson', () => {
  it('scrubs every text of a value and keeps identifiers, numbers and keys', () => {
    const value = {
      error: { message: 'at https://a.example', code: 'key_expired', param: 'org-name', type: 'key_error', n: 1.5 },
      debug: [{ url: 'https://b.example', request_id: 'org-1234' }],
    }
    expect(JSON.parse(scrubbedJson(value))).toEqual({
      error: { ...value.error, message: 'at [address]' },
      debug: [{ url: '[address]', request_id: 'org-1234' }],
    })
  })
})

describe('presentableMessage', () => {
  it('is never longer than 512 characters, never holds a control character or half a character', () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint, minLength: 0, maxLength: 700 }), (text) => {
        const message = presentableMessage(text)
        expect(message.length).toBeLessThanOrEqual(512)
        expect(message).not.toMatch(/[\p{Cc}\u2028\u2029]/u)
        expect(Buffer.from(message).toString()).toBe(message)
      }),
    )
    expect(presentableMessage('🎉'.repeat(400))).toBe(`${'🎉'.repeat(255)}…`)
  })

  it('keeps a message of exactly 512 characters whole', () => {
    expect(presentableMessage('x'.repeat(512))).toBe('x'.repeat(512))
    expect(presentableMessage('x'.repeat(513))).toBe(`${'x'.repeat(511)}…`)
  })
})

describe('quoted', () => {
  it.each([
    ['gpt-4o', "'gpt-4o'"],
    ["<script>'&", "'script'"],
    ['a\nb', "'a b'"],
    ['x'.repeat(65), `'${'x'.repeat(63)}…'`],
  ])('shows %j harmlessly', (value, shown) => {
    expect(quoted(value)).toBe(shown)
  })
})
