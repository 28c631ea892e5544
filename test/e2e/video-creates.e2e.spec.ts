import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { VIDGEN_KINDS } from '@multi-model-gateway/sandbox/vidgen/vidgen-request.js'
import { eventually } from '../support/eventually.js'
import { TEST_KEY } from '../support/gateway.js'
import type { HoldingProxy } from '../support/proxies.js'
import { STORE_START_MS } from '../support/stores.js'
import { OTHER_KEY, POLLED_OFTEN, startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { VideoCaller, videoText } from '../support/video-caller.js'

let lab: VidgenGateway
let proxy: HoldingProxy
let caller: VideoCaller
let keys = 0

beforeAll(async () => {
  lab = await startVidgenGateway({ tasks: { ...POLLED_OFTEN, reconcileMs: 200 } })
  proxy = lab.proxy
  caller = new VideoCaller(lab.gateway)
}, STORE_START_MS)
beforeEach(() => {
  lab.simulator.reset()
  proxy.release()
})
afterAll(async () => {
  expect(lab.simulator.duplicates).toEqual([])
  await lab.close()
})

const newKey = (): Record<string, string> => ({ 'idempotency-key': `key-${++keys}` })
const made = (): number => lab.simulator.creates.length

describe.each(VIDGEN_KINDS)('a %s create that is sent again under its key', (kind) => {
  const callerWith = (key = TEST_KEY): VideoCaller => new VideoCaller(lab.gateway, key, kind)

  it('gets the first answer to the byte, marked as a replay, whatever became of the task', async () => {
    const [header, creates] = [newKey(), made()]
    const first = await callerWith().create({}, header)
    expect(first.headers).not.toHaveProperty('x-idempotent-replay')
    lab.simulator.settle(first.body.data.task_id, 'succeed')
    const stream = await callerWith().follow(first.body.data.task_id)
    expect(await stream.ended).toBe(true)
    const second = await callerWith().create({}, header)
    expect([second.status, second.text]).toEqual([200, first.text])
    expect(second.headers['x-idempotent-replay']).toBe('true')
    expect(made()).toBe(creates + 1)
  })

  it('while the first still runs is told to wait, and gets its answer afterwards', async () => {
    const [header, creates] = [newKey(), made()]
    proxy.hold()
    const first = callerWith().create({}, header)
    await eventually(() => made() === creates + 1)
    const second = await callerWith().create({}, header)
    expect([second.status, second.headers['retry-after']]).toEqual([409, '1'])
    expect(second.headers).not.toHaveProperty('x-should-retry')
    expect(second.body.code).toBe(1303)
    proxy.release()
    const third = await first.then(() => callerWith().create({}, header))
    expect(third.text).toBe((await first).text)
    expect(made()).toBe(creates + 1)
  })

  it('with another body is refused, and so is one that differs in a blank', async () => {
    const header = newKey()
    await callerWith().create({}, header)
    const creates = made()
    for (const body of [videoText(kind, { mode: 'pro' }), `${videoText(kind)} `]) {
      const { status, body: refusal, headers } = await callerWith().create(body, header)
      expect([status, refusal.code, headers['x-should-retry']]).toEqual([422, 1201, 'false'])
    }
    expect(made()).toBe(creates)
  })

  it('by another caller, or on the other route, is a create of its own', async () => {
    const header = newKey()
    const first = await callerWith().create({}, header)
    const stranger = await callerWith(OTHER_KEY).create({}, header)
    const other = new VideoCaller(
      lab.gateway,
      TEST_KEY,
      VIDGEN_KINDS.find((each) => each !== kind),
    )
    const elsewhere = await other.create({}, header)
    expect([stranger.status, elsewhere.status]).toEqual([200, 200])
    expect(new Set([first, stranger, elsewhere].map(({ body }) => body.data.task_id)).size).toBe(3)
  })
})

describe('twenty creates at once under one key', () => {
  it('make one task; the others are told to wait, or get its answer', async () => {
    const [header, creates] = [newKey(), made()]
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => caller.create({ external_task_id: 'twenty' }, header)),
    )
    expect(made()).toBe(creates + 1)
    const good = answers.filter(({ status }) => status === 200)
    expect(new Set(good.map(({ text }) => text)).size).toBe(1)
    expect(good.filter(({ headers }) => headers['x-idempotent-replay'] === undefined)).toHaveLength(1)
    for (const { status } of answers) expect([200, 409]).toContain(status)
  })
})

describe('a key', () => {
  it('of a create that the upstream refused is free again, and so is its external id', async () => {
    const header = newKey()
    const refused = await caller.create({ prompt: 'x #1301', external_task_id: 'second-try' }, header)
    expect(refused.status).toBe(400)
    const again = await caller.create({ external_task_id: 'second-try' }, header)
    expect(again.status).toBe(200)
    expect(again.headers).not.toHaveProperty('x-idempotent-replay')
  })

  it('of a create that was refused before anyone was asked is not taken', async () => {
    const header = newKey()
    expect((await caller.create({ prompt: '' }, header)).status).toBe(400)
    expect((await caller.create({}, header)).status).toBe(200)
  })

  it('of a create whose answer was lost is held until the task is found, and then has its answer', async () => {
    const [header, creates] = [newKey(), made()]
    const lost = { prompt: 'x #lost', external_task_id: 'held' }
    const first = await caller.create(lost, header)
    expect([first.status, first.headers['x-should-retry']]).toEqual([502, 'false'])
    await eventually(async () => {
      const { status } = await caller.create(lost, header)
      expect([409, 200]).toContain(status)
      return status === 200
    })
    const replay = await caller.create(lost, header)
    expect(replay.headers['x-idempotent-replay']).toBe('true')
    expect(replay.body.data).toMatchObject({
      task_id: lab.simulator.creates.at(-1)?.id,
      task_info: { external_task_id: 'held' },
    })
    expect(made()).toBe(creates + 1)
  })

  it('of a create that was never found tells that it failed, and never makes a second task', async () => {
    const [header, creates] = [newKey(), made()]
    const lost = { prompt: 'x #5000', callback_url: lab.receiver.url() }
    const before = lab.receiver.received.length
    expect((await caller.create(lost, header)).status).toBe(502)
    await lab.receiver.has(before + 1)
    const replay = await caller.create(lost, header)
    expect([replay.status, replay.headers['x-idempotent-replay']]).toEqual([200, 'true'])
    expect(replay.body.data).toMatchObject({
      task_status: 'failed',
      task_status_msg: 'The upstream has no record of this task.',
    })
    expect((await caller.read(replay.body.data.task_id)).body.data.task_status).toBe('failed')
    expect(made()).toBe(creates)
  })

  it.each(['x'.repeat(255), 'a ~', '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}'])('may be %j', async (key) => {
    const header = { 'idempotency-key': key }
    const { text } = await caller.create({}, header)
    expect((await caller.create({}, header)).text).toBe(text)
  })

  it.each(['', 'x'.repeat(256), 'ü', 'a\tb'])('may not be %j', async (key) => {
    const { status, body } = await caller.create({}, { 'idempotency-key': key })
    expect([status, body.code]).toEqual([400, 1201])
    expect(body.message).toContain("'Idempotency-Key'")
    expect(lab.simulator.requests.filter(({ method }) => method === 'POST')).toEqual([])
  })
})
