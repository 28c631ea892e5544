import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { VIDGEN_KINDS } from '@multi-model-gateway/sandbox/vidgen/vidgen-request.js'
import { pngHeader, pngText } from '../support/byte-streams.js'
import { sendRaw, TEST_KEY } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { withLab } from '../support/provider-gateways.js'
import { OTHER_KEY, POLLED_OFTEN, startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { dataTextOf, type Envelope, type ShownTask, VideoCaller, videoText } from '../support/video-caller.js'

describe('video', () => {
  let lab: VidgenGateway
  shareLab(async () => (lab = await startVidgenGateway({ tasks: POLLED_OFTEN })))
  afterEach(() => {
    expect(lab.simulator.violations).toEqual([])
  })
  afterAll(() => {
    expect(lab.gateway.logText()).not.toMatch(new RegExp(`canary|${TEST_KEY}`))
  })

  describe.each(VIDGEN_KINDS)('a %s task', (kind) => {
    const callerOf = ({ gateway }: VidgenGateway): VideoCaller => new VideoCaller(gateway, TEST_KEY, kind)

    it('is created with the envelope of the specification, under the id the upstream gave it', async () => {
      const { status, headers, body } = await callerOf(lab).create()
      expect(status).toBe(200)
      expect(headers['content-type']).toMatch(/^application\/json/)
      expect(body).toEqual({
        code: 0,
        message: 'SUCCEED',
        request_id: headers['x-request-id'],
        data: {
          task_id: lab.simulator.creates.at(-1)?.id,
          task_info: { external_task_id: '' },
          task_status: 'submitted',
          created_at: expect.any(Number),
          updated_at: expect.any(Number),
        },
      })
    })

    it('is read by its id, complete and with numbers as the upstream spelled them', async () => {
      const caller = callerOf(lab)
      const id = await caller.created({ watermark_info: { enabled: true } })
      const stream = await caller.follow(id)
      lab.simulator.settle(id, 'succeed')
      await stream.shows('succeed')
      const { text, body, headers } = await caller.read(id)
      expect(body).toMatchObject({ code: 0, message: 'SUCCEED', request_id: headers['x-request-id'] })
      expect(body.data).toMatchObject({
        task_id: id,
        task_status: 'succeed',
        task_status_msg: '',
        task_info: { external_task_id: '' },
        task_result: {
          videos: [
            {
              id: `${id}-0`,
              url: `${lab.simulator.url}/media/${id}.mp4`,
              watermark_url: `${lab.simulator.url}/media/${id}-watermark.mp4`,
              duration: '5.1',
            },
          ],
        },
        watermark_info: { enabled: true },
        final_unit_deduction: '2',
      })
      // Neither named in any document nor within what a double can hold.
      expect(text).toContain('"trace_number":9223372036854775807}')
      expect((await fetch(`${lab.simulator.url}/media/${id}.mp4`)).status).toBe(200)
    })

    it("is read by the caller's own id, which stands in every answer", async () => {
      const caller = callerOf(lab)
      const own = `own:${kind}`
      const created = await caller.create({ external_task_id: own })
      expect(created.body.data.task_info).toEqual({ external_task_id: own })
      const read = await caller.read(own)
      expect(read.body.data).toMatchObject({
        task_id: created.body.data.task_id,
        task_info: { external_task_id: own },
      })
      expect((await caller.list()).body.data[0]?.task_info).toEqual({ external_task_id: own })
    })

    it('stands first in the list, which holds tasks of its kind only', async () => {
      const caller = callerOf(lab)
      const others = new VideoCaller(lab.gateway, TEST_KEY, kind === 'text2video' ? 'multi-image2video' : 'text2video')
      const first = await caller.created()
      const second = await caller.created()
      const foreign = await others.created()
      const ids = await caller.listed()
      expect(ids.slice(0, 2)).toEqual([second, first])
      expect(ids).not.toContain(foreign)
      expect((await others.read(second)).status).toBe(404)
    })

    it('has an event for each change, the last of which ends the stream', async () => {
      const caller = callerOf(lab)
      const id = await caller.created({ external_task_id: `events-${kind}` })
      const stream = await caller.follow(id)
      expect(stream.status).toBe(200)
      expect(stream.headers).toMatchObject({
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache',
      })
      await stream.shows('submitted')
      lab.simulator.advance(id)
      await stream.shows('processing')
      lab.simulator.advance(id)
      expect(await stream.ended).toBe(true)
      expect([...new Set(stream.statuses)]).toEqual(['submitted', 'processing', 'succeed'])
      expect(stream.objects.at(-1)).toBe(dataTextOf(await caller.read(id)))
    })

    it('is reported to its callback address, and the upstream never learns of that address', async () => {
      const caller = callerOf(lab)
      const before = lab.receiver.received.length
      const id = await caller.created({ callback_url: lab.receiver.url(`/${kind}`) })
      expect(lab.simulator.creates.at(-1)?.fields).not.toHaveProperty('callback_url')
      lab.simulator.advance(id)
      await lab.receiver.has(before + 1)
      lab.simulator.advance(id)
      await lab.receiver.has(before + 2)
      const events = lab.receiver.received.slice(before)
      expect(events.map(({ path }) => path)).toEqual([`/${kind}`, `/${kind}`])
      expect(events.map(({ body }) => (JSON.parse(body) as ShownTask).task_status)).toEqual(['processing', 'succeed'])
      expect(events[1]?.body).toBe(dataTextOf(await caller.read(id)))
    })
  })

  describe.each(VIDGEN_KINDS)('the events of a %s task', (kind) => {
    const caller = (): VideoCaller => new VideoCaller(lab.gateway, TEST_KEY, kind)

    it.each(['succeed', 'failed'] as const)('end with %s, the same object that a read shows', async (end) => {
      const id = await caller().created()
      const stream = await caller().follow(id)
      await stream.shows('submitted')
      lab.simulator.show(id, 'processing')
      await stream.shows('processing')
      lab.simulator.settle(id, end)
      expect(await stream.ended).toBe(true)
      expect(stream.objects.at(-1)).toBe(dataTextOf(await caller().read(id)))
      expect([...new Set(stream.statuses)]).toEqual(['submitted', 'processing', end])
      // Nothing follows the last one, and nothing but tasks has come.
      expect(stream.text.endsWith(`data: ${stream.objects.at(-1)}\n\n`)).toBe(true)
      expect(stream.text.match(/^event: task$/gm)).toHaveLength(stream.objects.length)
    })

    it('of one that has ended are its last state alone', async () => {
      const id = await caller().created({ external_task_id: `ended-${kind}` })
      const stream = await caller().follow(id)
      lab.simulator.settle(id, 'succeed')
      await stream.ended
      const late = await caller().follow(`ended-${kind}`)
      expect(await late.ended).toBe(true)
      expect(late.objects).toEqual([dataTextOf(await caller().read(id))])
    })

    it('stop when their reader leaves, and go on for others', async () => {
      const id = await caller().created()
      const requestId = `leaves-${kind}`
      const [leaving, staying] = [await caller().follow(id, { 'x-request-id': requestId }), await caller().follow(id)]
      await leaving.shows('submitted')
      leaving.leave()
      // Written when everything about the request is over.
      expect(await lab.gateway.logLine(requestId)).toMatchObject({ status: 499, msg: 'request' })
      lab.simulator.settle(id, 'succeed')
      expect(await staying.ended).toBe(true)
      expect(staying.statuses.at(-1)).toBe('succeed')
    })

    it('reach a hundred readers', async () => {
      const id = await caller().created()
      const streams = await Promise.all(Array.from({ length: 100 }, () => caller().follow(id)))
      lab.simulator.settle(id, 'succeed')
      for (const stream of streams) {
        expect(await stream.ended).toBe(true)
        expect(stream.statuses.at(-1)).toBe('succeed')
      }
    })

    it('of one that is not there are a 404 in the dialect of video', async () => {
      const stream = await caller().follow('831200000000000001')
      expect([stream.status, stream.headers['content-type']]).toEqual([404, 'application/json'])
      await stream.ended
      expect(JSON.parse(stream.text)).toMatchObject({ code: 1203, request_id: stream.headers['x-request-id'] })
    })
  })
})

describe('video list', () => {
  const MADE = 32

  let lab: VidgenGateway
  let caller: VideoCaller
  /** Newest first, as the list has them. */
  let ids: readonly string[]

  shareLab(async () => {
    lab = await startVidgenGateway()
    caller = new VideoCaller(lab.gateway)
    return lab
  })
  beforeAll(async () => {
    const created: string[] = []
    while (created.length < MADE) created.push(await caller.created({ external_task_id: `task-${created.length}` }))
    ids = created.reverse()
  })

  describe('the list', () => {
    it.each([
      ['', 0, 30],
      ['?pageNum=1', 0, 30],
      ['?pageNum=2', 30, 32],
      ['?pageNum=3', 32, 32],
      ['?pageSize=1', 0, 1],
      ['?pageSize=5&pageNum=2', 5, 10],
      ['?pageSize=500', 0, 32],
      ['?pageSize=32&pageNum=1000', 32, 32],
    ])('asked for with %j holds the tasks from %i to %i, newest first', async (query, from, to) => {
      const { status, body } = await caller.list(query)
      expect([status, body.code]).toEqual([200, 0])
      expect(body.data.map(({ task_id: id }) => id)).toEqual(ids.slice(from, to))
    })

    it.each([
      ['pageNum', '0'],
      ['pageNum', '1001'],
      ['pageNum', '-1'],
      ['pageNum', '1.5'],
      ['pageNum', 'two'],
      ['pageNum', ''],
      ['pageSize', '0'],
      ['pageSize', '501'],
      ['pageSize', '1e2'],
    ])('is refused with %s %j, naming it', async (name, value) => {
      const { status, body } = await caller.list(`?${name}=${value}`)
      expect([status, body.code]).toEqual([400, 1201])
      expect(body.message).toContain(`'${name}'`)
    })

    it('is refused with a parameter that comes twice', async () => {
      expect((await caller.list('?pageNum=1&pageNum=2')).status).toBe(400)
    })

    it('is empty for a caller without tasks, and for a kind without any', async () => {
      const others = [
        new VideoCaller(lab.gateway, OTHER_KEY),
        new VideoCaller(lab.gateway, TEST_KEY, 'multi-image2video'),
      ]
      for (const other of others) expect((await other.list()).body).toMatchObject({ code: 0, data: [] })
    })

    it('costs its upstream nothing', async () => {
      await caller.list()
      expect(lab.simulator.requests).toEqual([])
    })
  })
})

describe('video reads', () => {
  const BEARER = 'bearer-canary-43'

  let lab: VidgenGateway
  let caller: VideoCaller

  shareLab(async () => {
    lab = await startVidgenGateway({ access: { bearer: BEARER }, channel: { credentials: BEARER } })
    caller = new VideoCaller(lab.gateway)
    return lab
  })
  afterEach(() => {
    expect(lab.simulator.violations).toEqual([])
  })

  /** The upstream's own response to the owner of the account. */
  async function upstream(path: string, body?: string): Promise<{ readonly text: string; readonly task: ShownTask }> {
    const headers = { authorization: `Bearer ${BEARER}` }
    const question = body === undefined ? { method: 'GET' } : { body }
    const { text } = await sendRaw(lab.simulator.url, { path: `/v1/videos/${path}`, headers, ...question })
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
        // A connection that was kept and is closed at the request is no answer: it is sent once more.
        const times = fault === 'reset' ? 2 : 1
        for (let sent = 0; sent < times; sent++) lab.simulator.queueFault(fault)
        const { status, body } = await caller.read(created.body.data.task_id)
        expect(lab.simulator.requests).toHaveLength(times)
        expect([status, body.data]).toEqual([200, created.body.data])
      },
    )

    it.each(['a%2fb', 'a%5cb', '%00', '%0a', 'x'.repeat(257)])(
      'of an id like %s is a 404, without a request to an upstream',
      async (id) => {
        const { status, body } = await caller.read(id)
        expect([status, body.code, body.message]).toEqual([404, 1203, 'There is no such task.'])
        expect(lab.simulator.requests).toEqual([])
      },
    )
  })

  describe.each(VIDGEN_KINDS)('a %s task this gateway never saw', (kind) => {
    const stranger = (key = TEST_KEY): VideoCaller => new VideoCaller(lab.gateway, key, kind)

    it('is shown to every caller as the upstream shows it', async () => {
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
    it('refuses ids that the gateway never saw: 404, without a request to the upstream', async () => {
      await withLab(startVidgenGateway({ channel: { options: { unknownTasks: 'refuse' } } }), async (refusing) => {
        const own = new VideoCaller(refusing.gateway)
        expect(await own.read('831200000000000001')).toMatchObject({ status: 404, body: { code: 1203 } })
        expect(refusing.simulator.requests).toEqual([])
        expect((await own.read(await own.created())).status).toBe(200)
      })
    })
  })
})

describe('video fidelity', () => {
  const MEBIBYTE = 1024 * 1024

  let lab: VidgenGateway
  let caller: VideoCaller
  let multi: VideoCaller

  shareLab(async () => {
    lab = await startVidgenGateway({
      simulator: { modelPrefix: 'theirs-', recordBodies: true },
      channel: { modelMap: { 'vidgen-v1': 'theirs-v1', 'vidgen-v1-6': 'theirs-v1-6', 'vidgen-v3': 'theirs-v3' } },
    })
    caller = new VideoCaller(lab.gateway)
    multi = new VideoCaller(lab.gateway, TEST_KEY, 'multi-image2video')
    return lab
  })

  /** What the upstream received; its random id of the task is `ID`. */
  const received = (): string => {
    expect(lab.simulator.violations).toEqual([])
    const text = lab.simulator.lastRequest?.body.toString() ?? ''
    const { external_task_id: id } = JSON.parse(text) as { external_task_id: string }
    return text.replace(JSON.stringify(id), 'ID')
  }

  describe('a create', () => {
    it('reaches the upstream byte for byte but for what the gateway must change', async () => {
      const body =
        '{ "x_before":12345678901234567, "model_name" :"vidgen-v1","prompt":"\\u00e9t\\u00E9 \\/ \u{1F6F6}",\n' +
        '  "callback_url":"https://example.com/hook", "cfg_scale":0.50,"mode":"std", "duration": 5,\t"x_after":{"b":[1.0,1e400,null],"a":{}} }'
      expect((await caller.create(body)).status).toBe(200)
      expect(received()).toBe(
        '{ "x_before":12345678901234567, "model_name" :"theirs-v1","prompt":"\\u00e9t\\u00E9 \\/ \u{1F6F6}",' +
          ' "cfg_scale":0.50,"mode":"std", "duration": "5",\t"x_after":{"b":[1.0,1e400,null],"a":{}},"external_task_id":ID }',
      )
    })

    it('without a model gets none, nor any other field the caller left out', async () => {
      expect((await caller.create('{"prompt":"x"}')).status).toBe(200)
      expect(received()).toBe('{"prompt":"x","external_task_id":ID}')
    })

    it("names the upstream's model where an old client says 'model'", async () => {
      expect((await caller.create('{"model":"vidgen-v3","prompt":"x","duration":15}')).status).toBe(200)
      expect(received()).toBe('{"prompt":"x","duration":"15","model_name":"theirs-v3","external_task_id":ID}')
    })

    it('of several images has them and their order as they were sent', async () => {
      const images = [
        { image: pngText(300, 300) },
        { image: 'https://pictures.example/two.jpg' },
        { image: pngText(750, 300) },
      ]
      const body = videoText('multi-image2video', {
        model_name: 'vidgen-v1-6',
        image_list: images,
        duration: 10,
        watermark_info: { enabled: false },
      })
      expect((await multi.create(body)).status).toBe(200)
      const expected = body.replace('"vidgen-v1-6"', '"theirs-v1-6"').replace('"duration":10', '"duration":"10"')
      expect(received()).toBe(expected.replace(/\}$/, ',"external_task_id":ID}'))
    })

    it('may have four images of ten megabytes each', async () => {
      const image = Buffer.concat([pngHeader(4000, 4000), Buffer.alloc(10 * MEBIBYTE - 33, 0xa5)]).toString('base64')
      const body = videoText('multi-image2video', { model_name: 'vidgen-v1-6', image_list: Array(4).fill({ image }) })
      expect((await multi.create(body)).status).toBe(200)
      const expected = body.replace('"vidgen-v1-6"', '"theirs-v1-6"').replace(/\}$/, ',"external_task_id":ID}')
      // Compared by hand: a difference must not be printed.
      expect(received() === expected).toBe(true)
    })

    it.each(VIDGEN_KINDS)(
      'of %s carries a signed token, no header of the caller, and no key of the caller',
      async (kind) => {
        const headers = { 'x-canary': 'canary', cookie: 'a=canary', 'idempotency-key': `headers-${kind}` }
        const answer = await new VideoCaller(lab.gateway, TEST_KEY, kind).create({ model_name: 'vidgen-v1-6' }, headers)
        expect(answer.status).toBe(200)
        const sent = lab.simulator.lastRequest?.headers ?? {}
        expect(sent['authorization']).toMatch(/^Bearer [\w-]+\.[\w-]+\.[\w-]+$/)
        expect(sent).toMatchObject({ 'content-type': 'application/json', accept: 'application/json' })
        expect(JSON.stringify(sent)).not.toMatch(new RegExp(`canary|idempotency|${TEST_KEY}`))
      },
    )
  })

  describe("the id under which the upstream knows a task of the gateway's", () => {
    const upstreamId = (): string => lab.simulator.creates.at(-1)?.externalTaskId ?? ''

    it("ends in the caller's own, and never shows in an answer", async () => {
      const answer = await caller.create({ model_name: 'vidgen-v1', external_task_id: 'order-77' })
      expect(upstreamId()).toMatch(/^[0-9a-f]{12}\.order-77$/)
      const answers = [answer, await caller.read('order-77'), await caller.list()]
      for (const { text } of answers) expect(text).not.toContain(upstreamId())
    })

    it('is there even when the caller chose none, differs from task to task, and shows as an empty one', async () => {
      const ids = new Set<string>()
      for (let round = 0; round < 3; round++) {
        const id = await caller.created({ model_name: 'vidgen-v1' })
        ids.add(upstreamId())
        expect((await caller.read(id)).body.data.task_info).toEqual({ external_task_id: '' })
      }
      expect(ids.size).toBe(3)
      for (const id of ids) expect(id).toMatch(/^[0-9a-f]{12}\.\S+$/)
    })
  })
})

describe('video ownership', () => {
  let lab: VidgenGateway
  shareLab(async () => (lab = await startVidgenGateway()))
  afterAll(() => {
    expect(lab.simulator.duplicates).toEqual([])
  })

  describe.each(VIDGEN_KINDS)("another owner's %s task", (kind) => {
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
      'of the form %j is refused before an upstream is called',
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
})
