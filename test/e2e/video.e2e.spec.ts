import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { VIDGEN_KINDS } from '@multi-model-gateway/sandbox/vidgen/vidgen-request.js'
import { TEST_KEY } from '../support/gateway.js'
import { STORE_START_MS } from '../support/stores.js'
import { POLLED_OFTEN, startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { dataTextOf, type ShownTask, VideoCaller } from '../support/video-caller.js'

let lab: VidgenGateway

beforeAll(async () => {
  lab = await startVidgenGateway({ tasks: POLLED_OFTEN })
}, STORE_START_MS)
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(async () => {
  expect(lab.simulator.violations).toEqual([])
  expect(lab.gateway.logText()).not.toMatch(new RegExp(`canary|${TEST_KEY}`))
  await lab.close()
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

  it('is told as events of each change, the last of which ends the stream', async () => {
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
