import { createHmac } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { DAY_MS, HEADERS, IMAGES, refused, TEXT, VidgenSimulatorLab } from '../../test/task-simulator-labs.js'
import { startVidgenSimulator } from './vidgen.simulator.js'

const lab = new VidgenSimulatorLab()
const { create, post } = lab

beforeEach(() => lab.startAnew())
afterEach(() => lab.close())

describe('a create', () => {
  it('answers with the task in the envelope', async () => {
    const response = await post({ prompt: 'a red kite', external_task_id: 'order-77' })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
    expect(await response.json()).toEqual({
      code: 0,
      message: 'SUCCEED',
      request_id: expect.stringMatching(/^Cj[0-9a-f]{32}$/),
      data: {
        task_id: expect.stringMatching(/^83\d{17}$/),
        task_info: { external_task_id: 'order-77' },
        task_status: 'submitted',
        created_at: 1_750_000_000_000,
        updated_at: 1_750_000_000_000,
      },
    })
  })

  it('is remembered with what it was made from, but for the images', async () => {
    const id = await create({ image_list: [{ image: 'https://example.com/a.png' }], external_task_id: 'e-1' }, IMAGES)
    expect(lab.simulator.creates).toMatchObject([
      { id, kind: 'multi-image2video', externalTaskId: 'e-1', fields: { prompt: 'a red kite' } },
    ])
    expect(lab.simulator.creates[0]?.fields).not.toHaveProperty('image_list')
  })

  it('is refused with 1201 when its external id came before, in either kind, and counted', async () => {
    await create({ external_task_id: 'e-1' })
    const again = await post({ prompt: 'x', external_task_id: 'e-1' })
    expect(await again.json()).toMatchObject({ code: 1201, message: 'external_task_id is used already' })
    const image_list = [{ image: 'https://example.com/a.png' }]
    expect((await post({ prompt: 'x', image_list, external_task_id: 'e-1' }, IMAGES)).status).toBe(400)
    expect(lab.simulator.creates).toHaveLength(1)
    expect(lab.simulator.duplicates).toEqual(['e-1', 'e-1'])
  })

  it('without an external id is never a repeat', async () => {
    await create()
    await create({ external_task_id: '' })
    expect(lab.simulator.creates).toHaveLength(2)
  })

  it('is refused with the field it names', async () => {
    const response = await post({ prompt: 'x', duration: 5 })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 1201, message: 'duration must be one of 5, 10' })
  })

  it('is refused with 1200 unless it is a JSON object that says so', async () => {
    expect(await refused(await post('{"prompt":'))).toEqual([400, 1200])
    expect(await refused(await post('[]'))).toEqual([400, 1200])
    expect(await refused(await post({ prompt: 'x' }, TEXT, { 'content-type': 'text/plain' }))).toEqual([400, 1200])
  })
})

describe('routes and keys', () => {
  it('are judged before anything else', async () => {
    expect(await refused(await post({}, TEXT, { authorization: 'Bearer other' }))).toEqual([401, 1000])
    expect(await refused(await fetch(lab.simulator.url + TEXT))).toEqual([401, 1001])
    expect(await refused(await post({ prompt: 'x' }, '/v1/videos/image2video'))).toEqual([404, 1202])
    expect(await refused(await post({ prompt: 'x' }, '/v2/videos/text2video'))).toEqual([404, 1202])
    expect(await refused(await fetch(lab.simulator.url + TEXT, { method: 'DELETE', headers: HEADERS }))).toEqual([
      404, 1202,
    ])
  })

  it('that know tokens judge them by real time, however the clock stands', async () => {
    await lab.simulator.close()
    lab.simulator = await startVidgenSimulator({ accessKey: 'ak', secretKey: 'sk' }, { clock: lab.clock })
    expect(await refused(await post({ prompt: 'x' }))).toEqual([401, 1002])
    const nowSeconds = Math.floor(Date.now() / 1000)
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = { iss: 'ak', exp: nowSeconds + 1800, nbf: nowSeconds - 5 }
    const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`
    const authorization = `Bearer ${signed}.${createHmac('sha256', 'sk').update(signed).digest('base64url')}`
    expect((await post({ prompt: 'x' }, TEXT, { authorization })).status).toBe(200)
    lab.clock.advance(365 * DAY_MS)
    expect((await post({ prompt: 'x' }, TEXT, { authorization })).status).toBe(200)
  })

  it('record a relay that talks too much', async () => {
    await fetch(lab.simulator.url + TEXT, { headers: { ...HEADERS, 'x-forwarded-for': '10.0.0.1' } })
    expect(lab.simulator.violations).toEqual(['forwarded header: x-forwarded-for'])
  })
})
