import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { askForImage, imagePath } from '../support/imggen-gateway.js'
import { TEST_KEY } from '../support/gateway.js'
import { RealtimeProbe } from '../support/realtime-probe.js'
import { STORE_START_MS } from '../support/stores.js'
import { describeAllRecords } from '../support/usage-all.js'
import { recordsOf, recordWhere, type ShownRecord, startUsageLab, type UsageLab } from '../support/usage-lab.js'
import { VideoCaller } from '../support/video-caller.js'

let lab: UsageLab

beforeAll(async () => {
  lab = await startUsageLab()
}, STORE_START_MS)
afterAll(() => lab.close())

describe('A realtime session', () => {
  it('is recorded once for each answer, and once by itself without units', async () => {
    const requestId = 'session-1'
    const probe = await RealtimeProbe.open({
      url: lab.gateway.url.replace('http', 'ws'),
      key: TEST_KEY,
      model: 'gpt-realtime',
      headers: { 'x-request-id': requestId },
    })
    await probe.next('session.created')
    const answers: Record<string, unknown>[] = []
    for (let turn = 0; turn < 2; turn++) {
      probe.send({
        type: 'conversation.item.create',
        item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
      })
      probe.send({ type: 'response.create' })
      const { response } = (await probe.next('response.done')) as { response: { usage: Record<string, unknown> } }
      answers.push(response.usage)
    }
    probe.socket.close()
    await probe.closed
    await recordWhere(lab.gateway, ({ request_id: id, kind }) => id === requestId && kind === 'request')
    const records = (await recordsOf(lab.gateway)).filter(({ request_id: id }) => id === requestId)
    const responses = records.filter(({ kind }) => kind === 'response')
    expect(responses.map(({ reported }) => reported)).toEqual([...answers].reverse())
    for (const record of responses) {
      expect(record).toMatchObject({
        route: '/v1/realtime',
        model: 'gpt-realtime',
        channel: 'p1-main',
        pricing: 'priced',
      })
      expect(record.units['prompt_tokens']).toBe(record.reported?.['input_tokens'])
    }
    expect(records.filter(({ kind }) => kind === 'request')).toMatchObject([
      { units: {}, pricing: 'free', outcome: 'ok' },
    ])
    expect(records).toHaveLength(3)
  })
})

describe('A task', () => {
  it('is paid once it has succeeded, once, whoever asks for it afterwards', async () => {
    const caller = new VideoCaller(lab.gateway)
    const id = await caller.created()
    const create = await recordWhere(lab.gateway, ({ route, kind }) => route === caller.path && kind === 'request')
    expect(create).toMatchObject({ outcome: 'ok', units: {}, pricing: 'free', channel: 'vidgen-main' })
    lab.vidgen.settle(id, 'succeed')
    const isEnd = ({ kind, route }: ShownRecord): boolean => kind === 'task' && route === caller.path
    expect(await recordWhere(lab.gateway, isEnd)).toMatchObject({
      request_id: null,
      model: 'vidgen-v1',
      channel: 'vidgen-main',
      outcome: 'ok',
      units: { videos: 1 },
      reported: { videos: 1, final_unit_deduction: 2 },
      cost: '0.35',
    })
    for (let time = 0; time < 3; time++) await caller.read(id)
    expect((await recordsOf(lab.gateway)).filter(isEnd)).toHaveLength(1)
  })

  it('that has failed is recorded and free', async () => {
    const caller = new VideoCaller(lab.gateway, TEST_KEY, 'multi-image2video')
    lab.vidgen.settle(await caller.created(), 'failed')
    const record = await recordWhere(lab.gateway, ({ kind, route }) => kind === 'task' && route === caller.path)
    expect(record).toMatchObject({ outcome: 'upstream_failed', units: { videos: 0 }, pricing: 'free', cost: '0' })
  })

  it('of images is counted when it is first seen to have ended, and not again', async () => {
    const id = '1750000000000777'
    lab.imggen.submit('a red kite', { id })
    await askForImage(lab.gateway, imagePath(id))
    lab.imggen.finish(id)
    for (let time = 0; time < 3; time++) await askForImage(lab.gateway, imagePath(id))
    const isImage = ({ model }: ShownRecord): boolean => model === 'images'
    expect(await recordWhere(lab.gateway, isImage)).toMatchObject({ units: { images: 1 }, cost: '0.05', outcome: 'ok' })
    expect((await recordsOf(lab.gateway)).filter(isImage)).toHaveLength(1)
  })
})

describeAllRecords(() => lab, 8)
