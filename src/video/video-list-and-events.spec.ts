import { afterEach, describe, expect, it } from '@jest/globals'
import {
  MULTI_IMAGE_PATH,
  startVideoApplication,
  TEXT_PATH,
  VIDEO_HEADERS,
  type VideoApplication,
} from '../../test/support/video-application.js'
import { keptTask, StandInChannel, upstreamTask } from '../../test/support/video-stand-ins.js'

let application: VideoApplication
afterEach(() => application.close())

describe('The list', () => {
  it('holds the objects of the caller’s tasks of that kind, as text', async () => {
    application = await startVideoApplication([])
    application.tasks.kept.push(
      keptTask({ object: '{"task_id":"2","n":12345678901234567890}' }),
      keptTask({ id: 'other', kind: 'multi-image2video', object: '{"task_id":"9"}' }),
      keptTask({ id: 'older', object: '{"task_id":"1"}' }),
    )
    const { status, text } = await application.get(`${TEXT_PATH}?pageNum=2&pageSize=10`)
    expect(status).toBe(200)
    expect(text).toBe(
      '{"code":0,"message":"SUCCEED","request_id":"req_1","data":[{"task_id":"2","n":12345678901234567890},{"task_id":"1"}]}',
    )
    expect(application.tasks.pages).toEqual([{ kind: 'text2video', page: { offset: 10, limit: 10 }, keyId: 'test' }])
  })

  it('may be empty, and is refused for a page that cannot be', async () => {
    application = await startVideoApplication([])
    expect((await application.get(MULTI_IMAGE_PATH)).body['data']).toEqual([])
    expect(await application.get(`${MULTI_IMAGE_PATH}?pageSize=501`)).toMatchObject({
      status: 400,
      body: { code: 1201 },
    })
    expect((await application.get(`${MULTI_IMAGE_PATH}?pageNum=1&pageNum=2`)).body['message']).toContain('pageNum')
  })
})

describe('The events of a task', () => {
  const watching = (id: string, signal?: AbortSignal): Promise<Response> =>
    fetch(`${application.url}${TEXT_PATH}/${id}/events`, {
      headers: VIDEO_HEADERS,
      ...(signal === undefined ? {} : { signal }),
    })

  it('show it at once, at every change, each object on one line, and end after the last', async () => {
    application = await startVideoApplication([])
    const task = keptTask({ object: '{"task_id":"1",\r\n  "task_status":"submitted"}' })
    application.tasks.kept.push(task)
    const response = await watching('1')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    application.tasks.announce({ ...task, state: 'processing', object: '{"task_status":"processing"}' })
    await new Promise((done) => setImmediate(done))
    application.tasks.announce({ ...task, state: 'succeed', object: '{"task_status":"succeed"}' })
    expect(await response.text()).toBe(
      'event: task\ndata: {"task_id":"1",   "task_status":"submitted"}\n\n' +
        'event: task\ndata: {"task_status":"processing"}\n\n' +
        'event: task\ndata: {"task_status":"succeed"}\n\n',
    )
  })

  it('of one that has ended are one', async () => {
    application = await startVideoApplication([])
    application.tasks.kept.push(keptTask({ state: 'failed' }))
    expect(await (await watching('1')).text()).toBe('event: task\ndata: {"task_id":"1"}\n\n')
  })

  it('stop when the caller leaves', async () => {
    application = await startVideoApplication([])
    application.tasks.kept.push(keptTask({}))
    const leave = new AbortController()
    await watching('1', leave.signal)
    await application.tasks.watched(1)
    leave.abort()
    await application.tasks.watched(0)
  })

  it('are not found where the task is not kept here', async () => {
    const channel = new StandInChannel('first')
    channel.known.set('5', upstreamTask('5'))
    application = await startVideoApplication([channel])
    expect((await watching('5')).status).toBe(404)
    expect((await watching('..%2fx')).status).toBe(404)
  })
})
