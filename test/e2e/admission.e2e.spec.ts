import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { Admission } from '../../src/common/admission/admission.js'
import { ADMIN_SECTION } from '../support/admin-lab.js'
import { ADMIN_KEY } from '../support/admin-caller.js'
import { eventually } from '../support/eventually.js'
import { startGateway, TEST_KEY, type TestGateway } from '../support/gateway.js'
import { openRaw, type RawAnswer, sendRaw } from '../support/raw-http.js'
import { type RawUpstream, startRawUpstream } from '../support/raw-upstream.js'
import { handshake, REALTIME_PATH } from '../support/upgrade-client.js'

const ANSWER = '{"id":"c","object":"chat.completion","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}'
const CHAT = { path: '/v1/chat/completions', body: '{"model":"m","messages":[{"role":"user","content":"x"}]}' }

let held: Socket[]
let isHolding: boolean
let upstream: RawUpstream
let gateway: TestGateway
const FULL = { admission: { concurrentRequests: 1 } }
let sections: object = FULL
beforeEach(async () => {
  held = []
  isHolding = false
  upstream = await startRawUpstream((socket) => {
    if (isHolding) held.push(socket)
    else answer(socket)
  })
  gateway = await startGateway({
    channels: [
      { id: 'only', provider: 'p1', baseUrl: `http://127.0.0.1:${upstream.port}`, credentials: 'k', models: ['m'] },
    ],
    sections,
  })
})
afterEach(async () => {
  await gateway.close()
  await upstream.close()
})

function answer(socket: Socket): void {
  socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${ANSWER.length}\r\n\r\n${ANSWER}`)
}

/** One call that the upstream does not answer: the gateway has as many under way as it may. Gives its answer, once there is one. */
async function fill(): Promise<{ readonly answered: Promise<RawAnswer> }> {
  isHolding = true
  const answered = sendRaw(gateway.url, CHAT)
  await eventually(() => held.length === 1)
  return { answered }
}

function empty(): void {
  isHolding = false
  for (const socket of held.splice(0)) answer(socket)
}

const admission = (): Admission => gateway.application.get(Admission)

const chatBytes = (requestId = 'storm'): string =>
  `POST ${CHAT.path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${TEST_KEY}\r\nx-request-id: ${requestId}\r\n` +
  `content-type: application/json\r\ncontent-length: ${CHAT.body.length}\r\n\r\n${CHAT.body}`

/** A kept-alive connection, on which one request follows the other. */
class Client {
  readonly socket = connect(Number(new URL(gateway.url).port), '127.0.0.1').on('error', () => undefined)

  /** The answer's status, its id and its body; every body of these tests comes with its head. */
  async ask(bytes = chatBytes()): Promise<{ readonly status: number; readonly head: string; readonly body: string }> {
    this.socket.write(bytes)
    const [chunk] = (await once(this.socket, 'data')) as [Buffer]
    const [head = '', body = ''] = chunk.toString().split('\r\n\r\n')
    return { status: Number(head.slice(9, 12)), head, body }
  }
}

/** Turns of the event loop that take so much of the processor each, one after the other, until they are stopped. */
function endlessWork(turnMs: number): { stop(): void } {
  let isWorking = true
  const turn = (): void => {
    const { user, system } = process.cpuUsage()
    const endsAtMicroseconds = user + system + turnMs * 1000
    for (let used = 0; used < endsAtMicroseconds;) {
      const now = process.cpuUsage()
      used = now.user + now.system
    }
    if (isWorking) setImmediate(turn)
  }
  setImmediate(turn)
  return {
    stop: () => {
      isWorking = false
    },
  }
}

describe('A process whose event loop is slow', () => {
  beforeAll(() => {
    sections = { admission: { loopDelayHighMs: 30, loopDelayLowMs: 10 } }
  })
  afterAll(() => {
    sections = FULL
  })

  it('refuses what it cannot serve promptly, and serves everything again when it can', async () => {
    const clients = Array.from({ length: 100 }, () => new Client())
    const askAll = async (): Promise<number[]> =>
      await Promise.all(clients.map(async (client) => (await client.ask()).status))
    expect(new Set(await askAll())).toEqual(new Set([200]))
    const work = endlessWork(60)
    try {
      await eventually(() => admission().loop.isShedding)
      expect(new Set(await askAll())).toEqual(new Set([200, 503]))
    } finally {
      work.stop()
    }
    expect(admission().refused.loop_delay).toBeGreaterThan(0)
    await eventually(() => !admission().loop.isShedding)
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
    const { answered } = await fill()
    const { headers, ...refused } = await sendRaw(gateway.url, {
      path,
      body: 'not even JSON',
      headers: { 'x-request-id': 'mine', authorization: undefined },
    })
    expect([refused.status, headers['retry-after'], headers['x-request-id']]).toEqual([status, '1', 'mine'])
    expect(headers).not.toHaveProperty('x-should-retry')
    expect(headers).not.toHaveProperty('x-gateway-channel')
    expect(JSON.parse(refused.text)).toMatchObject(body)
    expect(await gateway.logLine('mine')).toMatchObject({ status, failure: { kind: 'overloaded' }, attempts: 0 })
    empty()
    expect((await answered).status).toBe(200)
  })

  it('is asked how it is all the same', async () => {
    const { answered } = await fill()
    const get = async (path: string): Promise<number> => (await sendRaw(gateway.url, { method: 'GET', path })).status
    expect([await get('/health/live'), await get('/health/ready')]).toEqual([200, 200])
    for (const path of ['/healthy', '/health', '/metrics', '/admin'])
      expect([path, await get(path)]).toEqual([path, 503])
    empty()
    await answered
  })

  it('refuses a socket before it is one', async () => {
    const { answered } = await fill()
    const client = new Client()
    const refused = await client.ask(handshake({ path: REALTIME_PATH }).toString('latin1'))
    expect([refused.status, refused.head]).toEqual([503, expect.stringMatching(/\r\nretry-after: 1\r\n/i)])
    client.socket.destroy()
    empty()
    await answered
  })

  it('refuses an upload whose sender can read the refusal, and may go on sending or not', async () => {
    const { answered } = await fill()
    const large = await sendRaw(gateway.url, { path: '/v1/audio/transcriptions', body: Buffer.alloc(5_000_000) })
    expect([large.status, large.complete]).toEqual([503, true])
    const stalled = await openRaw(gateway.url, {
      path: '/v1/audio/transcriptions',
      headers: { 'content-length': '1000', expect: '100-continue' },
    })
    expect(stalled.statusCode).toBe(503)
    stalled.destroy()
    empty()
    await answered
  })

  it('serves again as soon as it has room, on the same connections, and knows how much it refused', async () => {
    const { answered } = await fill()
    const client = new Client()
    const before = admission().refused.concurrency
    expect([(await client.ask()).status, (await client.ask()).status]).toEqual([503, 503])
    expect(admission().refused.concurrency).toBe(before + 2)
    empty()
    await answered
    await eventually(() => admission().underWay === 0)
    expect((await client.ask()).status).toBe(200)
    await eventually(() => admission().underWay === 0)
    client.socket.destroy()
  })

  it('does not count what it refuses, or what its caller gives up, as under way', async () => {
    isHolding = true
    const client = new Client()
    client.socket.write(chatBytes())
    await eventually(() => held.length === 1)
    const other = new Client()
    expect((await other.ask()).status).toBe(503)
    expect(admission().underWay).toBe(1)
    client.socket.destroy()
    await eventually(() => admission().underWay === 0)
    empty()
    expect((await other.ask()).status).toBe(200)
    other.socket.destroy()
  })
})

describe('A process that has all it can do, and operators', () => {
  beforeAll(() => {
    sections = { ...FULL, ...ADMIN_SECTION }
  })
  afterAll(() => {
    sections = FULL
  })

  it('is administered by its operators, and by no more than four requests at once', async () => {
    const { answered } = await fill()
    const path = '/admin/v1/audit'
    const headers = { authorization: `Bearer ${ADMIN_KEY}` }
    const get = async (): Promise<number> => (await sendRaw(gateway.url, { method: 'GET', path, headers })).status
    expect(await get()).toBe(200)
    const stalled = Array.from({ length: 4 }, () => new Client())
    for (const { socket } of stalled) {
      socket.write(
        `POST /admin/v1/keys HTTP/1.1\r\nhost: gateway\r\nauthorization: ${headers.authorization}\r\n` +
          'content-type: application/json\r\ncontent-length: 9\r\n\r\n',
      )
    }
    await eventually(async () => (await get()) === 503)
    for (const { socket } of stalled) socket.destroy()
    await eventually(async () => (await get()) === 200)
    empty()
    await answered
  })
})

describe('Many refusals on one connection', () => {
  const REFUSALS = 300
  let client: Client
  let answered: Promise<RawAnswer>
  beforeEach(async () => {
    ;({ answered } = await fill())
    client = new Client()
    for (let index = 0; index < REFUSALS; index++) {
      const { status, head, body } = await client.ask(chatBytes(`storm-${index}`))
      expect([status, head]).toEqual([
        503,
        expect.stringMatching(new RegExp(`\r\nx-request-id: storm-${index}\r\n`, 'i')),
      ])
      expect(head).toMatch(/\r\nretry-after: 1\r\n/i)
      expect(JSON.parse(body)).toMatchObject({ error: { code: 'overloaded' } })
    }
  })
  afterEach(() => {
    client.socket.destroy()
  })

  it('are all counted, and a hundred of a second have a line in the log each', async () => {
    expect(admission().refused.concurrency).toBe(REFUSALS)
    const lines = gateway.logText().split('"requestId":"storm-').length - 1
    expect(lines).toBeGreaterThanOrEqual(100)
    expect(lines).toBeLessThan(REFUSALS)
    empty()
    await answered
  })

  it('leave the connection as good as any: it is served when there is room', async () => {
    empty()
    await answered
    await eventually(() => admission().underWay === 0)
    for (let index = 0; index < 3; index++) {
      expect(await client.ask()).toMatchObject({ status: 200, body: ANSWER })
      await eventually(() => admission().underWay === 0)
    }
  })

  it('leave a request alone that comes in pieces', async () => {
    const [start, rest] = [chatBytes('pieces').slice(0, 40), chatBytes('pieces').slice(40)]
    client.socket.write(start)
    const refused = await client.ask(rest)
    expect([refused.status, refused.head]).toEqual([503, expect.stringContaining('x-request-id: pieces')])
    client.socket.write(start)
    empty()
    await answered
    await eventually(() => admission().underWay === 0)
    expect((await client.ask(rest)).status).toBe(200)
  })

  it('leave an upgrade alone', async () => {
    const refused = await client.ask(handshake({ path: REALTIME_PATH }).toString('latin1'))
    expect(refused.status).toBe(503)
    await once(client.socket, 'close')
    empty()
    await answered
  })

  it('leave broken HTTP to be what it is', async () => {
    expect((await client.ask('POST / HTTP/1.1\r\nbroken header\r\n\r\n')).status).toBe(400)
    empty()
    await answered
  })
})
