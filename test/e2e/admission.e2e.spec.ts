import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { endlessWork } from '../support/endless-work.js'
import { eventually } from '../support/eventually.js'
import { chatBytes, FULL, FullGateway, KeptAliveClient } from '../support/failing-calls.js'
import { openRaw, sendRaw } from '../support/raw-http.js'
import { handshake, REALTIME_PATH } from '../support/upgrade-client.js'

let lab: FullGateway
let sections: object = FULL
beforeEach(async () => {
  lab = await FullGateway.start(sections)
})
afterEach(async () => {
  await lab.close()
})

describe('A process whose event loop is slow', () => {
  beforeAll(() => {
    sections = { admission: { loopDelayHighMs: 30, loopDelayLowMs: 10 } }
  })
  afterAll(() => {
    sections = FULL
  })

  it('refuses what it cannot serve promptly, and serves everything again when it can', async () => {
    const clients = Array.from({ length: 100 }, () => new KeptAliveClient(lab.url))
    const askAll = async (): Promise<number[]> =>
      await Promise.all(clients.map(async (client) => (await client.ask()).status))
    expect(new Set(await askAll())).toEqual(new Set([200]))
    const work = endlessWork(60)
    try {
      await eventually(() => lab.admission.loop.isShedding)
      expect(new Set(await askAll())).toEqual(new Set([200, 503]))
    } finally {
      work.stop()
    }
    expect(lab.admission.refused.loop_delay).toBeGreaterThan(0)
    await eventually(() => !lab.admission.loop.isShedding)
    expect(new Set(await askAll())).toEqual(new Set([200]))
    for (const { socket } of clients) socket.destroy()
  })
})

describe('A process that has all it can do', () => {
  it.each([
    ['/v1/chat/completions', 503, { error: { type: 'overloaded_error', code: 'overloaded', param: null } }],
    ['/v1/audio/speech', 503, { error: { type: 'overloaded_error', code: 'overloaded' } }],
    ['/v1/messages', 529, { type: 'error', error: { type: 'overloaded_error' } }],
    ['/vidgen/v1/videos/text2video', 503, { code: 5001 }],
    ['/imggen/task/1/fetch', 503, { code: 5001, description: expect.any(String) }],
    ['/v1/document/parse', 503, { code: 5001 }],
    ['/nowhere', 503, { error: { code: 'overloaded' } }],
  ])('refuses a request to %s in its dialect, before it looks at it', async (path, status, body) => {
    const { answered } = await lab.fill()
    const { headers, ...refused } = await sendRaw(lab.url, {
      path,
      body: 'not even JSON',
      headers: { 'x-request-id': 'mine', authorization: undefined },
    })
    expect([refused.status, headers['retry-after'], headers['x-request-id']]).toEqual([status, '1', 'mine'])
    expect(headers).not.toHaveProperty('x-should-retry')
    expect(headers).not.toHaveProperty('x-gateway-channel')
    expect(JSON.parse(refused.text)).toMatchObject(body)
    expect(await lab.gateway.logLine('mine')).toMatchObject({ status, failure: { kind: 'overloaded' }, attempts: 0 })
    lab.empty()
    expect((await answered).status).toBe(200)
  })

  it('is asked how it is all the same', async () => {
    const { answered } = await lab.fill()
    const get = async (path: string): Promise<number> => (await sendRaw(lab.url, { method: 'GET', path })).status
    expect([await get('/health/live'), await get('/health/ready')]).toEqual([200, 200])
    for (const path of ['/healthy', '/health', '/metrics', '/admin'])
      expect([path, await get(path)]).toEqual([path, 503])
    lab.empty()
    await answered
  })

  it('refuses a socket before it is one', async () => {
    const { answered } = await lab.fill()
    const client = new KeptAliveClient(lab.url)
    const refused = await client.ask(handshake({ path: REALTIME_PATH }).toString('latin1'))
    expect([refused.status, refused.head]).toEqual([503, expect.stringMatching(/\r\nretry-after: 1\r\n/i)])
    client.socket.destroy()
    lab.empty()
    await answered
  })

  it('refuses an upload whose sender can read the refusal, and may go on sending or not', async () => {
    const { answered } = await lab.fill()
    const large = await sendRaw(lab.url, { path: '/v1/audio/transcriptions', body: Buffer.alloc(5_000_000) })
    expect([large.status, large.complete]).toEqual([503, true])
    const stalled = await openRaw(lab.url, {
      path: '/v1/audio/transcriptions',
      headers: { 'content-length': '1000', expect: '100-continue' },
    })
    expect(stalled.statusCode).toBe(503)
    stalled.destroy()
    lab.empty()
    await answered
  })

  it('serves again as soon as it has room, on the same connections, and knows how much it refused', async () => {
    const { answered } = await lab.fill()
    const client = new KeptAliveClient(lab.url)
    const before = lab.admission.refused.concurrency
    expect([(await client.ask()).status, (await client.ask()).status]).toEqual([503, 503])
    expect(lab.admission.refused.concurrency).toBe(before + 2)
    lab.empty()
    await answered
    await eventually(() => lab.admission.underWay === 0)
    expect((await client.ask()).status).toBe(200)
    await eventually(() => lab.admission.underWay === 0)
    client.socket.destroy()
  })

  it('does not count what it refuses, or what its caller gives up, as under way', async () => {
    lab.hold()
    const client = new KeptAliveClient(lab.url)
    client.socket.write(chatBytes())
    await eventually(() => lab.held.length === 1)
    const other = new KeptAliveClient(lab.url)
    expect((await other.ask()).status).toBe(503)
    expect(lab.admission.underWay).toBe(1)
    client.socket.destroy()
    await eventually(() => lab.admission.underWay === 0)
    lab.empty()
    expect((await other.ask()).status).toBe(200)
    other.socket.destroy()
  })
})
