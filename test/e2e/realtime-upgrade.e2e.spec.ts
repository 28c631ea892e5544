import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { Readiness } from '../../src/observability/readiness.js'
import { eventually } from '../support/eventually.js'
import type { Refusal } from '../support/failing-calls.js'
import {
  connectionsOf,
  connectTo,
  sendRaw,
  startGateway,
  TEST_KEY,
  type TestGateway,
  type TestGatewayOptions,
} from '../support/gateway.js'
import { closeAfterEach, shareLab } from '../support/lab-lifetime.js'
import { unusedPort } from '../support/raw-upstream.js'
import {
  askUpgrade,
  connectRealtime,
  handshake,
  headOf,
  holds,
  type HttpAnswer,
  REALTIME_PATH,
  REALTIME_UPSTREAM_KEY,
  realtimeChannel,
  type RealtimeLab,
  type RealtimeUpstream,
  refusalOf,
  sendUpgrade,
  startRealtimeLab,
  startRealtimeUpstream,
  textFrame,
  type UpgradeRequest,
  type UpstreamUpgrade,
} from '../support/realtime-upstream.js'

describe('realtime upgrade', () => {
  const keys = [
    { id: 'test', key: TEST_KEY },
    { id: 'narrow', key: 'narrow-key', models: ['tts-*'] },
  ]

  let lab: RealtimeLab
  shareLab(async () => (lab = await startRealtimeLab({ keys })))

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
    const answer = await askUpgrade(lab.gateway.url, wish)
    expectRefusal(answer, expected)
    return answer
  }

  const path = (query: string): UpgradeRequest => ({ path: `/v1/realtime${query}` })
  const header = (name: string, value: string | undefined): UpgradeRequest => ({ headers: { [name]: value } })
  const protocols = (...names: string[]): UpgradeRequest => header('sec-websocket-protocol', names.join(', '))
  const AMBIGUOUS = { status: 400, code: 'ambiguous_key' }
  const BAD_MODEL = { status: 400, param: 'model' }
  const BAD_PAGE = { status: 403, type: 'permission_error', code: 'origin_not_allowed' }
  const badHeader = (param: string): Refusal => ({ status: 400, code: null, param })

  describe('an upgrade that cannot be served is refused before the 101', () => {
    it.each<[string, UpgradeRequest, Refusal]>([
      ['of another version', header('sec-websocket-version', '8'), UPGRADE],
      ['without a version', header('sec-websocket-version', undefined), UPGRADE],
      ['without a key of the handshake', header('sec-websocket-key', undefined), badHeader('sec-websocket-key')],
      ['with a short key of the handshake', header('sec-websocket-key', 'dGhl'), badHeader('sec-websocket-key')],
      ['with a body', header('content-length', '5'), badHeader('content-length')],
      ['with a body in chunks', header('transfer-encoding', 'chunked'), badHeader('content-length')],
      ['with a broken list of subprotocols', protocols('realtime', ''), badHeader('sec-websocket-protocol')],
      ['with a subprotocol offered twice', protocols('realtime', 'realtime'), badHeader('sec-websocket-protocol')],
      ['from a page', header('origin', 'https://app.example.com'), BAD_PAGE],
      ['from a page without an address', header('origin', 'null'), BAD_PAGE],
      ['without an API key', header('authorization', undefined), AUTH],
      ['with an unknown API key', header('authorization', 'Bearer unknown'), AUTH],
      ['with another scheme', header('authorization', 'Basic dGVzdDp0ZXN0'), AUTH],
      [
        'with an unknown key among the subprotocols',
        {
          headers: { authorization: undefined, 'sec-websocket-protocol': 'realtime, openai-insecure-api-key.unknown' },
        },
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
      [
        'with a second model in another case',
        path('?model=gpt-realtime&Model=gpt-5'),
        { ...AMBIGUOUS, param: 'Model' },
      ],
      ['with a model in another case only', path('?MODEL=gpt-realtime'), { ...AMBIGUOUS, param: 'MODEL' }],
      [
        'with a setting in another case',
        path('?model=gpt-realtime&%C4%B0ntent=x&INTENT=x'),
        { ...AMBIGUOUS, param: 'INTENT' },
      ],
      [
        'with a setting twice',
        path('?model=gpt-realtime&intent=x&intent=y'),
        { status: 400, param: 'intent', code: 'duplicate_key' },
      ],
      ['with two models', path('?model=gpt-realtime&model=gpt-realtime'), { ...BAD_MODEL, code: 'duplicate_key' }],
      [
        'to a telephone call',
        path('?model=gpt-realtime&call_id=rtc_1'),
        { status: 400, code: 'unsupported_value', param: 'call_id' },
      ],
      [
        'for a transcription by no model of that name',
        path('?intent=transcription&model=no-such-model'),
        { ...BAD_MODEL, status: 404, code: 'model_not_found' },
      ],
      [
        'for a transcription by a model that cannot',
        path('?intent=transcription&model=tts-1'),
        { ...BAD_MODEL, status: 404, code: 'model_not_found' },
      ],
      [
        'for a transcription by an empty name',
        path('?intent=transcription&model='),
        { ...BAD_MODEL, code: 'empty_string' },
      ],
      [
        'for a transcription within a telephone call',
        path('?intent=transcription&call_id=rtc_1'),
        { status: 400, code: 'unsupported_value', param: 'call_id' },
      ],
      [
        'for a transcription with a key that may use no model for it',
        { path: '/v1/realtime?intent=transcription', headers: { authorization: 'Bearer narrow-key' } },
        { status: 403, type: 'permission_error', code: 'model_not_allowed' },
      ],
      [
        'for a transcription by a model the key may not use',
        { path: '/v1/realtime?intent=transcription&model=whisper-1', headers: { authorization: 'Bearer narrow-key' } },
        { ...BAD_MODEL, status: 403, type: 'permission_error', code: 'model_not_allowed' },
      ],
      [
        'to a model that only transcription sessions have',
        path('?model=whisper-1'),
        { ...BAD_MODEL, status: 404, code: 'model_not_found' },
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
      expect(lab.upstream.requests).toHaveLength(0)
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
      const answer = await askUpgrade(lab.gateway.url, { ...path(''), headers: { 'x-request-id': 'mine' } })
      expect(answer.headers.get('x-request-id')).toBe('mine')
      expect(await lab.gateway.logLine('mine')).toMatchObject({
        status: 400,
        route: '/v1/realtime',
        keyId: 'test',
        msg: 'request',
      })
    })

    it('judges the handshake first, then the page, the key, the model', async () => {
      const all = { origin: 'https://app.example.com', authorization: undefined }
      await refused({ ...path('?model=nothing'), headers: { ...all, 'sec-websocket-version': '7' } }, UPGRADE)
      await refused({ ...path('?model=nothing'), headers: all }, BAD_PAGE)
      await refused({ ...path('?model=nothing'), headers: { authorization: undefined } }, AUTH)
    })

    it('reaches a client that goes on sending', async () => {
      const headers = { authorization: undefined, 'x-request-id': 'eager' }
      const socket = await sendUpgrade(lab.gateway.url, { headers })
      socket.pause()
      await lab.gateway.logLine('eager')
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
      const answer = await sendRaw(lab.gateway.url, { method: 'GET', path: REALTIME_PATH })
      expect(answer.status).toBe(426)
      expect(answer.headers).toMatchObject({ upgrade: 'websocket', 'content-type': 'application/json' })
    })

    it.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('refuses %s', async (method) => {
      const { status, headers, text } = await sendRaw(lab.gateway.url, { method, path: REALTIME_PATH })
      expect([status, headers['allow']]).toEqual([405, 'GET, HEAD'])
      expect(text).toContain('method_not_allowed')
    })

    it('answers HEAD like GET, without the body', async () => {
      const { status, text } = await sendRaw(lab.gateway.url, { method: 'HEAD', path: REALTIME_PATH })
      expect([status, text]).toEqual([426, ''])
    })
  })

  describe('an Upgrade offer without a handler changes nothing about a request', () => {
    it('be it to a path of plain requests', async () => {
      const headers = { connection: 'Upgrade', upgrade: 'websocket' }
      const answer = await sendRaw(lab.gateway.url, { method: 'GET', path: '/v1/models', headers })
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('gpt-realtime')])
    })

    it('be it to speak HTTP/2, with a body', async () => {
      const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAAQAAP__' }
      const body = JSON.stringify({ model: 'no-such-model', messages: [{ role: 'user', content: 'Hello' }] })
      const answer = await sendRaw(lab.gateway.url, { path: '/v1/chat/completions', headers, body })
      expect([answer.status, answer.text]).toEqual([404, expect.stringContaining('model_not_found')])
    })
  })
})

describe('realtime connections', () => {
  const opened = closeAfterEach()

  const start = async (...parameters: Parameters<typeof startRealtimeLab>): Promise<RealtimeLab> =>
    opened(await startRealtimeLab(...parameters))

  /** Starts an upstream that answers upgrades this way; by default it accepts them. */
  const upstreamThat = async (answer?: (upgrade: UpstreamUpgrade) => void): Promise<RealtimeUpstream> =>
    opened(await startRealtimeUpstream(answer))

  const gatewayTo = async (
    channels: readonly object[],
    options: Partial<TestGatewayOptions> = {},
  ): Promise<TestGateway> => opened(await startGateway({ channels, ...options }))

  const KEY_OFFER = `openai-insecure-api-key.${TEST_KEY}`

  describe('the subprotocol', () => {
    let lab: RealtimeLab
    shareLab(async () => (lab = await startRealtimeLab()))

    it.each([
      ['realtime', 'realtime'],
      [undefined, undefined],
      [`realtime, ${KEY_OFFER}`, 'realtime'],
      [`${KEY_OFFER},realtime`, 'realtime'],
      [`realtime, ${KEY_OFFER}, openai-organization.o, openai-project.p, openai-beta.realtime-v1`, 'realtime'],
      [KEY_OFFER, undefined],
      ['chat, openai-beta.realtime-v1', undefined],
      ['Realtime', undefined],
    ])('offered as %s is answered with %s', async (offered, chosen) => {
      const socket = await sendUpgrade(lab.gateway.url, { headers: { 'sec-websocket-protocol': offered } })
      const { status, headers } = await headOf(socket)
      socket.destroy()
      expect([status, headers.get('sec-websocket-protocol')]).toEqual([101, chosen])
      expect(headers.get('sec-websocket-accept')).toBe('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
      expect(headers.get('sec-websocket-extensions')).toBeUndefined()
      expect(headers.get('x-request-id')).toMatch(/^req_/)
    })

    it.each([
      ['a header', ['realtime'], { authorization: `Bearer ${TEST_KEY}` }],
      ['a subprotocol, as browsers must', ['realtime', KEY_OFFER], {}],
      ['a header, and offers nothing', [], { authorization: `Bearer ${TEST_KEY}` }],
    ])('suits a client that sends its key in %s', async (_name, offered, headers) => {
      const client = new WebSocket(lab.gateway.url.replace('http', 'ws') + REALTIME_PATH, offered, { headers })
      await once(client, 'open')
      expect(client.protocol).toBe(offered[0] ?? '')
      client.terminate()
    })

    it('with a key in it reaches neither log nor upstream', async () => {
      const { gateway, upstream } = lab
      const headers = { authorization: undefined, 'x-request-id': 'mine' }
      const offer = { 'sec-websocket-protocol': `realtime, ${KEY_OFFER}` }
      const socket = await sendUpgrade(gateway.url, { headers: { ...headers, ...offer } })
      await headOf(socket)
      socket.destroy()
      await gateway.logLine('mine')
      const refused = { 'sec-websocket-protocol': 'realtime, openai-insecure-api-key.canary-key-17' }
      const answer = await askUpgrade(gateway.url, { headers: { ...headers, ...refused, 'x-request-id': 'other' } })
      await gateway.logLine('other')
      expect(JSON.stringify([...answer.headers]) + answer.body.toString()).not.toContain('canary-key-17')
      for (const key of [TEST_KEY, 'canary-key-17', 'insecure', REALTIME_UPSTREAM_KEY]) {
        expect(gateway.logText()).not.toContain(key)
      }
      expect(JSON.stringify(upstream.requests.map(({ rawHeaders }) => rawHeaders))).not.toContain(TEST_KEY)
    })
  })

  describe('a page', () => {
    it.each([
      [['https://app.example.com'], 'https://app.example.com', 101],
      [['https://app.example.com/'], 'https://app.example.com', 101],
      [['https://app.example.com'], 'https://app.example.com.evil.com', 403],
      [['https://app.example.com'], 'http://app.example.com', 403],
      [['https://app.example.com'], undefined, 101],
      [['*'], 'https://anything.example', 101],
      [['*'], 'null', 101],
    ])('where %j may connect: %s gets %i', async (allowedOrigins, origin, expected) => {
      const { gateway } = await start({ sections: { server: { cors: { allowedOrigins } } } })
      const socket = await sendUpgrade(gateway.url, { headers: { origin } })
      const { status } = await headOf(socket)
      socket.destroy()
      expect(status).toBe(expected)
    })
  })

  describe('the upstream', () => {
    it('gets the model it knows, what it knows of the query, the key of its channel, and nothing else of the caller', async () => {
      const { gateway, upstream } = await start({}, { modelMap: { 'gpt-realtime': 'their/realtime' } })
      const query = 'intent=conversation&x=%C3%BC&api_key=canary-1&accessToken=canary-2&x-api-key=canary-3&max_tokens=5'
      const headers = { 'sec-websocket-protocol': 'realtime', 'openai-organization': 'org-canary', cookie: 'a=canary' }
      const socket = await sendUpgrade(gateway.url, { path: `${REALTIME_PATH}&${query}`, headers })
      await headOf(socket)
      socket.destroy()
      const [request] = upstream.requests
      expect(request?.url).toBe('/v1/realtime?model=their%2Frealtime&intent=conversation')
      expect(request?.headers).toEqual({
        authorization: `Bearer ${REALTIME_UPSTREAM_KEY}`,
        connection: 'Upgrade',
        host: new URL(upstream.url).host,
        'sec-websocket-key': expect.any(String),
        'sec-websocket-version': '13',
        upgrade: 'websocket',
      })
    })

    it.each(['', '&model=whisper-1', '&model=gpt-realtime-whisper', '&model=gpt-realtime'])(
      'of a transcription session (intent=transcription%s) gets no model, as P1 refuses one',
      async (model) => {
        const { gateway, upstream } = await start({}, { modelMap: { 'whisper-1': 'their-whisper' } })
        const path = `/v1/realtime?intent=Transcription${model}&x=1`
        const socket = await sendUpgrade(gateway.url, { path })
        expect((await headOf(socket)).status).toBe(101)
        socket.destroy()
        expect(upstream.requests.map(({ url }) => url)).toEqual(['/v1/realtime?intent=transcription'])
      },
    )

    it.each([
      ['beta', 'realtime=v1'],
      ['ga', undefined],
    ])(
      'of the dialect %s is asked with OpenAI-Beta: %s, whatever the caller sends',
      async (realtimeDialect, header) => {
        const { gateway, upstream } = await start({}, { options: { realtimeDialect } })
        for (const theirs of ['realtime=v1', undefined]) {
          const socket = await sendUpgrade(gateway.url, { headers: { 'openai-beta': theirs } })
          await headOf(socket)
          socket.destroy()
        }
        expect(upstream.requests.map(({ headers }) => headers['openai-beta'])).toEqual([header, header])
      },
    )
  })

  describe('events that a client sends before it was let in', () => {
    const event = (id: string): string => JSON.stringify({ type: 'input_audio_buffer.clear', event_id: id })
    const idsOf = (socket: WebSocket, count: number): Promise<string[]> =>
      new Promise((resolve) => {
        const ids: string[] = []
        socket.on('message', (message: Buffer) => {
          ids.push((JSON.parse(message.toString()) as { event_id: string }).event_id)
          if (ids.length === count) resolve(ids)
        })
      })

    it('in the same packet arrive', async () => {
      const { gateway, upstream } = await start()
      const upgrade = upstream.nextUpgrade()
      const socket = await sendUpgrade(gateway.url, { early: textFrame(event('first')) })
      await upgrade
      expect(await idsOf(upstream.sockets[0] as WebSocket, 1)).toEqual(['first'])
      socket.destroy()
    })

    it('during the dial arrive in order, however many they are', async () => {
      const upstream = await upstreamThat(holds)
      const gateway = await gatewayTo([realtimeChannel(upstream)])
      const upgrade = upstream.nextUpgrade()
      const connection = once(gateway.server, 'connection') as Promise<[Socket]>
      const socket = await sendUpgrade(gateway.url)
      const { accept } = await upgrade
      const sent = Array.from({ length: 300 }, (_, index) => `${index} ${'x'.repeat(400)}`)
      for (const id of sent) socket.write(textFrame(event(id)))
      const [theirs] = await connection
      // More than the gateway keeps: the rest waits in the sockets between.
      await eventually(() => theirs.bytesRead > 65_536)
      const received = idsOf(accept(), sent.length)
      socket.resume()
      expect(await received).toEqual(sent)
      socket.destroy()
    })
  })

  describe('an upgrade that does not wait for the answer before it', () => {
    const ahead = (request: string): Buffer => Buffer.from(`${request}\r\n\r\n`)

    it.each(['GET /health/live HTTP/1.1\r\nhost: x', 'GET /nowhere HTTP/1.1\r\nhost: x'])(
      'behind %j is a request like any other',
      async (first) => {
        const { gateway, upstream } = await start()
        const socket = await sendUpgrade(gateway.url, {
          before: ahead(first),
          headers: { connection: 'Upgrade, close' },
        })
        let text = ''
        socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
        await once(socket, 'end')
        socket.end()
        expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual([expect.stringMatching(/200|404/), 'HTTP/1.1 426'])
        expect(upstream.requests).toHaveLength(0)
      },
    )

    it('on a connection that has had its answer is served', async () => {
      const { gateway } = await start()
      const socket = connectTo(gateway)
      socket.write(ahead('GET /health/live HTTP/1.1\r\nhost: x'))
      expect((await headOf(socket)).status).toBe(200)
      socket.write(handshake())
      expect((await headOf(socket)).status).toBe(101)
      socket.destroy()
    })
  })

  const errorBody = (message: string, code: string | null = null): object => ({
    error: { message, type: 'invalid_request_error', param: null, code },
  })

  describe('what an upstream refuses', () => {
    it.each([
      [401, errorBody('Incorrect API key provided: sk-canary-1234567.', 'invalid_api_key'), 502, 'upstream_failed'],
      [402, errorBody('Pay first.'), 502, 'upstream_failed'],
      [403, errorBody('You have no access to the model.'), 502, 'upstream_failed'],
      [429, errorBody('Slow down.', 'rate_limit_exceeded'), 429, 'rate_limit_exceeded'],
      [429, errorBody('You exceeded your quota.', 'insufficient_quota'), 502, 'upstream_failed'],
      [400, errorBody('Unsupported intent.', 'invalid_value'), 400, 'invalid_value'],
      [404, errorBody('No such model.', 'model_not_found'), 404, 'model_not_found'],
      [500, errorBody('Internal.'), 502, 'upstream_failed'],
      [503, 'busy', 503, 'upstream_overloaded'],
      [200, {}, 502, 'upstream_failed'],
      [302, {}, 502, 'upstream_failed'],
    ])('with %i %j is %i %s to the caller', async (status, body, expected, code) => {
      const upstream = await upstreamThat(({ refuse }) => {
        refuse(status, body, { 'retry-after': '7', location: 'http://127.0.0.1:1/' })
      })
      const gateway = await gatewayTo([realtimeChannel(upstream)])
      const answer = await askUpgrade(gateway.url)
      const { error } = JSON.parse(answer.body.toString()) as { error: { code: string } }
      expect([answer.status, error.code]).toEqual([expected, code])
      expect(answer.headers.get('retry-after')).toBe([429, 503].includes(expected) ? '7' : undefined)
      expect(answer.body.toString()).not.toMatch(/canary|127\.0\.0\.1/)
      await eventually(() => upstream.connections === 0)
    })

    it('with its caller’s own key is that caller’s fault', async () => {
      const upstream = await upstreamThat(({ refuse }) => {
        refuse(401, errorBody('Incorrect API key.', 'invalid_api_key'))
      })
      const gateway = await gatewayTo([realtimeChannel(upstream, { credentials: 'caller' })])
      const answer = await askUpgrade(gateway.url, { headers: { authorization: 'Bearer their-own' } })
      expect(answer.status).toBe(401)
      expect(upstream.requests[0]?.headers.authorization).toBe('Bearer their-own')
    })
  })

  describe('an upstream that', () => {
    it('says nothing is 504 to the caller', async () => {
      const upstream = await upstreamThat(holds)
      const gateway = await gatewayTo([realtimeChannel(upstream, { timeouts: { firstByteMs: 40 } })])
      const answer = await askUpgrade(gateway.url)
      expect([answer.status, answer.body.toString()]).toEqual([504, expect.stringContaining('upstream_timeout')])
    })

    it('is not there is 502 to the caller', async () => {
      const gateway = await gatewayTo([realtimeChannel({ url: `http://127.0.0.1:${await unusedPort()}` })])
      expect((await askUpgrade(gateway.url)).status).toBe(502)
    })

    const refuses =
      (status: number, body: string | object) =>
      ({ refuse }: UpstreamUpgrade): void => {
        refuse(status, body)
      }

    it.each<[string, (upgrade: UpstreamUpgrade) => void]>([
      ['refuses the gateway’s key', refuses(401, errorBody('No.'))],
      ['is busy', refuses(429, errorBody('No.'))],
      ['fails', refuses(500, 'no')],
      ['hangs up', ({ socket }) => void socket.destroy()],
    ])('%s is replaced by the next before the caller hears anything', async (_name, answer) => {
      const first = await upstreamThat(answer)
      const second = await upstreamThat()
      const gateway = await gatewayTo([realtimeChannel(first), realtimeChannel(second, { id: 'second', priority: 1 })])
      const client = connectRealtime(gateway)
      await once(client, 'open')
      client.close()
      expect([first.requests.length, second.requests.length]).toEqual([1, 1])
      expect(await gateway.logLine('mine')).toMatchObject({
        status: 101,
        attempts: 2,
        channel: 'second',
        model: 'gpt-realtime',
      })
    })
  })

  describe('a client that leaves during the dial', () => {
    it.each([
      ['by a reset', 'resetAndDestroy'],
      ['by closing its half', 'end'],
      ['without a word', 'destroy'],
    ] as const)('%s ends it at once', async (_name, leave) => {
      const upstream = await upstreamThat(holds)
      const gateway = await gatewayTo([realtimeChannel(upstream)])
      const dialled = upstream.nextUpgrade()
      const socket = await sendUpgrade(gateway.url, { headers: { 'x-request-id': 'mine' } })
      const { socket: held } = await dialled
      const aborted = once(held.resume(), 'end')
      socket[leave]()
      await aborted
      expect(await gateway.logLine('mine')).toMatchObject({ status: 499, channel: 'first' })
      await eventually(async () => (await connectionsOf(gateway)) === 0)
    })
  })

  it('200 refused upgrades leave nothing behind', async () => {
    const upstream = await upstreamThat(({ refuse }) => {
      refuse(400, errorBody('No.'))
    })
    const gateway = await gatewayTo([realtimeChannel(upstream)])
    const { server } = gateway
    const listeners = (): number[] => server.eventNames().map((name) => server.listenerCount(name))
    const before = listeners()
    const wishes = [
      {},
      { headers: { authorization: undefined } },
      { path: '/v1/realtime' },
      { path: '/nowhere', headers: { connection: 'Upgrade, close' } },
    ]
    for (let round = 0; round < 50; round++) await Promise.all(wishes.map((wish) => askUpgrade(gateway.url, wish)))
    await eventually(async () => (await connectionsOf(gateway)) === 0 && upstream.connections === 0)
    expect(upstream.requests).toHaveLength(50)
    expect(listeners()).toEqual(before)
  })

  describe('the sessions of a gateway', () => {
    it('are bounded, those being dialled included, and make room when they end', async () => {
      const upstream = await upstreamThat(holds)
      const gateway = await gatewayTo([realtimeChannel(upstream)], { sections: { limits: { realtimeSessions: 1 } } })
      const dialled = upstream.nextUpgrade()
      const first = connectRealtime(gateway)
      const { accept } = await dialled
      const full = await askUpgrade(gateway.url)
      expect([full.status, full.headers.get('retry-after')]).toEqual([503, '5'])
      expect(full.body.toString()).toContain('"code":"overloaded"')
      accept()
      await once(first, 'open')
      expect((await askUpgrade(gateway.url)).status).toBe(503)
      first.close()
      await once(first, 'close')
      const next = upstream.nextUpgrade()
      await eventually(async () => {
        const socket = await sendUpgrade(gateway.url)
        const isFull = await Promise.race([next.then(() => false), refusalOf(socket).then(() => true)])
        socket.destroy()
        return !isFull
      })
    })

    it('end with 1001 when it drains, and no new one begins', async () => {
      const { gateway, upstream } = await start()
      const client = connectRealtime(gateway)
      await once(client, 'open')
      const [inner] = upstream.sockets
      const closed = Promise.all([once(client, 'close'), once(inner as WebSocket, 'close')])
      gateway.application.get(Readiness).markDraining()
      expect((await closed).map(([code]) => code as number)).toEqual([1001, 1001])
      const refused = await askUpgrade(gateway.url)
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
      await eventually(async () => (await connectionsOf(gateway)) === 0)
    })

    it('with an answer under way end with that answer when it drains, at the latest with the grace time', async () => {
      const { gateway, upstream } = await start()
      const codes: number[] = []
      const openAnswering = async (): Promise<WebSocket> => {
        const client = connectRealtime(gateway).on('close', (code) => codes.push(code))
        await once(client, 'open')
        const begun = once(client, 'message')
        upstream.sockets.at(-1)?.send('{"type":"response.created","response":{"id":"resp_1"}}')
        await begun
        return client
      }
      const [one, other] = [await openAnswering(), await openAnswering()].map((client) => once(client, 'close'))
      const readiness = gateway.application.get(Readiness)
      readiness.markDraining()
      expect((await askUpgrade(gateway.url)).status).toBe(503)
      expect(codes).toEqual([])
      upstream.sockets[0]?.send('{"type":"response.done","response":{"id":"resp_1"}}')
      await one
      expect(codes).toEqual([1001])
      readiness.markGraceOver()
      await other
      expect(codes).toEqual([1001, 1001])
      await eventually(async () => (await connectionsOf(gateway)) === 0)
    })

    it('that are being dialled when it drains are refused after all', async () => {
      const upstream = await upstreamThat(holds)
      const gateway = await gatewayTo([realtimeChannel(upstream)])
      const dialled = upstream.nextUpgrade()
      const socket = await sendUpgrade(gateway.url)
      const { accept } = await dialled
      gateway.application.get(Readiness).markDraining()
      const inner = accept()
      expect((await refusalOf(socket)).status).toBe(503)
      if (inner.readyState !== WebSocket.CLOSED) await once(inner, 'close')
    })

    it('leave one line in the log, with status 101', async () => {
      const { gateway } = await start()
      const client = connectRealtime(gateway)
      await once(client, 'open')
      expect(gateway.logText()).not.toContain('"msg":"request"')
      client.close()
      const line = await gateway.logLine('mine')
      expect(line).toMatchObject({ status: 101, upstreamStatus: 101, channel: 'first', keyId: 'test', msg: 'request' })
      expect(gateway.logText().match(/"msg":"request"/g)).toHaveLength(1)
      expect(gateway.logText()).not.toContain(REALTIME_UPSTREAM_KEY)
    })
  })

  it.each<[string, (client: WebSocket, upstream: WebSocket) => void]>([
    [
      'client_closed',
      (client) => {
        client.close(1000)
      },
    ],
    [
      'too_many_pings',
      (client) => {
        for (let pings = 0; pings < 50; pings++) client.ping()
      },
    ],
    [
      'upstream_lost',
      (_client, upstream) => {
        upstream.terminate()
      },
    ],
  ])('a session tells the log that it ended for the reason %s', async (cause, end) => {
    const { gateway, upstream } = await start()
    const client = connectRealtime(gateway)
    await once(client, 'open')
    end(client, upstream.sockets[0] as WebSocket)
    await eventually(() => gateway.logText().includes('"msg":"session ended"'))
    const line = gateway
      .logText()
      .split('\n')
      .find((text) => text.includes('session ended'))
    expect(JSON.parse(line ?? '')).toMatchObject({ level: 30, requestId: 'mine', cause })
  })

  it('a session that is open when the process stops is in the log all the same', async () => {
    const upstream = await upstreamThat()
    const gateway = await startGateway({ channels: [realtimeChannel(upstream)] })
    const client = connectRealtime(gateway)
    await once(client, 'open')
    const closed = once(client, 'close')
    await gateway.close()
    await closed
    expect(gateway.logText()).toMatch(/"requestId":"mine".*"msg":"request"/)
  })
})
