import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { afterEach, describe, expect, it } from '@jest/globals'
import {
  MULTI_IMAGE_PATH,
  startVideoApplication,
  TEXT_PATH,
  VIDEO_HEADERS,
  type VideoApplication,
} from '../../test/support/video-application.js'
import { keptTask, StandInChannel, upstreamTask } from '../../test/support/video-stand-ins.js'
import { GatewayError } from '../core/gateway-error.js'

let application: VideoApplication
afterEach(() => application.close())

describe('A task', () => {
  it('of the caller is answered in the envelope, with the text of its object', async () => {
    const channel = new StandInChannel('first')
    application = await startVideoApplication([channel])
    application.tasks.kept.push(keptTask({ object: '{"task_id":"1","n":12345678901234567890,"d":1.0}' }))
    const { status, text } = await application.get(`${TEXT_PATH}/1`)
    expect(status).toBe(200)
    expect(text).toBe(
      '{"code":0,"message":"SUCCEED","request_id":"req_1","data":{"task_id":"1","n":12345678901234567890,"d":1.0}}',
    )
    expect(channel.reads).toEqual([])
  })

  it('is not found under the other kind', async () => {
    application = await startVideoApplication([new StandInChannel('first')])
    application.tasks.kept.push(keptTask({}))
    expect(await application.get(`${MULTI_IMAGE_PATH}/1`)).toMatchObject({
      status: 404,
      body: { code: 1203, request_id: 'req_1' },
    })
  })

  it('of somebody else is not found, and nobody is asked', async () => {
    const channel = new StandInChannel('first')
    application = await startVideoApplication([channel])
    application.tasks.foreign.add('text2video/7')
    expect(await application.get(`${TEXT_PATH}/7`)).toMatchObject({ status: 404, body: { code: 1203 } })
    expect(channel.reads).toEqual([])
  })

  it.each(['%2E%2E', 'a%2F..%2Fb', 'x'.repeat(257), 'a%00'])(
    'with an id that would lead elsewhere is not found, and nobody is asked: %s',
    async (id) => {
      const channel = new StandInChannel('first')
      application = await startVideoApplication([channel])
      // `fetch` would resolve dot segments by itself.
      const request = httpRequest(`${application.url}/`, { path: `${TEXT_PATH}/${id}`, headers: VIDEO_HEADERS })
      request.end()
      const [answer] = (await once(request, 'response')) as [IncomingMessage]
      answer.resume()
      expect(answer.statusCode).toBe(404)
      expect(channel.reads).toEqual([])
    },
  )
})

describe('A task this gateway never saw', () => {
  it('is looked for on one channel after the other, and answered as its upstream shows it', async () => {
    const channels = ['first', 'second', 'third'].map((id) => new StandInChannel(id))
    channels[1]?.known.set('order-77', upstreamTask('5'))
    application = await startVideoApplication(channels)
    const { status, text } = await application.get(`${TEXT_PATH}/order-77`)
    expect(status).toBe(200)
    expect(text).toContain('"data":{"task_id":"5","big":900719925474099312345}}')
    expect(channels.map(({ reads }) => reads)).toEqual([['order-77'], ['order-77'], []])
  })

  it('is not found when no channel knows it, or none may be asked', async () => {
    const refusing = new StandInChannel('second', { unknownTasks: 'refuse' })
    refusing.known.set('5', upstreamTask('5'))
    const relaying = new StandInChannel('first', { unknownTasks: 'relay' })
    application = await startVideoApplication([relaying, refusing])
    expect(await application.get(`${TEXT_PATH}/5`)).toMatchObject({ status: 404, body: { code: 1203 } })
    expect([relaying.reads, refusing.reads]).toEqual([['5'], []])
  })

  it('is not said to be unknown by a channel that failed', async () => {
    const [failing, empty] = [new StandInChannel('first'), new StandInChannel('second')]
    failing.failure = new GatewayError('upstream_failed', 'It failed.')
    application = await startVideoApplication([failing, empty])
    expect(await application.get(`${TEXT_PATH}/5`)).toMatchObject({ status: 502, body: { code: 5000 } })
    empty.known.set('5', upstreamTask('5'))
    expect((await application.get(`${TEXT_PATH}/5`)).status).toBe(200)
  })

  it.each(['text2video', 'multi-image2video'])(
    'is not shown when it turns out to be the %s task of somebody else',
    async (kind) => {
      const channel = new StandInChannel('first')
      channel.known.set('external', upstreamTask('5'))
      application = await startVideoApplication([channel])
      application.tasks.foreign.add(`${kind}/5`)
      const answer = await application.get(`${TEXT_PATH}/external`)
      expect(answer).toMatchObject({ status: 404, body: { code: 1203 } })
      expect(answer.text).not.toContain('900719925474099312345')
    },
  )

  it('is not shown when it was made through a gateway, for a caller whose task this one has forgotten', async () => {
    const channel = new StandInChannel('first')
    const object = '{"task_id":"5","task_status":"succeed","task_info":{"external_task_id":"9f86d081884c.order-77"}}'
    channel.known.set('5', { ...upstreamTask('5'), object })
    application = await startVideoApplication([channel])
    const answer = await application.get(`${TEXT_PATH}/5`)
    expect(answer).toMatchObject({ status: 404, body: { code: 1203 } })
    expect(answer.text).not.toContain('order-77')
  })
})
