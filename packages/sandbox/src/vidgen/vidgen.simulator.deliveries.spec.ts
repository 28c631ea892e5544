import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { DAY_MS, HEADERS, VidgenSimulatorLab } from '../../test/task-simulator-labs.js'
import { startCallbackReceiver } from '../tasks/callback-receiver.js'

const lab = new VidgenSimulatorLab()
const { create, read, start } = lab

beforeEach(() => lab.startAnew())
afterEach(() => lab.close())

describe('videos', () => {
  it('can be got for thirty days; the task stays', async () => {
    const id = await create({ aspect_ratio: '1:1' })
    const url = `${lab.simulator.url}/media/${id}.mp4`
    expect((await fetch(url)).status).toBe(404)
    lab.clock.advance(6000)
    const response = await fetch(url)
    const bytes = Buffer.from(await response.arrayBuffer())
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'video/mp4'])
    expect(bytes.toString('latin1', 4, 12)).toBe('ftypisom')
    lab.clock.advance(30 * DAY_MS - 1)
    expect((await fetch(url)).status).toBe(200)
    lab.clock.advance(1)
    expect((await fetch(url)).status).toBe(404)
    expect(await read(id)).toMatchObject({ task_status: 'succeed', task_result: { videos: [{ url }] } })
  })

  it('have a marked copy when one was asked for', async () => {
    const [plain, marked] = [await create(), await create({ watermark_info: { enabled: true } })]
    lab.clock.advance(6000)
    const task = await read(marked)
    const url = `${lab.simulator.url}/media/${marked}-watermark.mp4`
    expect(task).toMatchObject({ watermark_info: { enabled: true }, task_result: { videos: [{ watermark_url: url }] } })
    expect((await fetch(url)).status).toBe(200)
    expect((await fetch(`${lab.simulator.url}/media/${plain}-watermark.mp4`)).status).toBe(404)
  })

  it('must not be sent a credential', async () => {
    await fetch(`${lab.simulator.url}/media/1.mp4`, { headers: HEADERS })
    expect(lab.simulator.violations).toEqual(['credential sent to a video link: authorization'])
  })
})

describe('callbacks', () => {
  it('tell every change after the create, in the older flat form', async () => {
    const receiver = await startCallbackReceiver()
    const callback_url = `${receiver.url}/hook`
    const id = await create({ callback_url, external_task_id: 'e-1', watermark_info: { enabled: true } })
    lab.clock.advance(6000)
    await lab.simulator.callbacksSent()
    const [processing, done] = receiver.received.map(({ body }) => JSON.parse(body) as object)
    expect(processing).toEqual({
      task_id: id,
      task_status: 'processing',
      task_status_msg: '',
      created_at: 1_750_000_000_000,
      updated_at: 1_750_000_002_000,
      task_info: { external_task_id: 'e-1', parent_video: { id: '', url: '', duration: '' } },
      task_result: { images: [], videos: [] },
    })
    expect(done).toMatchObject({
      task_status: 'succeed',
      final_unit_deduction: '2',
      task_result: { videos: [{ id: `${id}-0`, url: `${lab.simulator.url}/media/${id}.mp4`, duration: '5.1' }] },
    })
    expect(JSON.stringify(done)).not.toContain('watermark_url')
    expect(receiver.received).toHaveLength(2)
    expect(lab.simulator.callbacks.map(({ status }) => status)).toEqual([200, 200])
    await receiver.close()
  })

  it('come signed, twice and last one first when a test wants it so', async () => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
    await lab.simulator.close()
    await start({ callbacks: { secret, duplicate: true, outOfOrder: true } })
    const receiver = await startCallbackReceiver({ secret })
    await create({ callback_url: `${receiver.url}/hook` })
    lab.clock.advance(6000)
    await lab.simulator.callbacksSent()
    const seen = receiver.received.map(({ body, verified }) => [
      (JSON.parse(body) as { task_status: string }).task_status,
      verified,
    ])
    const [processing, succeed] = [
      ['processing', true],
      ['succeed', true],
    ]
    expect(seen).toEqual([succeed, succeed, processing, processing])
    await receiver.close()
  })
})
