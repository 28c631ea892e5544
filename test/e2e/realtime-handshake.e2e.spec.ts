import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { eventually } from '../support/eventually.js'
import { startGateway, TEST_KEY, type TestGateway, type TestGatewayOptions } from '../support/gateway.js'
import {
  REALTIME_UPSTREAM_KEY,
  realtimeChannel,
  type RealtimeUpstream,
  startRealtimeUpstream,
} from '../support/realtime-upstream.js'
import { askUpgrade, handshake, headOf, REALTIME_PATH, sendUpgrade, textFrame } from '../support/upgrade-client.js'

let upstream: RealtimeUpstream | undefined
let gateway: TestGateway | undefined
afterEach(async () => {
  await gateway?.close()
  await upstream?.close()
  gateway = upstream = undefined
})

interface Lab {
  readonly gateway: TestGateway
  readonly upstream: RealtimeUpstream
}

async function start(options: Partial<TestGatewayOptions> = {}, channel: object = {}): Promise<Lab> {
  upstream = await startRealtimeUpstream()
  gateway = await startGateway({ channels: [realtimeChannel(upstream, channel)], ...options })
  return { gateway, upstream }
}

const KEY_OFFER = `openai-insecure-api-key.${TEST_KEY}`

describe('the subprotocol', () => {
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
    const { gateway } = await start()
    const socket = await sendUpgrade(gateway.url, { headers: { 'sec-websocket-protocol': offered } })
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
    const { gateway } = await start()
    const client = new WebSocket(gateway.url.replace('http', 'ws') + REALTIME_PATH, offered, { headers })
    await once(client, 'open')
    expect(client.protocol).toBe(offered[0] ?? '')
    client.terminate()
  })

  it('with a key in it reaches neither log nor upstream', async () => {
    const { gateway, upstream } = await start()
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
    const { gateway } = await start({ sections: { server: { allowedOrigins } } })
    const socket = await sendUpgrade(gateway.url, { headers: { origin } })
    const { status } = await headOf(socket)
    socket.destroy()
    expect(status).toBe(expected)
  })
})

describe('the upstream', () => {
  it('gets the model it knows, the query, the key of its channel, and nothing else of the caller', async () => {
    const { gateway, upstream } = await start({}, { modelMap: { 'gpt-realtime': 'their/realtime' } })
    const query = 'intent=transcription&x=%C3%BC&api_key=canary-1&accessToken=canary-2&x-api-key=canary-3&max_tokens=5'
    const headers = { 'sec-websocket-protocol': 'realtime', 'openai-organization': 'org-canary', cookie: 'a=canary' }
    const socket = await sendUpgrade(gateway.url, { path: `${REALTIME_PATH}&${query}`, headers })
    await headOf(socket)
    socket.destroy()
    const [request] = upstream.requests
    expect(request?.url).toBe('/v1/realtime?model=their%2Frealtime&intent=transcription&x=%C3%BC&max_tokens=5')
    expect(request?.headers).toEqual({
      authorization: `Bearer ${REALTIME_UPSTREAM_KEY}`,
      connection: 'Upgrade',
      host: new URL(upstream.url).host,
      'sec-websocket-key': expect.any(String),
      'sec-websocket-version': '13',
      upgrade: 'websocket',
    })
  })

  it.each([
    ['beta', 'realtime=v1'],
    ['ga', undefined],
  ])('of the dialect %s is asked with OpenAI-Beta: %s, whatever the caller sends', async (realtimeDialect, header) => {
    const { gateway, upstream } = await start({}, { options: { realtimeDialect } })
    for (const theirs of ['realtime=v1', undefined]) {
      const socket = await sendUpgrade(gateway.url, { headers: { 'openai-beta': theirs } })
      await headOf(socket)
      socket.destroy()
    }
    expect(upstream.requests.map(({ headers }) => headers['openai-beta'])).toEqual([header, header])
  })
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
    upstream = await startRealtimeUpstream(() => undefined)
    gateway = await startGateway({ channels: [realtimeChannel(upstream)] })
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
      const socket = await sendUpgrade(gateway.url, { before: ahead(first), headers: { connection: 'Upgrade, close' } })
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
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
    socket.write(ahead('GET /health/live HTTP/1.1\r\nhost: x'))
    expect((await headOf(socket)).status).toBe(200)
    socket.write(handshake())
    expect((await headOf(socket)).status).toBe(101)
    socket.destroy()
  })
})
