import { once } from 'node:events'
import { afterEach, describe, expect, it } from '@jest/globals'

import { eventually } from '../support/eventually.js'
import { unusedPort } from '../support/raw-upstream.js'
import { connectRealtime, connectionsOf, holds, RealtimeDialLab } from '../support/realtime-dial-lab.js'
import { realtimeChannel, type UpstreamUpgrade } from '../support/realtime-upstream.js'
import { askUpgrade, sendUpgrade } from '../support/upgrade-client.js'

const lab = new RealtimeDialLab()
const { gatewayTo, upstreamThat } = lab

afterEach(() => lab.close())

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
