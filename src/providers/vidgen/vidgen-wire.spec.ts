import { describe, expect, it } from '@jest/globals'
import type { ErrorKind, GatewayError } from '../../core/errors.js'
import type { UpstreamVideoTask } from '../contract.js'
import {
  isSuccess,
  readVidgenResponse,
  saysStaleToken,
  saysUnknownTask,
  taskIn,
  VIDGEN_CODES,
  vidgenFailure,
  type VidgenRequest,
} from './vidgen-wire.js'

const taskOf = (data: string, askedId?: string): UpstreamVideoTask | undefined =>
  taskIn(
    readVidgenResponse({ status: 200, headers: {} }, Buffer.from(`{"code":0,"message":"SUCCEED","data":${data}}`)),
    askedId,
  )

describe('The task in an answer', () => {
  it('is kept as the upstream spelled it', () => {
    const data =
      '{ "task_id" : "831200000000000001",\n "task_status":"succeed", "created_at":1750000000000, "updated_at":1750000182000,' +
      ' "cost": 1.50, "big": 123456789012345678901, "word": "\\u00e9\\/é", "new": {"x": [1.0, 1e2]} }'
    expect(taskOf(data)).toEqual({
      id: '831200000000000001',
      status: 'succeed',
      object: data,
      updatedAtMs: 1750000182000,
      message: 'SUCCEED',
    })
  })

  it.each([
    ['"831200000000000001"', '831200000000000001'],
    ['831200000000000001', '831200000000000001'],
    ['12345678901234567890123', '12345678901234567890123'],
    ['"a.b:c_d-e/f?g"', 'a.b:c_d-e/f?g'],
    ['7', '7'],
  ])('has the id %s', (text, id) => {
    expect(taskOf(`{"task_id":${text},"task_status":"submitted"}`)?.id).toBe(id)
  })

  it.each([
    '',
    '"task_id":"",',
    '"task_id":null,',
    '"task_id":true,',
    '"task_id":1.5,',
    '"task_id":1e3,',
    '"task_id":{},',
  ])('without an id that can be asked for again (%s) is none, unless the id is known', (member) => {
    const data = `{${member}"task_status":"processing"}`
    expect(taskOf(data)).toBeUndefined()
    expect(taskOf(data, 'asked')).toMatchObject({ id: 'asked', status: 'processing', object: data })
  })

  it('has no id of unprintable characters, nor one without end', () => {
    for (const id of ['a b', 'a\u0000', 'é', 'x'.repeat(257)]) {
      expect(taskOf(JSON.stringify({ task_id: id, task_status: 'submitted' }))).toBeUndefined()
    }
    expect(taskOf(JSON.stringify({ task_id: 'x'.repeat(256), task_status: 'submitted' }))?.id).toHaveLength(256)
  })

  it.each(['submitted', 'processing', 'succeed', 'failed'])('may be %s', (status) => {
    expect(taskOf(`{"task_id":"1","task_status":"${status}"}`)?.status).toBe(status)
  })

  it.each(['"succeeded"', '"SUCCEED"', '""', 'null', '0', '["succeed"]'])('is none with the status %s', (status) => {
    expect(taskOf(`{"task_id":"1","task_status":${status}}`, 'asked')).toBeUndefined()
  })

  it.each([
    ['1750000182000', 1750000182000],
    ['"1750000182000"', 1750000182000],
    ['null', undefined],
    ['"yesterday"', undefined],
    ['1.5', undefined],
    ['9007199254740993', undefined],
    ['{}', undefined],
  ])('changed at %s, which is %s', (text, updatedAtMs) => {
    const task = taskOf(`{"task_id":"1","task_status":"failed","updated_at":${text}}`)
    expect(task?.updatedAtMs).toBe(updatedAtMs)
    expect(Object.hasOwn(task ?? {}, 'updatedAtMs')).toBe(updatedAtMs !== undefined)
  })

  it.each(['null', '[]', '"x"', '1', '{}', '[{"task_id":"1","task_status":"failed"}]'])('is not %s', (data) => {
    expect(taskOf(data)).toBeUndefined()
  })
})

describe('An answer', () => {
  const answer = (body: string | Buffer) => readVidgenResponse({ status: 200, headers: {} }, Buffer.from(body))

  it('is read for what it holds', () => {
    expect(answer('{"code":1201,"message":"m","request_id":"r","data":null,"more":1}')).toEqual({
      httpStatus: 200,
      isReadable: true,
      code: 1201,
      message: 'm',
      requestId: 'r',
      data: 'null',
      retryAfterSeconds: undefined,
    })
    expect(answer('{"message":1,"request_id":"","code":"x"}')).toMatchObject({ isReadable: true, message: '' })
  })

  it.each(['', 'null', '[]', '"x"', '<html>', '{"code":0', '{"code":0,"code":1}', Buffer.from([0x7b, 0xff, 0x7d])])(
    'that is not one JSON object says nothing: %s',
    (body) => {
      expect(answer(body)).toMatchObject({ isReadable: false, code: undefined, data: undefined, message: '' })
    },
  )
})

const SECRETS = ['token-canary', 'ak-canary|sk-canary', 'sk-canary', 'ak-canary']
const WORDS = 'words of api.example.com for ak-canary and sk-canary by token-canary'
const SHOWN = 'words of [host] for [key] and [key] by [key]'

const CREATE: VidgenRequest = { operation: 'create', callersKey: false, secrets: SECRETS }
const READ: VidgenRequest = { ...CREATE, operation: 'read' }

const answerOf = (status: number, body: string, headers: Record<string, string> = {}) =>
  readVidgenResponse({ status, headers }, Buffer.from(body))

const coded = (code: number | string, status = 200, headers: Record<string, string> = {}) =>
  answerOf(status, JSON.stringify({ code, message: WORDS, request_id: 'r' }), headers)

interface Row {
  readonly code: number
  /** As documented; what it is must not matter. */
  readonly status: number
  readonly kind: ErrorKind
  /** Whose fault; `unknown` = whether a task was made is not known. */
  readonly fault: 'caller' | 'channel' | 'unknown'
  readonly word?: string
  readonly retryable?: false
  readonly retryAfterSeconds?: number
  /** The same with the caller's own key, where that makes a difference. */
  readonly own?: { readonly kind: ErrorKind; readonly word?: string; readonly retryAfterSeconds?: number }
}

const key = { kind: 'upstream_failed', fault: 'channel', retryable: false, own: { kind: 'unauthorized' } } as const
const access = { ...key, own: { kind: 'forbidden_model' } } as const
const quota = { ...key, own: { kind: 'rate_limited', word: 'insufficient_quota' } } as const
const invalid = { kind: 'invalid_request', fault: 'caller' } as const
const missing = { kind: 'not_found', fault: 'caller' } as const
const busy = { kind: 'rate_limited', fault: 'channel', retryAfterSeconds: 1 } as const

/** The vendor's own table, code by code. */
const ROWS: readonly Row[] = [
  { status: 401, code: 1000, ...key },
  { status: 401, code: 1001, ...key },
  { status: 401, code: 1002, ...key },
  { status: 401, code: 1003, ...key },
  { status: 401, code: 1004, ...key },
  { status: 429, code: 1100, ...access },
  { status: 429, code: 1101, ...quota },
  { status: 429, code: 1102, ...quota },
  { status: 403, code: 1103, ...access },
  { status: 400, code: 1200, ...invalid },
  { status: 400, code: 1201, ...invalid },
  { status: 404, code: 1202, ...missing },
  { status: 404, code: 1203, ...missing },
  { status: 400, code: 1300, ...invalid, word: 'content_policy_violation' },
  { status: 400, code: 1301, ...invalid, word: 'content_policy_violation' },
  { status: 429, code: 1302, ...busy, own: { kind: 'rate_limited', retryAfterSeconds: 1 } },
  {
    status: 429,
    code: 1303,
    ...busy,
    word: 'concurrency_limit_exceeded',
    retryAfterSeconds: 5,
    own: { kind: 'rate_limited', word: 'concurrency_limit_exceeded', retryAfterSeconds: 5 },
  },
  { status: 429, code: 1304, ...access },
  { status: 500, code: 5000, kind: 'upstream_failed', fault: 'unknown' },
  { status: 503, code: 5001, kind: 'upstream_failed', fault: 'channel', retryAfterSeconds: 30 },
  { status: 504, code: 5002, kind: 'upstream_timeout', fault: 'unknown' },
]

const attemptOf = ({ fault }: Row, operation: VidgenRequest['operation']): object => ({
  phase: fault === 'unknown' && operation === 'create' ? 'sent' : 'answered',
  ...(fault === 'caller' ? {} : { channelError: true }),
})

function expectedDetails(row: Row, operation: VidgenRequest['operation']): object {
  const retryable = row.fault === 'unknown' && operation === 'create' ? false : row.retryable
  return {
    cause: `code ${row.code}: ${SHOWN}`,
    attempt: attemptOf(row, operation),
    ...(row.word === undefined ? {} : { code: row.word }),
    ...(retryable === undefined ? {} : { retryable }),
    ...(row.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: row.retryAfterSeconds }),
  }
}

describe('A code of vidgen', () => {
  it.each(ROWS)('$code is $kind, the fault of the $fault, whatever the HTTP status', (row) => {
    for (const status of [row.status, 200, 400, 404, 429, 500, 503]) {
      for (const request of [CREATE, READ]) {
        const { kind, message, details } = vidgenFailure(coded(row.code, status), request)
        expect({ kind, ...details }).toEqual({ kind: row.kind, ...expectedDetails(row, request.operation) })
        // The upstream's words are for the caller only where the caller can do something about it.
        if (row.fault === 'caller') expect(message).toBe(SHOWN)
        else expect(message).not.toContain('words')
      }
    }
  })

  it.each(ROWS)('$code with the caller’s own key speaks of that key or says the same', (row) => {
    const own = vidgenFailure(coded(row.code, row.status), { ...CREATE, callersKey: true })
    if (row.own === undefined) {
      expect(own).toEqual(vidgenFailure(coded(row.code, row.status), CREATE))
      return
    }
    expect(own.kind).toBe(row.own.kind)
    expect(own.details.code).toBe(row.own.word)
    expect(own.details.retryAfterSeconds).toBe(row.own.retryAfterSeconds)
    expect(own.details.attempt).toEqual({ phase: 'answered' })
  })

  it('has a row here for each documented one', () => {
    expect(Object.keys(VIDGEN_CODES).map(Number)).toEqual(ROWS.map(({ code }) => code))
  })

  it.each(ROWS)('$code may be spelled as text', ({ code, kind }) => {
    expect(vidgenFailure(coded(String(code)), CREATE).kind).toBe(kind)
  })

  it('of another kind than 0 is no success, and 0 is one, whatever the HTTP status', () => {
    for (const { code } of ROWS) expect(isSuccess(coded(code, 200))).toBe(false)
    for (const status of [200, 201, 400, 500]) expect(isSuccess(coded(0, status))).toBe(true)
    expect(isSuccess(coded('0'))).toBe(true)
    expect(isSuccess(coded(7777))).toBe(false)
    expect(isSuccess(answerOf(200, '{"data":{}}'))).toBe(true)
    for (const [status, body] of [
      [500, '{"data":{}}'],
      [302, '{}'],
      [200, '<html>'],
      [200, '[]'],
    ] as const) {
      expect(isSuccess(answerOf(status, body))).toBe(false)
    }
  })

  it.each([1003, 1004])('%i alone asks for another token', (code) => {
    expect(saysStaleToken(coded(code, 401))).toBe(true)
    for (const row of ROWS.filter((one) => one.code !== 1003 && one.code !== 1004)) {
      expect(saysStaleToken(coded(row.code, 401))).toBe(false)
    }
    expect(saysStaleToken(answerOf(401, '{}'))).toBe(false)
  })
})

describe('The time to wait', () => {
  it.each([
    [1302, '7', 7],
    [1303, '0', 1],
    [5001, '3600', 60],
    [5001, 'soon', 30],
    [1302, 'Wed, 21 Oct 2065 07:28:00 GMT', 1],
  ])('of %i with Retry-After %s is %i s', (code, header, seconds) => {
    const { details } = vidgenFailure(coded(code, 429, { 'retry-after': header }), CREATE)
    expect(details.retryAfterSeconds).toBe(seconds)
  })

  it.each([1000, 1101, 1201, 1301, 1304, 5000])('is not said with %i, which no waiting mends', (code) => {
    expect(vidgenFailure(coded(code, 429, { 'retry-after': '7' }), CREATE).details.retryAfterSeconds).toBeUndefined()
  })
})

describe('An answer without a code that is known', () => {
  const judged = (status: number, body: string, request = CREATE): GatewayError =>
    vidgenFailure(answerOf(status, body), request)

  it.each<[number, string, ErrorKind, boolean]>([
    [400, '{"error":"x"}', 'invalid_request', false],
    [400, '{"code":1299,"message":"new"}', 'invalid_request', false],
    [401, '{}', 'upstream_failed', true],
    [402, '{}', 'upstream_failed', true],
    [403, '{}', 'upstream_failed', true],
    [404, '{}', 'not_found', false],
    [413, '{}', 'payload_too_large', false],
    [413, '<html>', 'payload_too_large', false],
    [422, '{}', 'invalid_request', false],
    [429, '{"code":1399}', 'rate_limited', true],
  ])('%i with %s is a definite refusal: %s', (status, body, kind, channelError) => {
    expect(judged(status, body)).toMatchObject({
      kind,
      details: { attempt: { phase: 'answered', ...(channelError ? { channelError } : {}) } },
    })
  })

  it.each([
    [500, '{}'],
    [502, '<html>Bad gateway</html>'],
    [503, ''],
    [599, '{"code":7777}'],
    [200, '{"code":7777}'],
    [200, '{"code":1.5}'],
    [302, '{}'],
    [408, '{}'],
    [409, '{}'],
    [400, '<html>'],
    [401, '<html>'],
    [404, '<html>'],
    [429, '[]'],
    [429, '{"code":1302,"message":'],
  ])('%i with %s leaves open whether a create has made a task, and is no reason to wait for a read', (status, body) => {
    expect(judged(status, body)).toMatchObject({
      kind: 'upstream_failed',
      details: { attempt: { phase: 'sent', channelError: true }, retryable: false },
    })
    const { kind, details } = judged(status, body, READ)
    expect([kind, details.attempt]).toEqual(['upstream_failed', { phase: 'answered', channelError: true }])
    expect(details.retryable).toBeUndefined()
  })

  it('says something to the caller even when the upstream does not', () => {
    expect(judged(400, '{}').message).toBe('The upstream refused the request (status 400).')
    expect(judged(200, '{"code":1201}').message).toBe('The upstream refused the request (code 1201).')
  })
})

describe('That a task is unknown', () => {
  it.each([
    [404, '{"code":1203}', true],
    [400, '{"code":1203}', true],
    [200, '{"code":1203}', true],
    [404, '{}', true],
    [404, '{"code":4242}', true],
    // The path is wrong, or the key: nothing is said about the task.
    [404, '{"code":1202}', false],
    [404, '{"code":1000}', false],
    [404, '<html>', false],
    [404, '', false],
    [200, '{}', false],
    [500, '{}', false],
  ])('is said by %i with %s: %s', (status, body, isUnknown) => {
    expect(saysUnknownTask(answerOf(status, body))).toBe(isUnknown)
  })
})
