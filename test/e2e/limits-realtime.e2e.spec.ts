import { once } from 'node:events'
import { afterEach, describe, expect, it } from '@jest/globals'
import { WebSocket } from 'ws'
import { eventually } from '../support/eventually.js'
import type { TestGateway } from '../support/gateway.js'
import { type LimitedRealtime, limitsOf, startLimitedRealtime } from '../support/limited-sessions.js'
import type { RealtimeUpstream } from '../support/realtime-upstream.js'
import { askUpgrade, REALTIME_PATH } from '../support/upgrade-client.js'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(limits: object): Promise<LimitedRealtime> {
  const lab = await startLimitedRealtime(limits)
  closers.push(lab.close)
  return lab
}

async function dial({ url }: TestGateway): Promise<WebSocket> {
  const client = new WebSocket(url.replace('http', 'ws') + REALTIME_PATH, { headers: { authorization: 'Bearer team' } })
  closers.push(() => {
    client.terminate()
    return Promise.resolve()
  })
  await once(client, 'open')
  return client
}

const refusalOf = async ({
  url,
}: TestGateway): Promise<{ status: number; headers: ReadonlyMap<string, string>; body: unknown }> => {
  const { status, headers, body } = await askUpgrade(url, { headers: { authorization: 'Bearer team' } })
  return { status, headers, body: JSON.parse(body.toString()) as unknown }
}

const heard = async (socket: WebSocket): Promise<Record<string, unknown>> => {
  const [message] = (await once(socket, 'message')) as [Buffer]
  return JSON.parse(message.toString()) as Record<string, unknown>
}

const done = (tokens: number): string =>
  JSON.stringify({
    type: 'response.done',
    event_id: 'event_1',
    response: {
      status: 'completed',
      usage: {
        total_tokens: tokens,
        input_tokens: tokens - 40,
        output_tokens: 40,
        input_token_details: { audio_tokens: 30, cached_tokens: 0 },
        output_token_details: { text_tokens: 0, audio_tokens: 40 },
      },
    },
  })

const APPEND = JSON.stringify({ type: 'input_audio_buffer.append', event_id: 'mine', audio: 'AAAA' })
const CREATE = '{"type":"response.create","event_id":"mine"}'

describe('Realtime sessions of a key', () => {
  it('are as many at once as its limit says; the next is refused before its upstream is dialled', async () => {
    const { gateway, upstream } = await start({ realtimeSessions: 1, requestsPerMinute: 10 })
    const client = await dial(gateway)
    const { status, headers, body } = await refusalOf(gateway)
    expect([status, headers.get('retry-after')]).toEqual([429, '1'])
    expect(headers.get('x-gateway-limit')).toBe('realtimeSessions; scope=key:team; reset=1')
    expect(body).toMatchObject({ error: { code: 'concurrency_limit_exceeded', type: 'rate_limit_error' } })
    expect(upstream.requests).toHaveLength(1)
    client.close()
    await eventually(async () => (await limitsOf(gateway))['realtimeSessions']?.in_use === 0)
    expect((await limitsOf(gateway))['requestsPerMinute']).toMatchObject({ remaining: 9 })
    await dial(gateway)
  })

  it('keep their place among requests under way for all their life, and no place once refused', async () => {
    const { gateway, upstream } = await start({ concurrency: 1 })
    const client = await dial(gateway)
    expect((await refusalOf(gateway)).headers.get('x-gateway-limit')).toBe('concurrency; scope=key:team; reset=1')
    client.terminate()
    await eventually(async () => (await limitsOf(gateway))['concurrency']?.in_use === 0)
    await upstream.close()
    const refused = await refusalOf(gateway)
    expect(refused.status).toBeGreaterThanOrEqual(500)
    await eventually(async () => (await limitsOf(gateway))['concurrency']?.in_use === 0)
  })

  it('pay for each answer as it is given', async () => {
    const { gateway, upstream } = await start({ tokensPerMinute: 1000, audioSecondsPerMinute: 60, concurrency: 1 })
    const client = await dial(gateway)
    upstream.sockets[0]?.send(done(100))
    await heard(client)
    expect((await limitsOf(gateway))['tokensPerMinute']).toMatchObject({ remaining: 900 })
    // 30 tokens heard, 40 spoken: 3 s and 2 s.
    expect((await limitsOf(gateway))['audioSecondsPerMinute']).toMatchObject({ remaining: 55 })
    client.close()
    await eventually(async () => (await limitsOf(gateway))['concurrency']?.in_use === 0)
    expect((await limitsOf(gateway))['tokensPerMinute']).toMatchObject({ remaining: 900 })
  })

  it('get no further answer once nothing is left, and no other session begins', async () => {
    const { gateway, upstream } = await start({ tokensPerMinute: 100 })
    const client = await dial(gateway)
    const [socket] = upstream.sockets
    client.send(CREATE)
    if (socket === undefined) throw new Error('nobody was dialled')
    expect(await heard(socket)).toMatchObject({ type: 'response.create' })
    socket.send(done(150))
    await heard(client)
    const events: Record<string, unknown>[] = []
    client.on('message', (message: Buffer) => events.push(JSON.parse(message.toString()) as Record<string, unknown>))
    for (const event of [CREATE, APPEND, APPEND, APPEND, '{"type":"response.cancel"}']) client.send(event)
    expect(await heard(socket)).toMatchObject({ type: 'response.cancel' })
    await eventually(() => events.length >= 2)
    const refused = {
      type: 'error',
      error: {
        type: 'rate_limit_error',
        code: 'rate_limit_exceeded',
        event_id: 'mine',
        message: expect.stringMatching(/^The limit of 100 tokens per minute of this API key \(key:team\) is used up/),
      },
    }
    expect(events).toMatchObject([refused, refused])
    const { status, headers } = await refusalOf(gateway)
    expect([status, headers.get('x-gateway-limit')]).toMatchObject([429, expect.stringMatching(/^tokensPerMinute; /)])
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(30)
    expect(client.readyState).toBe(WebSocket.OPEN)
  })
})

/** Hears five seconds of an answer, and leaves. */
async function hearAndLeave(gateway: TestGateway, upstream: RealtimeUpstream): Promise<void> {
  const client = await dial(gateway)
  const [socket] = upstream.sockets
  socket?.send('{"type":"response.created","response":{"id":"resp_1"}}')
  await once(client, 'message')
  const delta = Buffer.alloc(5 * 48_000).toString('base64')
  socket?.send(JSON.stringify({ type: 'response.output_audio.delta', response_id: 'resp_1', delta }))
  await once(client, 'message')
  client.close()
  await eventually(async () => (await limitsOf(gateway))['concurrency']?.in_use === 0)
}

describe('The limits of a key', () => {
  it('are debited for an answer that its client did not hear to the end', async () => {
    const { gateway, upstream } = await start({ tokensPerMinute: 1000, audioSecondsPerMinute: 60, concurrency: 1 })
    await hearAndLeave(gateway, upstream)
    const { tokensPerMinute, audioSecondsPerMinute } = await limitsOf(gateway)
    expect(audioSecondsPerMinute).toMatchObject({ remaining: 55 })
    expect(tokensPerMinute).toMatchObject({ remaining: 900 })
  })

  it.each([['tokensPerMinute', 100] as const, ['audioSecondsPerMinute', 5] as const])(
    'let nobody connect again who has heard all that %s allows',
    async (name, limit) => {
      const { gateway, upstream } = await start({ [name]: limit, concurrency: 1 })
      await hearAndLeave(gateway, upstream)
      const { status, headers } = await refusalOf(gateway)
      const named: unknown = expect.stringMatching(new RegExp(`^${name};`))
      expect([status, headers.get('x-gateway-limit')]).toEqual([429, named])
    },
  )
})
