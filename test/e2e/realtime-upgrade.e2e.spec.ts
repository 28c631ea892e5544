import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { startGateway, TEST_KEY, type TestGateway } from '../support/gateway.js'
import { sendRaw } from '../support/raw-http.js'
import { type RealtimeUpstream, realtimeChannel, startRealtimeUpstream } from '../support/realtime-upstream.js'
import {
  askUpgrade,
  type HttpAnswer,
  REALTIME_PATH,
  refusalOf,
  sendUpgrade,
  type UpgradeRequest,
} from '../support/upgrade-client.js'

let upstream: RealtimeUpstream
let gateway: TestGateway

beforeAll(async () => {
  upstream = await startRealtimeUpstream()
  gateway = await startGateway({
    channels: [realtimeChannel(upstream)],
    keys: [
      { id: 'test', key: TEST_KEY },
      { id: 'narrow', key: 'narrow-key', models: ['tts-*'] },
    ],
  })
})
afterAll(async () => {
  await gateway.close()
  await upstream.close()
})

interface Refusal {
  readonly status: number
  readonly type?: string
  readonly code: string | null
  readonly param?: string | null
}

const INVALID = 'invalid_request_error'
const AUTH = { status: 401, type: 'authentication_error', code: 'invalid_api_key' }
const UPGRADE = { status: 426, code: 'upgrade_required' }

function expectRefusal({ status, headers, body }: HttpAnswer, expected: Refusal): void {
  const { type = INVALID, code, param = null } = expected
  const error = { message: expect.stringMatching(/./), type, param, code }
  expect([status, JSON.parse(body.toString())]).toEqual([expected.status, { error }])
  expect(headers.get('content-type')).toBe('application/json')
  expect(headers.get('content-length')).toBe(String(body.length))
  expect(headers.get('x-request-id')).toMatch(/^req_[0-9a-f]{32}$/)
  expect(headers.get('connection')).toMatch(/^close\b/)
}

const refused = async (wish: UpgradeRequest, expected: Refusal): Promise<HttpAnswer> => {
  const answer = await askUpgrade(gateway.url, wish)
  expectRefusal(answer, expected)
  return answer
}

const path = (query: string): UpgradeRequest => ({ path: `/v1/realtime${query}` })
const header = (name: string, value: string | undefined): UpgradeRequest => ({ headers: { [name]: value } })
const protocols = (...names: string[]): UpgradeRequest => header('sec-websocket-protocol', names.join(', '))
const BAD_MODEL = { status: 400, param: 'model' }

describe('an upgrade that cannot be served is refused before the 101', () => {
  it.each<[string, UpgradeRequest, Refusal]>([
    ['of another version', header('sec-websocket-version', '8'), UPGRADE],
    ['without a version', header('sec-websocket-version', undefined), UPGRADE],
    [
      'without a key of the handshake',
      header('sec-websocket-key', undefined),
      { status: 400, code: null, param: 'sec-websocket-key' },
    ],
    [
      'with a short key of the handshake',
      header('sec-websocket-key', 'dGhl'),
      { status: 400, code: null, param: 'sec-websocket-key' },
    ],
    ['with a body', header('content-length', '5'), { status: 400, code: null, param: 'content-length' }],
    [
      'with a body in chunks',
      header('transfer-encoding', 'chunked'),
      { status: 400, code: null, param: 'content-length' },
    ],
    [
      'with a broken list of subprotocols',
      protocols('realtime', ''),
      { status: 400, code: null, param: 'sec-websocket-protocol' },
    ],
    [
      'with a subprotocol offered twice',
      protocols('realtime', 'realtime'),
      { status: 400, code: null, param: 'sec-websocket-protocol' },
    ],
    [
      'from a page',
      header('origin', 'https://app.example.com'),
      { status: 403, type: 'permission_error', code: 'origin_not_allowed' },
    ],
    [
      'from a page without an address',
      header('origin', 'null'),
      { status: 403, type: 'permission_error', code: 'origin_not_allowed' },
    ],
    ['without an API key', header('authorization', undefined), AUTH],
    ['with an unknown API key', header('authorization', 'Bearer unknown'), AUTH],
    ['with another scheme', header('authorization', 'Basic dGVzdDp0ZXN0'), AUTH],
    [
      'with an unknown key among the subprotocols',
      { headers: { authorization: undefined, 'sec-websocket-protocol': 'realtime, openai-insecure-api-key.unknown' } },
      AUTH,
    ],
    [
      'with an empty key among the subprotocols',
      { headers: { authorization: undefined, 'sec-websocket-protocol': 'openai-insecure-api-key.' } },
      AUTH,
    ],
    ['with two different keys', protocols('realtime', 'openai-insecure-api-key.narrow-key'), AUTH],
    ['with an endless key', header('authorization', `Bearer ${'k'.repeat(600)}`), AUTH],
    ['without a model', path(''), { ...BAD_MODEL, code: 'missing_required_parameter' }],
    ['with an empty model', path('?model='), { ...BAD_MODEL, code: 'empty_string' }],
    ['with two models', path('?model=gpt-realtime&model=gpt-realtime'), { ...BAD_MODEL, code: 'duplicate_key' }],
    [
      'to a telephone call',
      path('?model=gpt-realtime&call_id=rtc_1'),
      { status: 400, code: 'unsupported_value', param: 'call_id' },
    ],
    ['to an unknown model', path('?model=no-such-model'), { ...BAD_MODEL, status: 404, code: 'model_not_found' }],
    ['to a model of chat', path('?model=gpt-4o'), { ...BAD_MODEL, status: 404, code: 'model_not_found' }],
    [
      'to a model the key may not use',
      header('authorization', 'Bearer narrow-key'),
      { ...BAD_MODEL, status: 403, type: 'permission_error', code: 'model_not_allowed' },
    ],
    ['to an unknown path', { path: '/v1/realtime/nowhere' }, { status: 404, code: 'not_found' }],
    [
      'to the path with a slash behind it',
      { path: '/v1/realtime/?model=gpt-realtime' },
      { status: 404, code: 'not_found' },
    ],
    ['by POST', { method: 'POST' }, { status: 405, code: 'method_not_allowed' }],
    ['over HTTP/1.0', { version: '1.0' }, UPGRADE],
    ['to another protocol', header('upgrade', 'h2c'), UPGRADE],
    ['to several protocols', header('upgrade', 'websocket, h2c'), UPGRADE],
  ])('%s', async (_name, wish, expected) => {
    await refused({ ...wish, headers: { connection: 'Upgrade, close', ...wish.headers } }, expected)
    expect(upstream.requests).toHaveLength(0)
  })
})

describe('a refusal', () => {
  it.each([
    ['an upgrade of another version', header('sec-websocket-version', '8')],
    ['a request that asks for no upgrade', { headers: { upgrade: undefined, connection: 'close' } }],
  ])('of %s says what to come back with', async (_name, wish) => {
    const { headers } = await refused(wish, UPGRADE)
    expect(headers.get('upgrade')).toBe('websocket')
    expect(headers.get('sec-websocket-version')).toBe('13')
    expect(headers.get('connection')).toBe('close, Upgrade')
  })

  it('keeps the request id of its client', async () => {
    const answer = await askUpgrade(gateway.url, { ...path(''), headers: { 'x-request-id': 'mine' } })
    expect(answer.headers.get('x-request-id')).toBe('mine')
    expect(await gateway.logLine('mine')).toMatchObject({
      status: 400,
      route: '/v1/realtime',
      keyId: 'test',
      msg: 'request',
    })
  })

  it('judges the handshake first, then the page, the key, the model', async () => {
    const all = { origin: 'https://app.example.com', authorization: undefined }
    await refused({ ...path('?model=nothing'), headers: { ...all, 'sec-websocket-version': '7' } }, UPGRADE)
    await refused(
      { ...path('?model=nothing'), headers: all },
      { status: 403, type: 'permission_error', code: 'origin_not_allowed' },
    )
    await refused({ ...path('?model=nothing'), headers: { authorization: undefined } }, AUTH)
  })

  it('reaches a client that goes on sending', async () => {
    const headers = { authorization: undefined, 'x-request-id': 'eager' }
    const socket = await sendUpgrade(gateway.url, { headers })
    socket.pause()
    await gateway.logLine('eager')
    for (let round = 0; round < 40; round++) {
      socket.write(Buffer.alloc(10_000, 1))
      await nextTurn()
    }
    const { status, body } = await refusalOf(socket.resume())
    expect([status, body.toString()]).toEqual([401, expect.stringContaining('invalid_api_key')])
  })
})

describe('the path without an upgrade', () => {
  it('asks for one', async () => {
    const answer = await sendRaw(gateway.url, { method: 'GET', path: REALTIME_PATH })
    expect(answer.status).toBe(426)
    expect(answer.headers).toMatchObject({ upgrade: 'websocket', 'content-type': 'application/json' })
  })

  it.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('refuses %s', async (method) => {
    const { status, headers, text } = await sendRaw(gateway.url, { method, path: REALTIME_PATH })
    expect([status, headers['allow']]).toEqual([405, 'GET, HEAD'])
    expect(text).toContain('method_not_allowed')
  })

  it('answers HEAD like GET, without the body', async () => {
    const { status, text } = await sendRaw(gateway.url, { method: 'HEAD', path: REALTIME_PATH })
    expect([status, text]).toEqual([426, ''])
  })
})

describe('an offer that nobody waits for changes nothing about a request', () => {
  it('be it to a path of plain requests', async () => {
    const headers = { connection: 'Upgrade', upgrade: 'websocket' }
    const answer = await sendRaw(gateway.url, { method: 'GET', path: '/v1/models', headers })
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('gpt-realtime')])
  })

  it('be it to speak HTTP/2, with a body', async () => {
    const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAAQAAP__' }
    const body = JSON.stringify({ model: 'no-such-model', messages: [{ role: 'user', content: 'Hello' }] })
    const answer = await sendRaw(gateway.url, { path: '/v1/chat/completions', headers, body })
    expect([answer.status, answer.text]).toEqual([404, expect.stringContaining('model_not_found')])
  })
})
