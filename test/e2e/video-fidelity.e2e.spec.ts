import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { VIDGEN_KINDS } from '@multi-model-gateway/sandbox/vidgen/vidgen-request.js'
import { TEST_KEY } from '../support/gateway.js'
import { pngHeader, pngText } from '../support/images.js'
import { STORE_START_MS } from '../support/stores.js'
import { startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { VideoCaller, videoText } from '../support/video-caller.js'

const MEBIBYTE = 1024 * 1024

let lab: VidgenGateway
let caller: VideoCaller
let multi: VideoCaller

beforeAll(async () => {
  lab = await startVidgenGateway({
    simulator: { modelPrefix: 'theirs-', recordBodies: true },
    channel: { modelMap: { 'vidgen-v1': 'theirs-v1', 'vidgen-v1-6': 'theirs-v1-6', 'vidgen-v3': 'theirs-v3' } },
  })
  caller = new VideoCaller(lab.gateway)
  multi = new VideoCaller(lab.gateway, TEST_KEY, 'multi-image2video')
}, STORE_START_MS)
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

/** What the upstream received; its id of the task, which nobody can foretell, is `ID`. */
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
