import { once } from 'node:events'
import { afterEach, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { Readiness } from '../../src/common/observability/readiness.js'
import { eventually } from '../support/eventually.js'
import { startGateway, TEST_KEY, type TestGateway, type TestGatewayOptions } from '../support/gateway.js'
import { unusedPort } from '../support/raw-upstream.js'
import {
  REALTIME_UPSTREAM_KEY,
  realtimeChannel,
  type RealtimeUpstream,
  startRealtimeUpstream,
  type UpstreamUpgrade,
} from '../support/realtime-upstream.js'
import { askUpgrade, REALTIME_PATH, refusalOf, sendUpgrade } from '../support/upgrade-client.js'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function upstreamThat(answer?: (upgrade: UpstreamUpgrade) => void): Promise<RealtimeUpstream> {
  const upstream = await startRealtimeUpstream(answer)
  closers.push(() => upstream.close())
  return upstream
}

async function gatewayTo(channels: readonly object[], options: Partial<TestGatewayOptions> = {}): Promise<TestGateway> {
  const gateway = await startGateway({ channels, ...options })
  closers.push(() => gateway.close())
  return gateway
}

const connect = (gateway: TestGateway): WebSocket =>
  new WebSocket(gateway.url.replace('http', 'ws') + REALTIME_PATH, [], {
    headers: { authorization: `Bearer ${TEST_KEY}`, 'x-request-id': 'mine' },
  })

const holds = (): void => undefined
const errorBody = (message: string, code: string | null = null): object => ({
  error: { message, type: 'invalid_request_error', param: null, code },
})
const connectionsOf = (gateway: TestGateway): Promise<number> =>
  new Promise((resolve) => {
    gateway.server.getConnections((_error, count) => {
      resolve(count)
    })
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
    [503, 'busy', 502, 'upstream_failed'],
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
    expect(answer.headers.get('retry-after')).toBe(expected === 429 ? '7' : undefined)
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

  it.each<[string, (upgrade: UpstreamUpgrade) => void]>([
    [
      'refuses the gateway’s key',
      ({ refuse }) => {
        refuse(401, errorBody('No.'))
      },
    ],
    [
      'is busy',
      ({ refuse }) => {
        refuse(429, errorBody('No.'))
      },
    ],
    [
      'fails',
      ({ refuse }) => {
        refuse(500, 'no')
      },
    ],
    [
      'hangs up',
      ({ socket }) => {
        socket.destroy()
      },
    ],
  ])('%s is replaced by the next before the caller hears anything', async (_name, answer) => {
    const first = await upstreamThat(answer)
    const second = await upstreamThat()
    const gateway = await gatewayTo([realtimeChannel(first), realtimeChannel(second, { id: 'second', priority: 1 })])
    const client = connect(gateway)
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

describe('the sessions of a gateway', () => {
  it('are bounded, those being dialled included, and make room when they end', async () => {
    const upstream = await upstreamThat(holds)
    const gateway = await gatewayTo([realtimeChannel(upstream)], { sections: { limits: { realtimeSessions: 1 } } })
    const dialled = upstream.nextUpgrade()
    const first = connect(gateway)
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
    const upstream = await upstreamThat()
    const gateway = await gatewayTo([realtimeChannel(upstream)])
    const client = connect(gateway)
    await once(client, 'open')
    const [inner] = upstream.sockets
    const closed = Promise.all([once(client, 'close'), once(inner as WebSocket, 'close')])
    gateway.application.get(Readiness).announceDraining()
    expect((await closed).map(([code]) => code as number)).toEqual([1001, 1001])
    const refused = await askUpgrade(gateway.url)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
    await eventually(async () => (await connectionsOf(gateway)) === 0)
  })

  it('that are being dialled when it drains are refused after all', async () => {
    const upstream = await upstreamThat(holds)
    const gateway = await gatewayTo([realtimeChannel(upstream)])
    const dialled = upstream.nextUpgrade()
    const socket = await sendUpgrade(gateway.url)
    const { accept } = await dialled
    gateway.application.get(Readiness).announceDraining()
    const inner = accept()
    expect((await refusalOf(socket)).status).toBe(503)
    if (inner.readyState !== WebSocket.CLOSED) await once(inner, 'close')
  })

  it('leave one line in the log, with status 101', async () => {
    const upstream = await upstreamThat()
    const gateway = await gatewayTo([realtimeChannel(upstream)])
    const client = connect(gateway)
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
  const upstream = await upstreamThat()
  const gateway = await gatewayTo([realtimeChannel(upstream)])
  const client = connect(gateway)
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
  const client = connect(gateway)
  await once(client, 'open')
  const closed = once(client, 'close')
  await gateway.close()
  await closed
  expect(gateway.logText()).toMatch(/"requestId":"mine".*"msg":"request"/)
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
