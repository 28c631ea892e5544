import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { VIDGEN_KINDS } from '@multi-model-gateway/sandbox/vidgen/vidgen-request.js'
import { TEST_KEY } from '../support/gateway.js'
import { STORE_START_MS } from '../support/stores.js'
import { POLLED_OFTEN, startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { dataTextOf, VideoCaller } from '../support/video-caller.js'

let lab: VidgenGateway

beforeAll(async () => {
  lab = await startVidgenGateway({ tasks: POLLED_OFTEN })
}, STORE_START_MS)
afterAll(() => lab.close())

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
