import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { VIDGEN_KINDS } from '@multi-model-gateway/sandbox/vidgen/vidgen-request.js'
import { Webhook } from 'standardwebhooks'
import { CALLBACK_SECRET, type ReceivedCallback } from '../support/callback-lab.js'
import { eventually } from '../support/eventually.js'
import { type RawAnswer, sendRaw, TEST_KEY } from '../support/gateway.js'
import {
  type PublicEdge,
  startPublicEdge,
  startUntouchedServer,
  type UntouchedServer,
} from '../support/raw-upstream.js'
import { POLLED_OFTEN, startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { type ShownDelivery, type ShownTask, VideoCaller } from '../support/video-caller.js'

describe('callbacks', () => {
  let lab: VidgenGateway
  let caller: VideoCaller
  let paths = 0

  beforeAll(async () => {
    lab = await startVidgenGateway({ tasks: POLLED_OFTEN, callbacks: { timeoutMs: 1_500 } })
    caller = new VideoCaller(lab.gateway)
  })
  beforeEach(() => {
    lab.receiver.answer = (response) => response.writeHead(204).end()
  })
  afterAll(async () => {
    expect(lab.gateway.logText()).not.toContain('/hook-')
    await lab.close()
  })

  /** A task with a callback address of its own, and what came there. */
  interface ReportedTask {
    readonly id: string
    readonly came: () => readonly ReceivedCallback[]
    readonly has: (count: number) => Promise<void>
    /** Its events, once they fulfil the condition. */
    readonly deliveries: (
      condition: (deliveries: readonly ShownDelivery[]) => boolean,
    ) => Promise<readonly ShownDelivery[]>
  }

  async function reportedTask(): Promise<ReportedTask> {
    const path = `/hook-${++paths}`
    const id = await caller.created({ callback_url: lab.receiver.url(path) })
    const came = (): readonly ReceivedCallback[] => lab.receiver.received.filter((each) => each.path === path)
    return {
      id,
      came,
      has: async (count) => {
        while (came().length < count) await lab.receiver.has(lab.receiver.received.length + 1)
      },
      deliveries: async (condition) => {
        let shown: readonly ShownDelivery[] = []
        await eventually(async () => {
          shown = (await caller.deliveries(id)).body.data
          return condition(shown)
        })
        return shown
      },
    }
  }

  const taskIn = ({ body }: ReceivedCallback): ShownTask => JSON.parse(body) as ShownTask
  const idOf = ({ headers }: ReceivedCallback): unknown => headers['webhook-id']
  const isDelivered = (deliveries: readonly ShownDelivery[]): boolean =>
    deliveries.length > 0 && deliveries.every(({ delivered_at: at }) => at !== null)
  const isExhausted = (deliveries: readonly ShownDelivery[]): boolean =>
    deliveries.length > 0 && deliveries.every(({ exhausted_at: at }) => at !== null)

  describe('a callback', () => {
    it('comes for each change after the create, with an id of its own, and none comes twice', async () => {
      const task = await reportedTask()
      lab.simulator.advance(task.id)
      await task.has(1)
      lab.simulator.advance(task.id)
      await task.has(2)
      await task.deliveries((all) => all.length === 2 && isDelivered(all))
      expect(task.came().map((each) => taskIn(each).task_status)).toEqual(['processing', 'succeed'])
      expect(new Set(task.came().map(idOf)).size).toBe(2)
    })

    it('is signed, which any library of Standard Webhooks can verify', async () => {
      const task = await reportedTask()
      lab.simulator.settle(task.id, 'failed')
      await task.has(1)
      const [{ headers, body }] = task.came() as [ReceivedCallback]
      const signed = headers as Record<string, string>
      expect(new Webhook(CALLBACK_SECRET).verify(body, signed)).toMatchObject({
        task_id: task.id,
        task_status: 'failed',
      })
      expect(() => new Webhook(CALLBACK_SECRET).verify(`${body} `, signed)).toThrow('signature')
      expect(headers).toMatchObject({ 'content-type': 'application/json', 'user-agent': 'Multi-Model-Gateway' })
      expect(headers).not.toHaveProperty('authorization')
    })

    it('is shown to its caller with what became of it, but not where it went', async () => {
      const task = await reportedTask()
      expect((await caller.deliveries(task.id)).body).toMatchObject({ code: 0, data: [] })
      lab.simulator.settle(task.id, 'succeed')
      const [delivery] = await task.deliveries(isDelivered)
      expect(delivery).toEqual({
        webhook_id: idOf(task.came()[0] as ReceivedCallback),
        host: lab.receiver.host,
        attempts: 1,
        created_at: expect.any(Number),
        next_attempt_at: null,
        delivered_at: expect.any(Number),
        exhausted_at: null,
        last_error: null,
      })
    })
  })

  describe('a receiver that fails', () => {
    it('gets the same bytes under the same webhook-id again, and is shown as reached in the end', async () => {
      const task = await reportedTask()
      let failures = 2
      lab.receiver.answer = (response) => response.writeHead(failures-- > 0 ? 500 : 200).end()
      lab.simulator.settle(task.id, 'succeed')
      const [delivery] = await task.deliveries(isDelivered)
      expect(delivery).toMatchObject({ attempts: 3 })
      const came = task.came()
      expect(came).toHaveLength(3)
      expect(new Set(came.map(idOf)).size).toBe(1)
      expect(new Set(came.map(({ body }) => body)).size).toBe(1)
      for (const { headers, body } of came) new Webhook(CALLBACK_SECRET).verify(body, headers as Record<string, string>)
    })

    it.each([
      ['answers with an error', 503, 'The receiver answered with status 503.'],
      ['sends it elsewhere', 307, 'The receiver answered with a redirect (status 307); it is not followed.'],
      ['does not answer', undefined, 'The receiver did not answer in time.'],
    ])('and %s is given up after the last attempt, and that stays visible', async (_name, status, error) => {
      const task = await reportedTask()
      lab.receiver.answer = (response) => {
        if (status !== undefined) response.writeHead(status, { location: lab.receiver.url('/elsewhere') }).end()
      }
      lab.simulator.settle(task.id, 'succeed')
      const [delivery] = await task.deliveries(isExhausted)
      expect(delivery).toMatchObject({ attempts: 3, next_attempt_at: null, delivered_at: null, last_error: error })
      expect(task.came()).toHaveLength(3)
      expect(lab.receiver.received.map(({ path }) => path)).not.toContain('/elsewhere')
    })

    it('is given up at once when the receiver responds with 410', async () => {
      const task = await reportedTask()
      lab.receiver.answer = (response) => response.writeHead(410).end()
      lab.simulator.settle(task.id, 'succeed')
      expect(await task.deliveries(isExhausted)).toMatchObject([
        { attempts: 1, last_error: 'The receiver wants no more callbacks (status 410).' },
      ])
    })

    it('is waited for as long as it asks', async () => {
      const task = await reportedTask()
      lab.receiver.answer = (response) => response.writeHead(429, { 'retry-after': '3600' }).end()
      lab.simulator.settle(task.id, 'succeed')
      const [delivery] = await task.deliveries((all) => all[0]?.attempts === 1)
      const waitMs = (delivery?.next_attempt_at ?? 0) - Date.now()
      expect(waitMs).toBeGreaterThan(3_590_000)
      expect(waitMs).toBeLessThanOrEqual(3_600_000)
    })

    it('does not keep other tasks from ending', async () => {
      const task = await reportedTask()
      lab.receiver.answer = (response) => response.writeHead(500).end()
      const stream = await caller.follow(task.id)
      lab.simulator.settle(task.id, 'succeed')
      expect(await stream.ended).toBe(true)
      expect((await caller.read(task.id)).body.data.task_status).toBe('succeed')
    })
  })

  describe('a callback that is to be sent again', () => {
    it('comes under the same webhook-id, on a schedule begun anew', async () => {
      const task = await reportedTask()
      lab.receiver.answer = (response) => response.writeHead(500).end()
      lab.simulator.settle(task.id, 'succeed')
      const [exhausted] = await task.deliveries(isExhausted)
      lab.receiver.answer = (response) => response.writeHead(200).end()
      const webhookId = exhausted?.webhook_id ?? ''
      const { status, body } = await caller.redeliver(webhookId)
      expect([status, body.code, body.data]).toEqual([200, 0, { webhook_id: webhookId }])
      const [delivered] = await task.deliveries(isDelivered)
      expect(delivered).toMatchObject({ webhook_id: webhookId, exhausted_at: null, next_attempt_at: null })
      expect(new Set(task.came().map(idOf))).toEqual(new Set([webhookId]))
      expect(task.came()).toHaveLength(4)
    })

    it('may have been delivered before', async () => {
      const task = await reportedTask()
      lab.simulator.settle(task.id, 'succeed')
      const [delivered] = await task.deliveries(isDelivered)
      await caller.redeliver(delivered?.webhook_id ?? '')
      await task.has(2)
      expect(new Set(task.came().map(idOf)).size).toBe(1)
    })

    it.each(['msg_0', 'x'.repeat(200), "a'b"])('and is not known, as %j, is a 404', async (id) => {
      expect(await caller.redeliver(encodeURIComponent(id))).toMatchObject({ status: 404, body: { code: 1203 } })
    })
  })
})

describe('callbacks addresses', () => {
  let lab: VidgenGateway
  let untouched: UntouchedServer

  beforeAll(async () => {
    lab = await startVidgenGateway({ exempt: false })
    untouched = await startUntouchedServer()
  })
  beforeEach(() => {
    lab.simulator.reset()
  })
  afterAll(async () => {
    expect(untouched.accepted).toBe(0)
    expect(lab.receiver.received).toEqual([])
    await untouched.close()
    await lab.close()
  })

  const FORBIDDEN: readonly (readonly [name: string, url: (port: number) => string])[] = [
    ['this machine', (port) => `http://127.0.0.1:${port}/hook`],
    ['this machine by name', (port) => `http://localhost:${port}/hook`],
    ['this machine by its absolute name', (port) => `http://localhost.:${port}/hook`],
    ['a name below that of this machine', (port) => `http://a.LocalHost.:${port}/hook`],
    ['this machine in decimal', (port) => `http://2130706433:${port}/`],
    ['this machine in octal', (port) => `http://0177.0.0.1:${port}/`],
    ['this machine in hex, shortened', (port) => `http://0x7f.1:${port}/`],
    ['this machine over IPv6', (port) => `http://[::1]:${port}/`],
    ['this machine, IPv4 mapped', (port) => `http://[::ffff:127.0.0.1]:${port}/`],
    ['this machine over NAT64', (port) => `http://[64:ff9b::7f00:1]:${port}/`],
    ['the unspecified address', (port) => `http://0.0.0.0:${port}/`],
    ['a private network', () => 'http://10.0.0.7/hook'],
    ['the metadata service of a cloud', () => 'http://169.254.169.254/latest/meta-data/'],
    ['a shared network', () => 'https://100.64.0.1/'],
    ['a port of another protocol', () => 'http://93.184.216.34:25/'],
    ['another scheme', () => 'ftp://93.184.216.34/hook'],
    ['a file', () => 'file:///etc/passwd'],
    ['a user and password', () => 'https://user:secret-canary@93.184.216.34/'],
    ['no URL at all', () => 'not a url'],
    ['more than 2,048 characters', () => `https://93.184.216.34/${'a'.repeat(2048)}`],
  ]

  describe.each(VIDGEN_KINDS)('the callback address of a %s create', (kind) => {
    it.each(FORBIDDEN)(
      'is refused when it leads to %s, naming the field, before an upstream is called',
      async (name, url) => {
        const caller = new VideoCaller(lab.gateway, TEST_KEY, kind)
        const own = `address-${kind}-${name.replaceAll(/\W+/g, '-')}`
        const { status, headers, body } = await caller.create({
          callback_url: url(untouched.port),
          external_task_id: own,
        })
        expect([status, body.code, headers['x-should-retry']]).toEqual([400, 1201, 'false'])
        expect(body.message).toMatch(/callback_url|URL/)
        expect(body.message).not.toContain('canary')
        expect(lab.simulator.requests).toEqual([])
        // Nothing is left behind: the id is free.
        await caller.created({ external_task_id: own })
      },
    )
  })

  describe('the receiver of a test', () => {
    it('is as forbidden as everything else when the operator does not exempt it', async () => {
      const { status, body } = await new VideoCaller(lab.gateway).create({ callback_url: lab.receiver.url() })
      expect([status, body.code]).toEqual([400, 1201])
      expect(body.message).toContain('callback_url')
      expect(lab.simulator.requests).toEqual([])
    })
  })

  describe('a name that does not resolve at the moment', () => {
    it('is let through: each delivery judges it anew', async () => {
      const created = await new VideoCaller(lab.gateway).create({ callback_url: 'https://hooks.invalid/hook' })
      expect(created.status).toBe(200)
    })
  })
})

describe('callbacks intake', () => {
  let edge: PublicEdge
  let lab: VidgenGateway
  let caller: VideoCaller

  // Nothing but the upstream's own calls makes this gateway ask for a task: it would do so once an hour.
  beforeAll(async () => {
    edge = await startPublicEdge()
    lab = await startVidgenGateway({
      sections: { server: { publicUrl: edge.url } },
      callbacks: { secret: undefined },
      simulator: { callbacks: { duplicate: true } },
    })
    edge.leadTo(lab.gateway.url)
    caller = new VideoCaller(lab.gateway)
  })
  afterAll(async () => {
    await lab.simulator.callbacksSent()
    await lab.close()
    await edge.close()
  })

  const givenUpstream = (): string => String(lab.simulator.creates.at(-1)?.fields['callback_url'])
  const tokenIn = (url: string): string => url.slice(url.lastIndexOf('/') + 1)
  const intake = (token: string, body = '{}'): Promise<RawAnswer> =>
    sendRaw(lab.gateway.url, { path: `/vidgen/callbacks/${token}`, body, headers: { authorization: undefined } })

  describe('a gateway with a public address', () => {
    it('gives the upstream an address of its own for each task, which no caller gets to see', async () => {
      const answers = [await caller.create({ callback_url: lab.receiver.url() })]
      const first = givenUpstream()
      answers.push(await caller.create())
      const second = givenUpstream()
      for (const url of [first, second]) expect(url).toMatch(new RegExp(`^${edge.url}/vidgen/callbacks/[\\w-]{32}$`))
      expect(first).not.toBe(second)
      answers.push(await caller.read(answers[0]?.body.data.task_id ?? ''))
      for (const { text } of answers) expect(text).not.toContain(tokenIn(first))
    })

    it('asks for a task as soon as the upstream calls, and tells the caller what it finds', async () => {
      const before = lab.receiver.received.length
      const id = await caller.created({ callback_url: lab.receiver.url(), external_task_id: 'hastened' })
      lab.simulator.advance(id)
      await lab.receiver.has(before + 1)
      // Its copy as well, which may have the gateway ask once more: it can find the next step before that is announced.
      await lab.simulator.callbacksSent()
      lab.simulator.advance(id)
      await lab.receiver.has(before + 2)
      const events = lab.receiver.received.slice(before)
      expect(events.map(({ body }) => (JSON.parse(body) as ShownTask).task_status)).toEqual(['processing', 'succeed'])
      await lab.simulator.callbacksSent()
      // Each came twice; of a task that is known to have ended no further event is needed.
      const [first, copy, ...ofEnd] = lab.simulator.callbacks.map(({ status }) => status)
      expect([first, copy, ofEnd.length]).toEqual([200, 200, 2])
      for (const status of ofEnd) expect([200, 404]).toContain(status)
      expect(lab.receiver.received).toHaveLength(before + 2)
    })

    it('without a secret sends events unsigned, but with their id', () => {
      const last = lab.receiver.received.at(-1)
      expect(last?.headers['webhook-id']).toMatch(/^msg_/)
      expect(last?.headers).not.toHaveProperty('webhook-signature')
    })

    it('does not believe what it is called with', async () => {
      const id = await caller.created()
      const stream = await caller.follow(id)
      const asked = lab.simulator.nextRequest()
      const forged = JSON.stringify({ task_id: id, task_status: 'succeed', task_result: { videos: [] } })
      expect((await intake(tokenIn(givenUpstream()), forged)).status).toBe(200)
      expect((await asked).path).toBe(`/v1/videos/text2video/${id}`)
      expect((await caller.read(id)).body.data.task_status).toBe('submitted')
      lab.simulator.advance(id)
      lab.simulator.advance(id)
      expect(await stream.ended).toBe(true)
      expect(stream.statuses).not.toContain('failed')
    })

    it.each(['x', 'A'.repeat(32), '%00', "'; drop table task; --".padEnd(32)])(
      'has nothing for who calls it with %j',
      async (token) => {
        const { status, text } = await intake(encodeURIComponent(token))
        expect([status, (JSON.parse(text) as { code: number }).code]).toEqual([404, 1203])
      },
    )

    it('takes no long stories', async () => {
      await caller.created()
      const token = tokenIn(givenUpstream())
      expect((await intake(token, 'x'.repeat(65_537))).status).toBe(413)
      expect((await intake(token, 'not even JSON')).status).toBe(200)
    })

    it('needs no further poll of a task that has ended', async () => {
      const id = await caller.created()
      const token = tokenIn(givenUpstream())
      const stream = await caller.follow(id)
      lab.simulator.settle(id, 'succeed')
      expect(await stream.ended).toBe(true)
      expect((await intake(token)).status).toBe(404)
    })

    it('logs that it was called, and not by which address', async () => {
      await caller.created()
      const token = tokenIn(givenUpstream())
      const { headers } = await intake(token)
      expect(await lab.gateway.logLine(String(headers['x-request-id']))).toMatchObject({
        route: '/vidgen/callbacks/:token',
        status: 200,
      })
      expect(lab.gateway.logText()).not.toContain(token)
    })
  })
})
