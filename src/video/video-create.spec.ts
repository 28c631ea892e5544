import { hash } from 'node:crypto'
import { afterEach, describe, expect, it } from '@jest/globals'
import { pngText } from '../../test/support/images.js'
import {
  MULTI_IMAGE_PATH,
  multiImageBody,
  startVideoApplication,
  TEXT_PATH,
  type VideoApplication,
} from '../../test/support/video-application.js'
import { StandInChannel } from '../../test/support/video-stand-ins.js'

let application: VideoApplication
afterEach(() => application.close())

describe('A create', () => {
  it('answers with what the engine says, as 200', async () => {
    application = await startVideoApplication([new StandInChannel('first')])
    const { status, headers: answered, text } = await application.post(TEXT_PATH, '{"prompt":"x"}')
    expect(status).toBe(200)
    expect(answered.get('content-type')).toBe('application/json')
    expect(answered.has('x-idempotent-replay')).toBe(false)
    expect(text).toContain('"task_id":"900719925474099312","task_status":"submitted"')
    expect(text).toContain('"later":1.0')
  })

  it('says when its answer was given before', async () => {
    application = await startVideoApplication([new StandInChannel('first')])
    application.tasks.replayed = true
    const answer = await application.post(TEXT_PATH, '{"prompt":"x"}', { 'idempotency-key': 'key-1' })
    expect(answer.headers.get('x-idempotent-replay')).toBe('true')
    expect(application.tasks.orders[0]?.idempotencyKey).toBe('key-1')
  })

  it('orders what the caller asked for, with a fingerprint of the bytes', async () => {
    const channel = new StandInChannel('first')
    application = await startVideoApplication([channel])
    const image = pngText()
    const body = `{"image_list":[{"image":"${image}"}],"prompt":"x","external_task_id":"order-77","callback_url":"https://me.example/h","duration":5,"n":12345678901234567890}`
    expect((await application.post(MULTI_IMAGE_PATH, body)).status).toBe(200)
    expect(application.tasks.orders[0]).toMatchObject({
      kind: 'multi-image2video',
      model: 'vidgen-v1-6',
      externalTaskId: 'order-77',
      callbackUrl: 'https://me.example/h',
      fingerprint: hash('sha256', body, 'hex'),
    })
    expect(application.tasks.orders[0]).not.toHaveProperty('idempotencyKey')
    expect(channel.bodies).toEqual([
      `{"image_list":[{"image":"${image}"}],"prompt":"x","external_task_id":"owner.id","duration":"5","n":12345678901234567890}`,
    ])
  })

  it('without a model is routed as the default of its kind', async () => {
    application = await startVideoApplication([new StandInChannel('first')])
    await application.post(TEXT_PATH, '{"prompt":"x"}')
    await application.post(TEXT_PATH, '{"prompt":"x","model":"vidgen-v2-6"}')
    await application.post(MULTI_IMAGE_PATH, multiImageBody())
    expect(application.router.asked).toEqual(['vidgen-v1', 'vidgen-v2-6', 'vidgen-v1-6'])
    expect(application.calls.map((call) => call.log.model)).toEqual(application.router.asked)
    expect(application.tasks.orders[0]).not.toHaveProperty('externalTaskId')
    expect(application.tasks.orders[0]).not.toHaveProperty('callbackUrl')
  })

  it('of a model that nobody serves, or under a key of another form, is refused before anything is recorded', async () => {
    application = await startVideoApplication([new StandInChannel('first')])
    expect(await application.post(TEXT_PATH, '{"prompt":"x","model_name":"unknown"}')).toMatchObject({
      status: 400,
      body: { code: 1201 },
    })
    const long = await application.post(TEXT_PATH, '{"prompt":"x"}', { 'idempotency-key': 'k'.repeat(256) })
    expect(long).toMatchObject({ status: 400, body: { code: 1201, request_id: 'req_1' } })
    expect(long.body['message']).toContain('Idempotency-Key')
    expect(application.tasks.orders).toEqual([])
  })

  it('that breaks a rule is refused with the field in the message', async () => {
    application = await startVideoApplication([new StandInChannel('first')])
    const answer = await application.post(MULTI_IMAGE_PATH, multiImageBody(`data:image/png;base64,${pngText()}`))
    expect(answer).toMatchObject({
      status: 400,
      body: {
        code: 1201,
        message: "Invalid 'image_list[0].image': expected raw Base64 without a data: prefix.",
        request_id: 'req_1',
      },
    })
    expect(application.tasks.orders).toEqual([])
  })

  it.each([
    ['a repeated key', '{"prompt":"x","prompt":"y"}'],
    ['a key that reaches a prototype', '{"prompt":"x","camera_control":{"__proto__":{}}}'],
    ['more than 64 levels', `{"prompt":"x","a":${'['.repeat(64)}${']'.repeat(64)}}`],
    ['something that is no object', '[]'],
  ])('with %s is refused', async (_case, body) => {
    application = await startVideoApplication([new StandInChannel('first')])
    for (const path of [TEXT_PATH, MULTI_IMAGE_PATH])
      expect(await application.post(path, body)).toMatchObject({ status: 400, body: { code: 1201 } })
  })

  it('needs a key that is known', async () => {
    application = await startVideoApplication([new StandInChannel('first')])
    expect(await application.post(TEXT_PATH, '{"prompt":"x"}', { authorization: 'Bearer wrong' })).toMatchObject({
      status: 401,
      body: { code: 1000 },
    })
  })
})
