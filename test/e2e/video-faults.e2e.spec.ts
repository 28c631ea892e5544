import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { startVidgenSimulator, type VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { ChannelHealth } from '../../src/routing/circuit-breaker.js'
import { eventually } from '../support/eventually.js'
import { CHAT_PATH, chatText, sendRaw, startGateway, type TestGateway } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { p1Channel, UPSTREAM_KEY } from '../support/provider-gateways.js'
import { unusedPort } from '../support/raw-upstream.js'
import { startPostgres, type TestPostgres } from '../support/stores.js'
import {
  NEVER_POLLED,
  POLLED_OFTEN,
  startVidgenGateway,
  VIDGEN_ACCESS,
  vidgenChannel,
  type VidgenGateway,
} from '../support/task-gateways.js'
import { type ShownTask, VideoCaller } from '../support/video-caller.js'

describe('video faults', () => {
  let lab: VidgenGateway
  let caller: VideoCaller

  shareLab(async () => {
    lab = await startVidgenGateway({ tasks: { ...POLLED_OFTEN, reconcileMs: 100 } })
    caller = new VideoCaller(lab.gateway)
    return lab
  })
  afterEach(() => {
    // Tasks that go on are asked for: each test begins without those of others.
    lab.simulator.advance()
    lab.simulator.advance()
  })
  afterAll(() => {
    expect(lab.simulator.duplicates).toEqual([])
  })

  const creates = (): number => lab.simulator.requests.filter(({ method }) => method === 'POST').length

  /** The caller's response; `waitSeconds` = `Retry-After`, `final` = `x-should-retry: false`. */
  interface ExpectedResponse {
    readonly word: string
    readonly status: number
    readonly code: number
    readonly waitSeconds?: string
    readonly final: boolean
    /** The upstream's own words are shown only where the caller can do something about it. */
    readonly says?: string
  }

  const NOT_SERVED = 'The upstream does not serve this gateway at the moment.'
  const account = (word: string): ExpectedResponse => ({ word, status: 502, code: 5000, final: true, says: NOT_SERVED })

  const REFUSALS: readonly ExpectedResponse[] = [
    { word: '#1200', status: 400, code: 1201, final: true, says: 'Invalid request parameters' },
    { word: '#1201', status: 400, code: 1201, final: true, says: 'Invalid parameter' },
    { word: '#1202', status: 404, code: 1203, final: true, says: 'The requested method is invalid' },
    { word: '#1203', status: 404, code: 1203, final: true, says: 'The requested resource does not exist' },
    { word: '#1300', status: 400, code: 1301, final: true, says: 'The platform strategy was triggered' },
    { word: '#1301', status: 400, code: 1301, final: true, says: 'The content safety policy was triggered' },
    { word: '#1302', status: 429, code: 1302, waitSeconds: '1', final: false },
    { word: '#1303', status: 429, code: 1303, waitSeconds: '5', final: false },
    { word: '#5001', status: 502, code: 5000, waitSeconds: '30', final: false },
    ...['#1000', '#1001', '#1002', '#1003', '#1004', '#1100', '#1101', '#1102', '#1103', '#1304'].map(account),
  ]

  describe('a create that the upstream refuses', () => {
    it.each(REFUSALS)('with $word is answered with $status and $code, and leaves nothing behind', async (told) => {
      const own = `refused${told.word.replace('#', '-')}`
      const before = await caller.listed()
      const { status, headers, body } = await caller.create({ prompt: `x ${told.word}`, external_task_id: own })
      expect([status, body.code]).toEqual([told.status, told.code])
      expect(headers['retry-after']).toBe(told.waitSeconds)
      expect(headers['x-should-retry']).toBe(told.final ? 'false' : undefined)
      expect(headers['x-request-id']).toBe(body.request_id)
      if (told.says !== undefined) expect(body.message).toBe(told.says)
      // Only a token that has grown old may be signed anew.
      expect(creates()).toBe(['#1003', '#1004'].includes(told.word) ? 2 : 1)
      expect((await caller.read(own)).status).toBe(404)
      expect(await caller.listed()).toEqual(before)
      expect((await caller.create({ external_task_id: own })).status).toBe(200)
    })
  })

  const DOUBTS: readonly ExpectedResponse[] = [
    { word: '#5000', status: 502, code: 5000, final: true },
    { word: '#5002', status: 504, code: 5002, final: true },
    { word: '#html', status: 502, code: 5000, final: true },
    { word: '#malformed', status: 502, code: 5000, final: true },
    { word: '#empty', status: 502, code: 5000, final: true },
    { word: '#reset', status: 502, code: 5000, final: true },
  ]

  describe('a create whose outcome is in doubt', () => {
    it.each(DOUBTS)('after $word is answered with $status and $code, looked for, and then has failed', async (told) => {
      const own = `doubt${told.word.replace('#', '-')}`
      const before = lab.receiver.received.length
      const body = { prompt: `${told.word} x`, external_task_id: own, callback_url: lab.receiver.url() }
      const answer = await caller.create(body)
      expect([answer.status, answer.body.code]).toEqual([told.status, told.code])
      expect(answer.headers['retry-after']).toBeUndefined()
      expect(answer.headers['x-should-retry']).toBe('false')
      await lab.receiver.has(before + 1)
      const event = JSON.parse(lab.receiver.received.at(-1)?.body ?? '') as ShownTask
      expect(event).toMatchObject({
        task_status: 'failed',
        task_status_msg: 'The upstream has no record of this task.',
        task_info: { external_task_id: own },
      })
      expect((await caller.read(own)).body.data).toEqual(event)
      expect((await caller.read(event.task_id)).body.data).toEqual(event)
      expect((await caller.list()).body.data[0]).toEqual(event)
      expect(creates()).toBe(1)
      // It may have been paid for: the id is not free.
      expect(await caller.create(body)).toMatchObject({ status: 400, body: { code: 1201 } })
    })

    it.each(['#lost x', '#lost5000 x', '#cut x', '#cleancut x'])(
      'after %j is found by its external id, was made once, and goes on as any other',
      async (prompt) => {
        const own = `found-${prompt.replace(/^#(\w+) x$/, '$1')}`
        const made = lab.simulator.creates.length
        const before = lab.receiver.received.length
        const answer = await caller.create({ prompt, external_task_id: own, callback_url: lab.receiver.url() })
        expect([answer.status, answer.body.code, answer.headers['x-should-retry']]).toEqual([502, 5000, 'false'])
        expect(lab.simulator.creates).toHaveLength(made + 1)
        const id = lab.simulator.creates.at(-1)?.id ?? ''
        lab.simulator.settle(id, 'succeed')
        await lab.receiver.has(before + 1)
        expect(JSON.parse(lab.receiver.received.at(-1)?.body ?? '')).toMatchObject({
          task_id: id,
          task_status: 'succeed',
        })
        const { body } = await caller.read(own)
        expect(body.data).toMatchObject({ task_id: id, task_status: 'succeed', task_info: { external_task_id: own } })
        expect((await caller.listed())[0]).toBe(id)
        expect(creates()).toBe(1)
      },
    )
  })

  describe('a task that the upstream accepted', () => {
    it("and then fails is failed, with the upstream's reason, and is not charged", async () => {
      const id = await caller.created({ prompt: 'x #fail' })
      lab.simulator.advance(id)
      lab.simulator.advance(id)
      const stream = await caller.follow(id)
      expect(await stream.ended).toBe(true)
      expect((await caller.read(id)).body.data).toMatchObject({
        task_status: 'failed',
        task_status_msg: 'Failure to pass the risk control system',
        final_unit_deduction: '0',
      })
    })

    it('and then does not know any more is failed when it has said so twice', async () => {
      const id = await caller.created()
      const stream = await caller.follow(id)
      lab.simulator.forget(id)
      expect(await stream.ended).toBe(true)
      expect((await caller.read(id)).body.data).toMatchObject({
        task_id: id,
        task_status: 'failed',
        task_status_msg: 'The upstream does not know this task any more.',
      })
    })

    it('never goes back, whatever the upstream says later', async () => {
      const events = lab.receiver.received.length
      const id = await caller.created({ callback_url: lab.receiver.url() })
      const stream = await caller.follow(id)
      lab.simulator.show(id, 'processing')
      await stream.shows('processing')
      const reads = (): number => lab.simulator.requests.filter(({ path }) => path.endsWith(id)).length
      const before = reads()
      lab.simulator.show(id, 'submitted')
      while (reads() < before + 3) await lab.simulator.nextRequest()
      expect((await caller.read(id)).body.data.task_status).toBe('processing')
      lab.simulator.show(id, 'failed')
      expect(await stream.ended).toBe(true)
      lab.simulator.show(id, 'succeed')
      expect((await caller.read(id)).body.data.task_status).toBe('failed')
      expect([...new Set(stream.statuses)]).toEqual(['submitted', 'processing', 'failed'])
      await lab.receiver.has(events + 2)
      expect(lab.receiver.received).toHaveLength(events + 2)
    })
  })
})

describe('video deadlines', () => {
  const TOO_LATE = 'The task did not finish in time.'

  let lab: VidgenGateway
  let caller: VideoCaller

  shareLab(async () => {
    lab = await startVidgenGateway({ tasks: { ...NEVER_POLLED, maxAgeMs: 1000 } })
    caller = new VideoCaller(lab.gateway)
    return lab
  })

  describe('a task that does not end within its time', () => {
    it('has failed, with the reason, everywhere it is shown, and stays so whatever the upstream says', async () => {
      const created = await caller.create({ prompt: 'x #stuck', callback_url: lab.receiver.url() })
      const { task_id: id, created_at: createdAt } = created.body.data
      lab.simulator.advance(id)
      const stream = await caller.follow(id)
      expect(await stream.ended).toBe(true)
      await lab.receiver.has(2)
      lab.simulator.settle(id, 'succeed')
      const { body } = await caller.read(id)
      expect(body.data).toMatchObject({ task_id: id, task_status: 'failed', task_status_msg: TOO_LATE })
      expect(body.data.created_at).toBe(createdAt)
      for (const text of [stream.objects.at(-1), lab.receiver.received.at(-1)?.body]) {
        expect(JSON.parse(text ?? '') as ShownTask).toEqual(body.data)
      }
      expect((await caller.list()).body.data).toEqual([body.data])
    })

    it('has failed as well when its upstream has gone away', async () => {
      const id = await caller.created()
      await lab.proxy.close()
      const stream = await caller.follow(id)
      expect(await stream.ended).toBe(true)
      expect(stream.statuses).toEqual(['submitted', 'failed'])
      expect(stream.objects.at(-1)).toContain(TOO_LATE)
    })
  })
})

describe('video failover', () => {
  let lab: VidgenGateway
  let caller: VideoCaller

  shareLab(async () => {
    lab = await startVidgenGateway({ withSecond: true })
    caller = new VideoCaller(lab.gateway)
    return lab
  })
  beforeEach(() => {
    // As if the time for which a fault is remembered had passed.
    const health = lab.gateway.application.get(ChannelHealth)
    for (const channel of ['first', 'second']) health.reset(channel)
  })

  const requests = ({ requests: seen }: VidgenSimulator): unknown[] => seen.map(({ method }) => method)
  /** What was asked for; reads come from the background as well, for creates whose answers were lost. */
  const creates = (simulator: VidgenSimulator): number =>
    requests(simulator).filter((method) => method === 'POST').length

  describe('a create with a second channel', () => {
    it.each(['quota', '403', '429', '503'] as const)(
      'is made there when the first refuses with %s, and read from there alone',
      async (fault) => {
        lab.simulator.queueFault(fault, 'POST')
        const id = await caller.created({ external_task_id: `moved-${fault}` })
        lab.second.settle(id, 'succeed')
        expect((await caller.read(`moved-${fault}`)).body.data).toMatchObject({ task_id: id, task_status: 'succeed' })
        expect([requests(lab.simulator), requests(lab.second)]).toEqual([['POST'], ['POST', 'GET']])
      },
    )

    it.each(['#1301 x', '#1201 x'])('is not sent there when the caller is at fault (%s)', async (prompt) => {
      expect((await caller.create({ prompt })).status).toBe(400)
      expect(requests(lab.second)).toEqual([])
    })

    it('leaves nothing behind when both refuse', async () => {
      const before = await caller.listed()
      lab.simulator.queueFault('429', 'POST')
      lab.second.queueFault('quota', 'POST')
      const refused = await caller.create({ external_task_id: 'order-2' })
      expect([refused.status, refused.body.code, refused.headers['retry-after']]).toEqual([429, 1302, '2'])
      expect(await caller.listed()).toEqual(before)
      await caller.created({ external_task_id: 'order-2' })
    })

    it('that the second loses, after the first refused, is found at the second', async () => {
      lab.simulator.queueFault('quota', 'POST')
      lab.second.queueFault('cut', 'POST')
      expect((await caller.create({ external_task_id: 'order-3' })).status).toBe(502)
      expect((await caller.read('order-3')).body.data.task_id).toBe(lab.second.creates.at(-1)?.id)
      expect([creates(lab.simulator), creates(lab.second)]).toEqual([1, 1])
      expect(lab.second.duplicates).toEqual([])
    })

    // Late in this file: what was lost is looked for, and found, while later tests would count tasks and requests.
    it.each(['#5000 x', '#lost x', '#reset x', '#html x'])(
      'is not sent there when the first may have made it (%s)',
      async (prompt) => {
        expect((await caller.create({ prompt })).status).toBe(502)
        expect(requests(lab.second)).toEqual([])
      },
    )

    it('is created there when the port of the first is closed', async () => {
      await lab.proxy.close()
      // Until then an earlier task may have been asked for, and what the port let through may still arrive.
      await eventually(() => lab.simulator.openConnections === 0)
      lab.simulator.reset()
      await caller.created()
      expect([requests(lab.simulator), creates(lab.second)]).toEqual([[], 1])
    })
  })
})

const readiness = async ({ url }: { readonly url: string }): Promise<unknown> => {
  const response = await fetch(`${url}/health/ready`)
  return [response.status, ((await response.json()) as { status: string }).status]
}

describe('a gateway whose database cannot be reached', () => {
  let chat: Simulator
  let video: VidgenSimulator
  let gateway: TestGateway
  let caller: VideoCaller

  beforeAll(async () => {
    chat = await startP1Simulator({ apiKey: UPSTREAM_KEY })
    video = await startVidgenSimulator(VIDGEN_ACCESS)
    gateway = await startGateway({
      channels: [p1Channel('chat', chat), vidgenChannel('video', video)],
      sections: { database: { url: `postgres://gateway:password-canary@127.0.0.1:${await unusedPort()}/tasks` } },
    })
    caller = new VideoCaller(gateway)
  })
  afterAll(async () => {
    expect(gateway.logText()).not.toContain('password-canary')
    await gateway.close()
    await video.close()
    await chat.close()
  })

  it('refuses creates before an upstream is called, with Retry-After', async () => {
    for (const headers of [{}, { 'idempotency-key': 'a-key' }]) {
      const { status, headers: answered, body } = await caller.create({}, headers)
      expect([status, body.code, answered['retry-after']]).toEqual([503, 5001, '5'])
      expect(answered).not.toHaveProperty('x-should-retry')
      expect(body.message).toBe('The database cannot be reached at the moment.')
    }
    expect(video.requests).toEqual([])
  })

  it('refuses reads and lists likewise, and tells them from tasks that are not there', async () => {
    for (const answer of [await caller.read('1'), await caller.list(), await caller.deliveries('1')]) {
      expect([answer.status, answer.body.code]).toEqual([503, 5001])
    }
    expect((await caller.redeliver('msg_1')).status).toBe(503)
    expect(video.requests).toEqual([])
  })

  it('is not ready, and says why', async () => {
    expect(await readiness(gateway)).toEqual([503, 'store_unreachable'])
    expect((await fetch(`${gateway.url}/health/live`)).status).toBe(200)
  })

  it('goes on with everything that needs no store', async () => {
    expect((await sendRaw(gateway.url, { path: CHAT_PATH, body: chatText('Hello') })).status).toBe(200)
    expect((await new VideoCaller(gateway, 'no-such-key').create()).status).toBe(401)
    expect((await caller.create({ prompt: '' })).status).toBe(400)
  })
})

describe('a gateway that loses its database', () => {
  let postgres: TestPostgres
  let lab: VidgenGateway
  let caller: VideoCaller

  beforeAll(async () => {
    postgres = await startPostgres()
    lab = await startVidgenGateway({
      tasks: { pollIntervalMs: 50 },
      sections: { database: { url: await postgres.emptyDatabase() } },
    })
    caller = new VideoCaller(lab.gateway)
  })
  afterAll(async () => {
    await lab.close()
    await postgres.close()
  })

  it('refuses creates until it is back, then goes on with every task where it stood', async () => {
    expect(await readiness(lab.gateway)).toEqual([200, 'ready'])
    const id = await caller.created({ external_task_id: 'before', callback_url: lab.receiver.url() })
    await postgres.kill()
    const made = lab.simulator.creates.length
    await eventually(async () => (await caller.create({ external_task_id: 'meanwhile' })).status === 503)
    expect(lab.simulator.creates).toHaveLength(made)
    expect(await readiness(lab.gateway)).toEqual([503, 'store_unreachable'])
    expect((await new VideoCaller(lab.gateway, 'no-such-key').create()).status).toBe(401)
    lab.simulator.settle(id, 'succeed')

    await postgres.start()
    // The poller may have held the task when the database went: then its lease has to run out.
    await eventually(async () => (await caller.read('before')).text.includes('"task_status":"succeed"'))
    await lab.receiver.has(1)
    expect(lab.receiver.received[0]?.body).toContain(`"task_id":"${id}","task_status":"succeed"`)
    expect(await readiness(lab.gateway)).toEqual([200, 'ready'])
    expect((await caller.read('before')).body.data.task_id).toBe(id)
    expect((await caller.create({ external_task_id: 'meanwhile' })).status).toBe(200)
  })

  it('while the upstream makes a task finds that task again, made once', async () => {
    const made = lab.simulator.creates.length
    lab.proxy.hold()
    const creating = caller.create({ external_task_id: 'in-between' })
    await eventually(() => lab.simulator.creates.length === made + 1)
    await postgres.kill()
    lab.proxy.release()
    const { status, body, headers } = await creating
    expect([status, body.code, headers['x-should-retry']]).toEqual([503, 5001, 'false'])
    await postgres.start()
    await eventually(async () => (await caller.read('in-between')).status === 200)
    expect((await caller.read('in-between')).body.data.task_id).toBe(lab.simulator.creates.at(-1)?.id)
    expect((await caller.create({ external_task_id: 'in-between' })).status).toBe(400)
    expect(lab.simulator.creates).toHaveLength(made + 1)
  })
})
