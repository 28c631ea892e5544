import { once } from 'node:events'
import { afterEach, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { Readiness } from '../../src/observability/readiness.js'
import { eventually } from '../support/eventually.js'
import { startGateway } from '../support/gateway.js'
import { connectionsOf, connectRealtime, holds, RealtimeDialLab } from '../support/realtime-dial-lab.js'
import { REALTIME_UPSTREAM_KEY, realtimeChannel } from '../support/realtime-upstream.js'
import { askUpgrade, refusalOf, sendUpgrade } from '../support/upgrade-client.js'

const lab = new RealtimeDialLab()
const { gatewayTo, upstreamThat } = lab

afterEach(() => lab.close())

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
    const upstream = await upstreamThat()
    const gateway = await gatewayTo([realtimeChannel(upstream)])
    const client = connectRealtime(gateway)
    await once(client, 'open')
    const [inner] = upstream.sockets
    const closed = Promise.all([once(client, 'close'), once(inner as WebSocket, 'close')])
    gateway.application.get(Readiness).announceDraining()
    expect((await closed).map(([code]) => code as number)).toEqual([1001, 1001])
    const refused = await askUpgrade(gateway.url)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
    await eventually(async () => (await connectionsOf(gateway)) === 0)
  })

  it('with an answer under way end with that answer when it drains, at the latest with the grace time', async () => {
    const upstream = await upstreamThat()
    const gateway = await gatewayTo([realtimeChannel(upstream)])
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
    readiness.announceDraining()
    expect((await askUpgrade(gateway.url)).status).toBe(503)
    expect(codes).toEqual([])
    upstream.sockets[0]?.send('{"type":"response.done","response":{"id":"resp_1"}}')
    await one
    expect(codes).toEqual([1001])
    readiness.announceGraceOver()
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
    gateway.application.get(Readiness).announceDraining()
    const inner = accept()
    expect((await refusalOf(socket)).status).toBe(503)
    if (inner.readyState !== WebSocket.CLOSED) await once(inner, 'close')
  })

  it('leave one line in the log, with status 101', async () => {
    const upstream = await upstreamThat()
    const gateway = await gatewayTo([realtimeChannel(upstream)])
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
  const upstream = await upstreamThat()
  const gateway = await gatewayTo([realtimeChannel(upstream)])
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
