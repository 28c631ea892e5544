import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { VIDGEN_KINDS } from '@multi-model-gateway/sandbox/vidgen/vidgen-request.js'
import { TEST_KEY } from '../support/gateway.js'
import { STORE_START_MS } from '../support/stores.js'
import { OTHER_KEY, startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'

let lab: VidgenGateway

beforeAll(async () => {
  lab = await startVidgenGateway()
}, STORE_START_MS)
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(async () => {
  expect(lab.simulator.duplicates).toEqual([])
  await lab.close()
})

describe.each(VIDGEN_KINDS)("somebody else's %s task", (kind) => {
  const pair = (): [owner: VideoCaller, stranger: VideoCaller] => [
    new VideoCaller(lab.gateway, TEST_KEY, kind),
    new VideoCaller(lab.gateway, OTHER_KEY, kind),
  ]
  const notFound = { status: 404, body: { code: 1203, message: 'There is no such task.' } }

  it.each(['its id', "its owner's id", 'the id the upstream has of it'])(
    'is not there under %s, and the upstream is not asked',
    async (name) => {
      const [owner, stranger] = pair()
      const own = `secret-${kind}-${name.replaceAll(/\W/g, '-')}`
      const id = await owner.created({ external_task_id: own })
      const upstreamId = lab.simulator.creates.at(-1)?.externalTaskId ?? ''
      const asked = name === 'its id' ? id : name === "its owner's id" ? own : upstreamId
      lab.simulator.reset()
      expect(await stranger.read(asked)).toMatchObject(notFound)
      expect(await stranger.deliveries(asked)).toMatchObject(notFound)
      const stream = await stranger.follow(asked)
      expect([stream.status, await stream.ended]).toEqual([404, true])
      expect(JSON.parse(stream.text)).toMatchObject(notFound.body)
      expect(lab.simulator.requests).toEqual([])
    },
  )

  it('stands in no list but that of its owner', async () => {
    const [owner, stranger] = pair()
    const [mine, theirs] = [await owner.created(), await stranger.created()]
    const [ownList, strangeList] = [await owner.listed('?pageSize=500'), await stranger.listed('?pageSize=500')]
    expect([ownList.includes(mine), ownList.includes(theirs)]).toEqual([true, false])
    expect([strangeList.includes(mine), strangeList.includes(theirs)]).toEqual([false, true])
  })

  it('may have the same external id as one of your own', async () => {
    const [owner, stranger] = pair()
    const first = await owner.created({ external_task_id: `shared-${kind}` })
    const second = await stranger.created({ external_task_id: `shared-${kind}` })
    expect((await owner.read(`shared-${kind}`)).body.data.task_id).toBe(first)
    expect((await stranger.read(`shared-${kind}`)).body.data.task_id).toBe(second)
  })

  it('cannot have its events sent again', async () => {
    const [owner, stranger] = pair()
    const before = lab.receiver.received.length
    const id = await owner.created({ callback_url: lab.receiver.url() })
    lab.simulator.settle(id, 'succeed')
    await owner.read(id)
    await lab.receiver.has(before + 1)
    const webhookId = String(lab.receiver.webhookIds.at(-1))
    expect(await stranger.redeliver(webhookId)).toMatchObject({ status: 404, body: { code: 1203 } })
    expect((await owner.redeliver(webhookId)).status).toBe(200)
  })
})

describe('fifty creates at once with one external id', () => {
  it.each(VIDGEN_KINDS)('make one %s task, and forty-nine refusals that name the field', async (kind) => {
    const caller = new VideoCaller(lab.gateway, TEST_KEY, kind)
    const creates = lab.simulator.creates.length
    const body = { external_task_id: `fifty-${kind}` }
    const answers = await Promise.all(Array.from({ length: 50 }, () => caller.create(body)))
    const refused = answers.filter(({ status }) => status !== 200)
    expect(refused).toHaveLength(49)
    for (const { status, headers, body: refusal } of refused) {
      expect([status, refusal.code, headers['x-should-retry']]).toEqual([400, 1201, 'false'])
      expect(refusal.message).toContain("'external_task_id'")
    }
    expect(lab.simulator.creates.slice(creates)).toHaveLength(1)
    expect(lab.simulator.requests.filter(({ method }) => method === 'POST')).toHaveLength(1)
    const made = answers.find(({ status }) => status === 200)
    expect((await caller.read(`fifty-${kind}`)).body.data.task_id).toBe(made?.body.data.task_id)
  })
})

describe('an external id', () => {
  it('counts for both kinds of task, and is not free again when its task has ended', async () => {
    const text = new VideoCaller(lab.gateway)
    const multi = new VideoCaller(lab.gateway, TEST_KEY, 'multi-image2video')
    const id = await text.created({ external_task_id: 'once' })
    lab.simulator.settle(id, 'failed')
    expect((await text.read(id)).body.data.task_status).toBe('failed')
    for (const caller of [text, multi]) {
      expect(await caller.create({ external_task_id: 'once' })).toMatchObject({ status: 400, body: { code: 1201 } })
    }
  })

  it.each(['', 'a'.repeat(129), 'a b', 'ü', 'a/b'])(
    'of the form %j is refused before anybody is asked',
    async (own) => {
      const { status, body } = await new VideoCaller(lab.gateway).create({ external_task_id: own })
      expect([status, body.code]).toEqual([400, 1201])
      expect(body.message).toContain("'external_task_id'")
      expect(lab.simulator.requests).toEqual([])
    },
  )

  it.each(['a', `A-z_0.9:${'x'.repeat(120)}`])('of the form %j is good for everything', async (own) => {
    const caller = new VideoCaller(lab.gateway)
    const id = await caller.created({ external_task_id: own })
    expect((await caller.read(own)).body.data.task_id).toBe(id)
  })
})
