import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { ConfigStore } from '../../src/config/config-store.js'
import { collectGarbage } from '../../src/overload/load-monitor.js'
import { ADMIN_KEY, ADMIN_SECTION } from '../support/admin-lab.js'
import { endlessWork, eventually } from '../support/eventually.js'
import { ANSWER, CHAT, chatBytes, FULL, FullGateway, KeptAliveClient } from '../support/failing-calls.js'
import { openRaw, type RawAnswer, sendRaw } from '../support/gateway.js'
import { handshake, REALTIME_PATH } from '../support/realtime-upstream.js'

describe('admission memory', () => {
  /** What one caller has at once while memory is short: of sixteen, two are for others. */
  const PLACES = 14

  let lab: FullGateway
  afterEach(() => lab.close())

  async function fillAll(): Promise<{ readonly answered: Promise<RawAnswer[]> }> {
    lab.hold()
    const answered = Promise.all(Array.from({ length: PLACES }, () => sendRaw(lab.url, CHAT)))
    await eventually(() => lab.held.length === PLACES)
    return { answered }
  }

  describe('A process that is short of memory', () => {
    beforeEach(async () => {
      // Less than any process of Node has: memory is short from the first look on.
      lab = await FullGateway.start({ admission: { memoryBytes: 67_108_864 } })
      await eventually(() => lab.admission.memoryLoad.isHigh)
    })

    it.each([
      ['/v1/chat/completions', 503, { error: { type: 'overloaded_error', code: 'overloaded' } }],
      ['/v1/messages', 529, { type: 'error', error: { type: 'overloaded_error' } }],
      ['/vidgen/v1/videos/text2video', 503, { code: 5001 }],
    ])(
      'serves some at once, and asks a further caller of %s to come back in five seconds',
      async (path, status, body) => {
        const { answered } = await fillAll()
        const refused = await sendRaw(lab.url, { path, body: '{}', headers: { 'x-request-id': 'further' } })
        expect([refused.status, refused.headers['retry-after']]).toEqual([status, '5'])
        expect(JSON.parse(refused.text)).toMatchObject(body)
        expect(refused.text).toContain('The gateway is short of memory.')
        expect(lab.admission.refused).toEqual({ memory: 1, concurrency: 0, loop_delay: 0 })
        expect((await sendRaw(lab.url, { ...CHAT, headers: { authorization: 'Bearer none' } })).status).toBe(401)
        expect(await lab.gateway.logLine('further')).toMatchObject({ status, failure: { kind: 'overloaded' } })
        lab.empty()
        expect(new Set((await answered).map((answer) => answer.status))).toEqual(new Set([200]))
      },
    )

    it('serves the next caller as soon as one of them is done', async () => {
      const { answered } = await fillAll()
      expect((await sendRaw(lab.url, CHAT)).status).toBe(503)
      lab.empty()
      await answered
      await eventually(() => lab.admission.underWay < PLACES)
      expect((await sendRaw(lab.url, CHAT)).status).toBe(200)
    })
  })

  const MIB = 1_048_576

  /** What is left to a gateway at least, however much its documents may use. */
  const LEAST_BYTES = 1024 * MIB

  describe('A process without admission.memoryBytes', () => {
    it('has what the processes that read its documents may not use, also when these become fewer', async () => {
      // More than any machine has.
      lab = await FullGateway.start({ documents: { processes: 64, memoryBytes: 68_719_476_736 } })
      const leastShare = (0.8 * process.memoryUsage.rss()) / LEAST_BYTES
      await eventually(() => lab.admission.memoryLoad.share > leastShare)

      const store = lab.gateway.application.get(ConfigStore)
      const config = {
        ...store.current,
        documents: { ...store.current.documents, processes: 1, memoryBytes: 128 * MIB },
      }
      expect(await store.reload(() => Promise.resolve({ config, file: '' }))).toMatchObject({ applied: true })
      await eventually(() => lab.admission.memoryLoad.share < leastShare / 2)
    })
  })

  describe('A process that uses more memory than its high watermark', () => {
    /** Memory that is used, in two pieces of 256 MiB that can be given back. */
    const ballast: Buffer[] = []
    /** Above both watermarks with both pieces, between them with one, below them with none. */
    beforeEach(async () => {
      // What earlier suites have left must not go while this one watches: some goes only when others are gone.
      for (let time = 0; time < 3; time++) collectGarbage()
      const usedBytes = process.memoryUsage.rss()
      const memoryBytes = usedBytes + 512 * MIB
      const shares = {
        memoryHighShare: (usedBytes + 384 * MIB) / memoryBytes,
        memoryLowShare: (usedBytes + 128 * MIB) / memoryBytes,
      }
      lab = await FullGateway.start({ admission: { memoryBytes, ...shares } })
    })
    afterEach(() => {
      ballast.length = 0
    })

    function giveBack(): void {
      ballast.pop()
      collectGarbage()
    }

    it('refuses until it uses less than the low one, and then serves as many as before, without a restart', async () => {
      expect((await sendRaw(lab.url, CHAT)).status).toBe(200)
      for (const piece of [1, 2]) ballast.push(Buffer.alloc(256 * MIB, piece))
      await eventually(() => lab.admission.memoryLoad.isHigh)
      const high = lab.admission.memoryLoad.share
      const { answered } = await fillAll()
      expect((await sendRaw(lab.url, CHAT)).status).toBe(503)

      giveBack()
      await eventually(() => lab.admission.memoryLoad.share < high - 0.1)
      expect(lab.admission.memoryLoad.isHigh).toBe(true)
      const refused = await sendRaw(lab.url, CHAT)
      expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5'])

      giveBack()
      await eventually(() => !lab.admission.memoryLoad.isHigh)
      // The places of a shortage are all taken still: a request admitted now has one beyond them.
      const further = Array.from({ length: 3 }, () => sendRaw(lab.url, CHAT))
      await eventually(() => lab.held.length === PLACES + 3)
      lab.empty()
      const statuses = [...(await answered), ...(await Promise.all(further))].map(({ status }) => status)
      expect(new Set(statuses)).toEqual(new Set([200]))
      expect(lab.admission.refused).toEqual({ memory: 2, concurrency: 0, loop_delay: 0 })
    })
  })
})

describe('admission', () => {
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
      // On a busy machine the loop is late now and then without any work of its own.
      await eventually(async () => !lab.admission.loop.isShedding && (await askAll()).every((status) => status === 200))
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
})

describe('admission refusals', () => {
  let lab: FullGateway
  let sections: object = FULL
  beforeEach(async () => {
    lab = await FullGateway.start(sections)
  })
  afterEach(async () => {
    await lab.close()
  })

  describe('A process that has all it can do, and operators', () => {
    beforeAll(() => {
      sections = { ...FULL, ...ADMIN_SECTION }
    })
    afterAll(() => {
      sections = FULL
    })

    it('is administered by its operators, and by no more than four requests at once', async () => {
      const { answered } = await lab.fill()
      const path = '/admin/v1/audit'
      const headers = { authorization: `Bearer ${ADMIN_KEY}` }
      const get = async (): Promise<number> => (await sendRaw(lab.url, { method: 'GET', path, headers })).status
      expect(await get()).toBe(200)
      const stalled = Array.from({ length: 4 }, () => new KeptAliveClient(lab.url))
      for (const { socket } of stalled) {
        socket.write(
          `POST /admin/v1/keys HTTP/1.1\r\nhost: gateway\r\nauthorization: ${headers.authorization}\r\n` +
            'content-type: application/json\r\ncontent-length: 9\r\n\r\n',
        )
      }
      await eventually(async () => (await get()) === 503)
      for (const { socket } of stalled) socket.destroy()
      await eventually(async () => (await get()) === 200)
      lab.empty()
      await answered
    })
  })

  describe('Many refusals on one connection', () => {
    const ORIGIN = 'https://app.example.com'
    beforeAll(() => {
      sections = { ...FULL, server: { cors: { allowedOrigins: [ORIGIN] } } }
    })
    afterAll(() => {
      sections = FULL
    })

    let client: KeptAliveClient
    let answered: Promise<RawAnswer>
    let startedAtMs: number
    beforeEach(async () => {
      ;({ answered } = await lab.fill())
      client = new KeptAliveClient(lab.url)
      startedAtMs = performance.now()
      await storm(300)
    })
    afterEach(() => {
      client.socket.destroy()
    })

    async function storm(refusals: number): Promise<void> {
      for (let index = 0; index < refusals; index++) {
        const { status, head, body } = await client.ask(chatBytes(`storm-${index}`))
        expect([status, head]).toEqual([
          503,
          expect.stringMatching(new RegExp(`\r\nx-request-id: storm-${index}\r\n`, 'i')),
        ])
        expect(head).toMatch(/\r\nretry-after: 1\r\n/i)
        expect(JSON.parse(body)).toMatchObject({ error: { code: 'overloaded' } })
      }
    }

    it('are all counted, and a hundred of a second have a line in the log each', async () => {
      // Enough for the bound below to say something where each takes some milliseconds.
      await storm(700)
      const tookSeconds = (performance.now() - startedAtMs) / 1000
      expect(lab.admission.refused.concurrency).toBe(1000)
      const lines = lab.gateway.logText().split('"requestId":"storm-').length - 1
      expect(lines).toBeGreaterThanOrEqual(100)
      // The second may turn once more than it took.
      expect(lines).toBeLessThanOrEqual(100 * Math.ceil(tookSeconds + 1))
      lab.empty()
      await answered
    })

    it('can be read by a page of an allowed origin, the cheap ones too', async () => {
      const withOrigin = chatBytes('page').replace('\r\n', `\r\norigin: ${ORIGIN}\r\n`)
      for (let index = 0; index < 3; index++) {
        const { status, head } = await client.ask(withOrigin)
        expect([status, head]).toEqual([503, expect.stringContaining(`access-control-allow-origin: ${ORIGIN}`)])
        expect(head).toMatch(/\r\naccess-control-expose-headers: [^\r]*retry-after/i)
      }
      lab.empty()
      await answered
    })

    it('leave the connection as good as any: it is served when there is room', async () => {
      lab.empty()
      await answered
      await eventually(() => lab.admission.underWay === 0)
      for (let index = 0; index < 3; index++) {
        expect(await client.ask()).toMatchObject({ status: 200, body: ANSWER })
        await eventually(() => lab.admission.underWay === 0)
      }
    })

    it('leave a request alone that comes in pieces', async () => {
      const [start, rest] = [chatBytes('pieces').slice(0, 40), chatBytes('pieces').slice(40)]
      client.socket.write(start)
      const refused = await client.ask(rest)
      expect([refused.status, refused.head]).toEqual([503, expect.stringContaining('x-request-id: pieces')])
      client.socket.write(start)
      lab.empty()
      await answered
      await eventually(() => lab.admission.underWay === 0)
      expect((await client.ask(rest)).status).toBe(200)
    })

    it('leave a large body alone, and the calls behind it', async () => {
      lab.empty()
      await answered
      await eventually(() => lab.admission.underWay === 0)
      const body = CHAT.body.replace('"x"', `"${'x'.repeat(700_000)}"`)
      expect(await client.ask(chatBytes('large', body))).toMatchObject({ status: 200, body: ANSWER })
      expect(await client.ask()).toMatchObject({ status: 200, body: ANSWER })
    })

    it('leave an upgrade alone', async () => {
      const refused = await client.ask(handshake({ path: REALTIME_PATH }).toString('latin1'))
      expect(refused.status).toBe(503)
      await once(client.socket, 'close')
      lab.empty()
      await answered
    })

    it('leave broken HTTP to be what it is', async () => {
      expect((await client.ask('POST / HTTP/1.1\r\nbroken header\r\n\r\n')).status).toBe(400)
      lab.empty()
      await answered
    })
  })
})
