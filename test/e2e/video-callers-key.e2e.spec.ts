import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { TEST_KEY } from '../support/gateway.js'
import { STORE_START_MS } from '../support/stores.js'
import { POLLED_OFTEN, startVidgenGateway, VIDGEN_CREDENTIALS, type VidgenGateway } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'

const ALICE = 'upstream-bearer-of-alice'
const BOB = 'upstream-bearer-of-bob'

let lab: VidgenGateway
let alice: VideoCaller
let bob: VideoCaller

// The first channel passes the caller's own bearer on; the second has a key of its own, and serves known keys.
beforeAll(async () => {
  lab = await startVidgenGateway({
    access: 'anyone',
    tasks: POLLED_OFTEN,
    withSecond: true,
    channel: { credentials: 'caller' },
    secondChannel: { credentials: VIDGEN_CREDENTIALS },
  })
  alice = new VideoCaller(lab.gateway, ALICE)
  bob = new VideoCaller(lab.gateway, BOB)
}, STORE_START_MS)
beforeEach(() => {
  for (const simulator of [lab.simulator, lab.second]) simulator.reset()
})
afterAll(async () => {
  expect(lab.gateway.logText()).not.toMatch(new RegExp(`${ALICE}|${BOB}`))
  await lab.close()
})

const asked = (): unknown[] => lab.simulator.requests.map(({ method, headers }) => [method, headers['authorization']])

describe('a caller with an upstream key of their own', () => {
  it('creates, reads and follows a task with that key alone', async () => {
    const id = await alice.created({ external_task_id: 'own-key' })
    lab.simulator.advance(id)
    expect((await alice.read('own-key')).body.data).toMatchObject({ task_id: id, task_status: 'processing' })
    expect(asked()).toEqual([
      ['POST', `Bearer ${ALICE}`],
      ['GET', `Bearer ${ALICE}`],
    ])
    expect(await alice.listed()).toEqual([id])
  })

  it('sees nothing of others, and others nothing of theirs', async () => {
    const [mine, theirs] = [await alice.created(), await bob.created()]
    expect([(await alice.read(theirs)).status, (await bob.read(mine)).status]).toEqual([404, 404])
    expect(await alice.listed()).not.toContain(theirs)
    expect(await bob.listed()).toEqual([theirs])
  })

  it('may use any external id and any Idempotency-Key, whoever else does', async () => {
    const header = { 'idempotency-key': 'the-same' }
    const ids = [
      await alice.created({ external_task_id: 'same' }, header),
      await bob.created({ external_task_id: 'same' }, header),
    ]
    expect(new Set(ids).size).toBe(2)
    const again = await alice.create({ external_task_id: 'same' }, header)
    expect([again.body.data.task_id, again.headers['x-idempotent-replay']]).toEqual([ids[0], 'true'])
  })

  it('is told what the upstream says about that key', async () => {
    const refused = await new VideoCaller(lab.gateway, 'bad').create({})
    expect([refused.status, refused.body.code]).toEqual([401, 1000])
    lab.simulator.queueFault('quota')
    const empty = await alice.create({ external_task_id: 'paid-later' })
    expect([empty.status, empty.body.code, empty.headers['x-should-retry']]).toEqual([429, 1302, 'false'])
    expect((await alice.create({ external_task_id: 'paid-later' })).status).toBe(200)
  })

  it('may not ask for callbacks, which nobody could notice without that key', async () => {
    const { status, body } = await alice.create({ callback_url: lab.receiver.url(), external_task_id: 'no-callback' })
    expect([status, body.code]).toEqual([400, 1201])
    expect(body.message).toContain("'callback_url'")
    expect(lab.simulator.requests).toEqual([])
    expect((await alice.create({ external_task_id: 'no-callback' })).status).toBe(200)
  })

  it('finds a create whose answer was lost as soon as they ask for it', async () => {
    const lost = await alice.create({ prompt: 'x #lost', external_task_id: 'lost' })
    expect([lost.status, lost.headers['x-should-retry']]).toEqual([502, 'false'])
    const { status, body } = await alice.read('lost')
    expect([status, body.data.task_id]).toEqual([200, lab.simulator.creates.at(-1)?.id])
    expect(lab.simulator.duplicates).toEqual([])
  })

  it('follows a task to its end, asking with their key, and no longer than they listen', async () => {
    const [ended, left] = [await alice.created(), await alice.created()]
    const [stream, leaving] = [await alice.follow(ended), await alice.follow(left, { 'x-request-id': 'alice-leaves' })]
    await leaving.shows('submitted')
    leaving.leave()
    await lab.gateway.logLine('alice-leaves')
    const before = lab.simulator.requests.length
    lab.simulator.settle(ended, 'succeed')
    expect(await stream.ended).toBe(true)
    expect(stream.statuses.at(-1)).toBe('succeed')
    const later = lab.simulator.requests.slice(before)
    expect(later.map(({ path }) => path)).toEqual([`/v1/videos/text2video/${ended}`])
    expect(later[0]?.headers['authorization']).toBe(`Bearer ${ALICE}`)
  })

  it('is never impersonated: nobody asks for the task in the background', async () => {
    await alice.created()
    lab.simulator.reset()
    const known = new VideoCaller(lab.gateway, TEST_KEY)
    const id = await known.created()
    // Long enough for every task to have its turn many times.
    while (lab.second.requests.length < 20) await lab.second.nextRequest()
    expect(lab.simulator.requests).toEqual([])
    lab.second.settle(id, 'failed')
  })
})

describe('a key of the gateway', () => {
  it('is never passed on', async () => {
    const known = new VideoCaller(lab.gateway, TEST_KEY)
    const id = await known.created()
    expect(asked()).toEqual([])
    expect(lab.second.creates.at(-1)?.id).toBe(id)
    expect(lab.second.lastRequest?.headers['authorization']).not.toContain(TEST_KEY)
    expect((await known.read(id)).status).toBe(200)
    lab.second.settle(id, 'failed')
  })
})
