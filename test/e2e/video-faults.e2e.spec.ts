import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { STORE_START_MS } from '../support/stores.js'
import { POLLED_OFTEN, startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { type ShownTask, VideoCaller } from '../support/video-caller.js'

let lab: VidgenGateway
let caller: VideoCaller

beforeAll(async () => {
  lab = await startVidgenGateway({ tasks: { ...POLLED_OFTEN, reconcileMs: 100 } })
  caller = new VideoCaller(lab.gateway)
}, STORE_START_MS)
beforeEach(() => {
  lab.simulator.reset()
})
afterEach(() => {
  // Tasks that go on are asked for: each test begins without those of others.
  lab.simulator.advance()
  lab.simulator.advance()
})
afterAll(async () => {
  expect(lab.simulator.duplicates).toEqual([])
  await lab.close()
})

const creates = (): number => lab.simulator.requests.filter(({ method }) => method === 'POST').length

/** What the caller is told; `waitSeconds` = `Retry-After`, `final` = `x-should-retry: false`. */
interface Told {
  readonly word: string
  readonly status: number
  readonly code: number
  readonly waitSeconds?: string
  readonly final: boolean
  /** The upstream's own words are shown only where the caller can do something about it. */
  readonly says?: string
}

const NOT_SERVED = 'The upstream does not serve this gateway at the moment.'
const account = (word: string): Told => ({ word, status: 502, code: 5000, final: true, says: NOT_SERVED })

const REFUSALS: readonly Told[] = [
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

const DOUBTS: readonly Told[] = [
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
