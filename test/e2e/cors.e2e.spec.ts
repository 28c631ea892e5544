import { describe, expect, it } from '@jest/globals'
import { ConfigStore } from '../../src/config/config-store.js'
import type { GatewayConfig } from '../../src/config/settings.js'
import { CHAT_PATH, chatText, errorOf, type RawAnswer, type RawRequest, sendRaw } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { type P1Gateway, startP1Gateway } from '../support/provider-gateways.js'

const APP = 'https://app.example.com'
const STRANGER = 'https://stranger.example'

const corsOf = ({ headers }: RawAnswer): Record<string, unknown> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name === 'vary' || name.startsWith('access-control-')))

const preflight = (path: string, method: string, headers: RawRequest['headers'] = {}): RawRequest => ({
  method: 'OPTIONS',
  path,
  // Browsers send no key with it.
  headers: {
    authorization: undefined,
    'content-type': undefined,
    origin: APP,
    'access-control-request-method': method,
    ...headers,
  },
})

describe('a page of another origin', () => {
  let lab: P1Gateway
  shareLab(async () => {
    lab = await startP1Gateway({ sections: { server: { cors: { allowedOrigins: [APP, 'http://*.dev.example:*'] } } } })
    return lab
  })

  const send = (raw: RawRequest): Promise<RawAnswer> => sendRaw(lab.gateway.url, raw)
  const sendChat = (origin: string | undefined, more: object = {}): Promise<RawAnswer> =>
    send({ path: CHAT_PATH, headers: { origin }, body: chatText('Hello', more) })

  it.each([
    [CHAT_PATH, 'POST', 'POST'],
    ['/v1/models', 'GET', 'GET, HEAD'],
    ['/v1/realtime', 'GET', 'GET, HEAD'],
    ['/vidgen/v1/videos/text2video', 'POST', 'POST, GET, HEAD'],
    ['/vidgen/v1/videos/text2video/5/events', 'GET', 'GET, HEAD'],
    ['/v1/document/parse', 'POST', 'POST'],
    // Which of these exist is for the operator alone to know.
    ['/admin/v1/keys', 'PATCH', 'PATCH'],
    ['/health/ready', 'GET', 'GET'],
    ['/no/such/path', 'DELETE', 'DELETE'],
  ])('may ask first about %s, and learns its methods', async (path, method, methods) => {
    const names = 'authorization,content-type,x-stainless-retry-count,openai-beta'
    const answer = await send(preflight(path, method, { 'access-control-request-headers': names }))
    expect(answer).toMatchObject({ status: 204, text: '' })
    expect(corsOf(answer)).toMatchObject({
      'access-control-allow-origin': APP,
      'access-control-allow-methods': methods,
      'access-control-allow-headers': names,
      'access-control-max-age': '7200',
      vary: expect.stringMatching(/\bOrigin, Access-Control-Request-Method, Access-Control-Request-Headers$/),
    })
  })

  it('gets answers whose caches know all that they depend on, the dialect where clients of two ask', async () => {
    const varyOf = async (path: string): Promise<unknown> => {
      const answer = await send({ method: 'GET', path, headers: { origin: APP, accept: 'text/html' } })
      return [answer.status, answer.headers.vary]
    }
    expect(await varyOf('/v1/models')).toEqual([200, 'anthropic-version, x-api-key, Origin'])
    expect(await varyOf('/v1/nothing')).toEqual([404, 'anthropic-version, x-api-key, Origin'])
    expect(await varyOf('/')).toEqual([200, 'accept, Origin'])
    expect(await varyOf('/health/live')).toEqual([200, 'Origin'])
  })

  it('is told so when it asks for a private address, as browsers do before they let a public page go there', async () => {
    const answer = await send(preflight(CHAT_PATH, 'POST', { 'access-control-request-private-network': 'true' }))
    expect(answer.headers['access-control-allow-private-network']).toBe('true')
  })

  it.each([['a, b;c'], ['x'.repeat(5000)], ['']])(
    'gets no header names allowed that are none: %.20j',
    async (names) => {
      const answer = await send(preflight(CHAT_PATH, 'POST', { 'access-control-request-headers': names }))
      expect(answer.status).toBe(204)
      expect(answer.headers).not.toHaveProperty('access-control-allow-headers')
    },
  )

  it.each([
    [APP, true],
    ['http://a.dev.example', true],
    ['http://a.b.dev.example:3000', true],
    ['https://a.dev.example', false],
    ['http://dev.example', false],
    ['http://a.dev.example.stranger.example', false],
    ['http://a.dev.example:3000.stranger.example', false],
    ['http://axdev.example', false],
    ['https://app.example.com.stranger.example', false],
    ['https://app.example.com:444', false],
    ['null', false],
    [STRANGER, false],
  ])('%s may read an answer: %s', async (origin, isAllowed) => {
    const answer = await sendChat(origin)
    expect(answer.status).toBe(200)
    expect(answer.headers['access-control-allow-origin']).toBe(isAllowed ? origin : undefined)
    expect(answer.headers['access-control-expose-headers'] !== undefined).toBe(isAllowed)
    expect(answer.headers.vary).toBe('Origin')
  })

  it('that is not allowed is refused when it asks first, before anything is done', async () => {
    const answer = await send(preflight(CHAT_PATH, 'POST', { origin: STRANGER }))
    expect(answer.status).toBe(403)
    expect(errorOf(answer)).toMatchObject({
      code: 'origin_not_allowed',
      message: expect.stringContaining('server.cors'),
    })
    expect(corsOf(answer)).toEqual({ vary: 'Origin' })
    expect(lab.simulator.requests).toEqual([])
  })

  it('may read every header of an answer, and no cookies are asked for', async () => {
    const answer = await sendChat(APP)
    const exposed = String(answer.headers['access-control-expose-headers']).split(', ')
    const unknown = Object.keys(answer.headers).filter((name) => !exposed.includes(name) && !name.startsWith('access-'))
    expect(unknown.sort()).toEqual(['connection', 'content-length', 'content-type', 'date', 'vary'])
    expect(exposed).toEqual(expect.arrayContaining(['x-request-id', 'x-gateway-channel', 'x-gateway-overhead-ms']))
    expect(answer.headers).not.toHaveProperty('access-control-allow-credentials')
  })

  it.each([
    ['a stream', () => sendChat(APP, { stream: true }), 200, 'x-request-id'],
    ['a refusal', () => sendChat(APP, { messages: 'x' }), 400, 'x-should-retry'],
    [
      'a missing key',
      () => send({ path: CHAT_PATH, headers: { origin: APP, authorization: undefined }, body: chatText('Hello') }),
      401,
      'x-request-id',
    ],
    ['an unknown path', () => send({ method: 'GET', path: '/v2', headers: { origin: APP } }), 404, 'x-request-id'],
    ['a wrong method', () => send({ method: 'PUT', path: CHAT_PATH, headers: { origin: APP } }), 405, 'allow'],
    [
      'a health check',
      () => send({ method: 'GET', path: '/health/live', headers: { origin: APP } }),
      200,
      'x-request-id',
    ],
  ])('may read %s', async (_what, ask, status, header) => {
    const answer = await ask()
    expect(answer.status).toBe(status)
    expect(answer.headers['access-control-allow-origin']).toBe(APP)
    expect(answer.headers['access-control-expose-headers']).toContain(header)
  })

  it('is no longer allowed once the configuration says so', async () => {
    expect((await sendChat(APP)).headers['access-control-allow-origin']).toBe(APP)
    const store = lab.gateway.application.get(ConfigStore)
    const { current } = store
    const use = (config: GatewayConfig): Promise<unknown> => store.reload(() => Promise.resolve({ config }))
    await use({ ...current, server: { ...current.server, cors: { ...current.server.cors, allowedOrigins: [] } } })
    const answer = await sendChat(APP)
    await use(current)
    expect(corsOf(answer)).toEqual({})
  })
})
