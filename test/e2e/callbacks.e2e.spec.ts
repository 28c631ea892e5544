import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { Webhook } from 'standardwebhooks'
import { CALLBACK_SECRET } from '../support/callback-lab.js'
import type { ReceivedCallback } from '../support/callback-receiver.js'
import { eventually } from '../support/eventually.js'
import { STORE_START_MS } from '../support/stores.js'
import { POLLED_OFTEN, startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { type ShownDelivery, type ShownTask, VideoCaller } from '../support/video-caller.js'

let lab: VidgenGateway
let caller: VideoCaller
let paths = 0

beforeAll(async () => {
  lab = await startVidgenGateway({ tasks: POLLED_OFTEN, callbacks: { timeoutMs: 200 } })
  caller = new VideoCaller(lab.gateway)
}, STORE_START_MS)
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
    expect(new Webhook(CALLBACK_SECRET).verify(body, signed)).toMatchObject({ task_id: task.id, task_status: 'failed' })
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

  it('is given up at once when it says that nobody is there any more', async () => {
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
