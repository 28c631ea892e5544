import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator.js'
import { startVidgenSimulator, type VidgenSimulator } from '@multi-model-gateway/sandbox/vidgen/vidgen.simulator.js'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { eventually } from '../support/eventually.js'
import { startGateway, type TestGateway } from '../support/gateway.js'
import { p1Channel, UPSTREAM_KEY } from '../support/p1-gateway.js'
import { startPostgres, type TestPostgres } from '../support/postgres.js'
import { sendRaw } from '../support/raw-http.js'
import { unusedPort } from '../support/raw-upstream.js'
import { STORE_START_MS } from '../support/stores.js'
import { startVidgenGateway, VIDGEN_ACCESS, vidgenChannel, type VidgenGateway } from '../support/task-gateways.js'
import { VideoCaller } from '../support/video-caller.js'

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

  it('refuses creates before anybody is asked, with a time to come back', async () => {
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
  }, STORE_START_MS)
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
