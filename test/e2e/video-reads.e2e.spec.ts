import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { VIDGEN_KINDS } from '@multi-model-gateway/sandbox/vidgen/vidgen-request.js'
import { TEST_KEY } from '../support/gateway.js'
import { STORE_START_MS } from '../support/stores.js'
import { OTHER_KEY, startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { dataTextOf, type Envelope, type ShownTask, VideoCaller, videoText } from '../support/video-caller.js'

const BEARER = 'bearer-canary-43'

let lab: VidgenGateway
let caller: VideoCaller

beforeAll(async () => {
  lab = await startVidgenGateway({ access: { bearer: BEARER }, channel: { credentials: BEARER } })
  caller = new VideoCaller(lab.gateway)
}, STORE_START_MS)
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(async () => {
  expect(lab.simulator.violations).toEqual([])
  await lab.close()
})

/** What the upstream itself answers to whoever has the account. */
async function upstream(path: string, body?: string): Promise<{ readonly text: string; readonly task: ShownTask }> {
  const headers = { authorization: `Bearer ${BEARER}`, 'content-type': 'application/json' }
  const method = body === undefined ? 'GET' : 'POST'
  const response = await fetch(`${lab.simulator.url}/v1/videos/${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  return { text: dataTextOf({ text }), task: (JSON.parse(text) as Envelope<ShownTask>).data }
}

describe('a read', () => {
  it('asks the upstream for a task that has not ended, and not for one that has', async () => {
    const id = await caller.created()
    lab.simulator.reset()
    lab.simulator.settle(id, 'succeed')
    expect((await caller.read(id)).body.data.task_status).toBe('succeed')
    expect(lab.simulator.requests.map(({ method, path }) => [method, path])).toEqual([
      ['GET', `/v1/videos/text2video/${id}`],
    ])
    await caller.read(id)
    expect(lab.simulator.requests).toHaveLength(1)
  })

  it('however often it comes, asks at most once a second', async () => {
    const id = await caller.created()
    lab.simulator.reset()
    const startedAtMs = performance.now()
    for (let round = 0; round < 20; round++) expect((await caller.read(id)).status).toBe(200)
    const seconds = Math.ceil((performance.now() - startedAtMs) / 1000)
    expect(lab.simulator.requests.length).toBeGreaterThanOrEqual(1)
    expect(lab.simulator.requests.length).toBeLessThanOrEqual(seconds)
  })

  it.each(['500', '503', '429', 'quota', '401', 'html', 'malformed', 'reset', 'cut'] as const)(
    'shows the task as it was last seen when the upstream answers with %s',
    async (fault) => {
      const created = await caller.create()
      lab.simulator.reset()
      lab.simulator.queueFault(fault)
      const { status, body } = await caller.read(created.body.data.task_id)
      expect(lab.simulator.requests).toHaveLength(1)
      expect([status, body.data]).toEqual([200, created.body.data])
    },
  )

  it.each(['a%2fb', 'a%5cb', '%00', '%0a', 'x'.repeat(257)])(
    'of an id like %s is answered with 404, and nobody is asked',
    async (id) => {
      const { status, body } = await caller.read(id)
      expect([status, body.code, body.message]).toEqual([404, 1203, 'There is no such task.'])
      expect(lab.simulator.requests).toEqual([])
    },
  )
})

describe.each(VIDGEN_KINDS)('a %s task this gateway never saw', (kind) => {
  const stranger = (key = TEST_KEY): VideoCaller => new VideoCaller(lab.gateway, key, kind)

  it('is shown to whoever asks, as the upstream shows it', async () => {
    const { task } = await upstream(kind, videoText(kind, { external_task_id: `made-elsewhere-${kind}` }))
    const { text } = await upstream(`${kind}/${task.task_id}`)
    for (const key of [TEST_KEY, OTHER_KEY]) {
      const answer = await stranger(key).read(task.task_id)
      expect(answer.status).toBe(200)
      expect(answer.body).toMatchObject({ code: 0, message: 'SUCCEED', request_id: answer.headers['x-request-id'] })
      expect(dataTextOf(answer)).toBe(text)
    }
    expect((await stranger().read(`made-elsewhere-${kind}`)).body.data.task_id).toBe(task.task_id)
  })

  it('stands in no list, has no events, and no callbacks', async () => {
    const { task } = await upstream(kind, videoText(kind))
    const { task_id: id } = task
    expect(await stranger().listed('?pageSize=500')).not.toContain(id)
    expect((await stranger().deliveries(id)).status).toBe(404)
    expect((await stranger().follow(id)).status).toBe(404)
  })

  it('and no upstream either is a 404 with code 1203', async () => {
    const { status, body, headers } = await stranger().read('831200000000000001')
    expect([status, body.code, body.message]).toEqual([404, 1203, 'There is no such task.'])
    expect(headers['x-should-retry']).toBe('false')
    expect(lab.simulator.requests).toHaveLength(1)
  })

  it('is a failure of the upstream when that does not answer', async () => {
    lab.simulator.queueFault('500')
    const { status, body, headers } = await stranger().read('831200000000000001')
    expect([status, body.code]).toEqual([502, 5000])
    // Nothing was paid for: it may be asked for again.
    expect(headers['x-should-retry']).toBeUndefined()
  })
})

describe('the option unknownTasks: refuse', () => {
  it('leaves ids the gateway never saw to nobody: 404, and the upstream is not asked', async () => {
    const refusing = await startVidgenGateway({
      access: { bearer: BEARER },
      channel: { credentials: BEARER, options: { unknownTasks: 'refuse' } },
    })
    try {
      const own = new VideoCaller(refusing.gateway)
      expect(await own.read('831200000000000001')).toMatchObject({ status: 404, body: { code: 1203 } })
      expect(refusing.simulator.requests).toEqual([])
      expect((await own.read(await own.created())).status).toBe(200)
    } finally {
      await refusing.close()
    }
  })
})
