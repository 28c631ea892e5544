import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { VIDGEN_KINDS } from '@multi-model-gateway/sandbox/vidgen/vidgen-request.js'
import { ADMIN_KEY, adminCaller } from '../support/admin-caller.js'
import { TEST_KEY } from '../support/gateway.js'
import { STORE_START_MS } from '../support/stores.js'
import { startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'

const [kind] = VIDGEN_KINDS

let lab: VidgenGateway

beforeAll(async () => {
  const auth = { keys: [{ id: 'test', key: TEST_KEY }], adminKey: ADMIN_KEY }
  lab = await startVidgenGateway({ sections: { auth } })
}, STORE_START_MS)
afterAll(() => lab.close())

describe('the events of a task', () => {
  it('end with an error when the key of their reader is revoked, and go on for everybody else', async () => {
    const admin = adminCaller(lab.gateway.url)
    const { id, key } = await admin.issue()
    const [caller, other] = [new VideoCaller(lab.gateway, key, kind), new VideoCaller(lab.gateway, TEST_KEY, kind)]
    const task = await caller.created()
    const stream = await caller.follow(task)
    const bystander = await other.follow(await other.created())
    await stream.shows('submitted')
    await bystander.shows('submitted')
    await admin.call('DELETE', `/keys/${id}`)
    await stream.ended
    expect(stream.text).toContain('The API key is not valid any more.')
    expect((await caller.read(task)).status).toBe(401)
    expect(bystander.text).not.toContain('not valid')
    bystander.leave()
  })
})
