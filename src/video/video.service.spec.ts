import { hash } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { pngText } from '../../test/support/byte-streams.js'
import {
  keptTask,
  MULTI_IMAGE_PATH,
  multiImageBody,
  StandInChannel,
  StandInTasks,
  startVideoApplication,
  TEXT_PATH,
  upstreamTask,
  VIDEO_HEADERS,
  type VideoApplication,
} from '../../test/support/video-application.js'
import type { ByteSink } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import { JsonBody } from '../core/json-body.js'
import { RequestContext } from '../core/request-context.js'
import type { TaskEvents } from '../dialects/task-response.js'
import type { VideoKind } from '../providers/contract.js'
import type { Task } from '../tasks/task.js'
import type { Tasks } from '../tasks/contract.js'
import type { VideoFields } from './video.dto.js'
import { forwardedBody, routedModel, videoTaskEvents } from './video.service.js'

const IDS = { externalId: '0123456789ab.order-77' }
const ID = '"external_task_id":"0123456789ab.order-77"'

const forwarded = (
  text: string,
  {
    kind = 'text2video',
    model = 'upstream-name',
    callbackUrl,
  }: { kind?: VideoKind; model?: string; callbackUrl?: string } = {},
): string => {
  const body = JsonBody.parse(Buffer.from(text)).as<VideoFields>(JSON.parse(text) as VideoFields)
  return Buffer.concat(
    forwardedBody(kind, body, model, callbackUrl === undefined ? IDS : { ...IDS, callbackUrl }),
  ).toString()
}

describe('What a create sends upstream', () => {
  it('is the body of the caller, byte for byte, but for what the gateway must change', () => {
    const text = `{ "seed" : 12345678901234567890,"cfg_scale":1.0,\t"model_name":"vidgen-v1-6", "prompt":"\\u00e9\\/é🛶",
      "later":{"b":1e2,"a":[ ]},"external_task_id" : "order-77" , "duration":5,"callback_url":"https:\\/\\/me.example","z":null }`
    expect(forwarded(text, { callbackUrl: 'https://gateway.example/vidgen/callbacks/t' })).toBe(
      text
        .replace('"vidgen-v1-6"', '"upstream-name"')
        .replace('"order-77"', '"0123456789ab.order-77"')
        .replace('"duration":5', '"duration":"5"')
        .replace('"https:\\/\\/me.example"', '"https://gateway.example/vidgen/callbacks/t"'),
    )
  })

  it('has no defaults that the caller left out', () => {
    expect(forwarded('{"prompt":"x"}')).toBe(`{"prompt":"x",${ID}}`)
    expect(forwarded('{"prompt":"x"}', { kind: 'multi-image2video' })).toBe(`{"prompt":"x",${ID}}`)
    expect(forwarded('{"prompt":"x","model_name":null,"duration":null}')).toBe(
      `{"prompt":"x","model_name":null,"duration":null,${ID}}`,
    )
  })

  it('never has the address of the caller', () => {
    expect(forwarded('{"callback_url":"https://me.example","prompt":"x"}')).toBe(`{"prompt":"x",${ID}}`)
    expect(forwarded('{"prompt":"x","callback_url":null}')).toBe(`{"prompt":"x",${ID}}`)
  })

  it('has the address of the gateway where there is one, whether the caller gave one or not', () => {
    const callbackUrl = 'https://gateway.example/c'
    const added = `"callback_url":"${callbackUrl}",${ID}`
    expect(forwarded('{"prompt":"x"}', { callbackUrl })).toBe(`{"prompt":"x",${added}}`)
  })

  it('keeps a duration in words, and puts one in numbers into words', () => {
    expect(forwarded('{"duration":"10"}')).toBe(`{"duration":"10",${ID}}`)
    expect(forwarded('{"duration":10.0}')).toBe(`{"duration":"10",${ID}}`)
  })

  it('keeps the spelling of a model name that is the same upstream', () => {
    expect(forwarded('{"model_name":"vidgen\\u002dv1"}', { model: 'vidgen-v1' })).toBe(
      `{"model_name":"vidgen\\u002dv1",${ID}}`,
    )
  })

  it('has the model of old clients under its present name, for text to video only', () => {
    expect(forwarded('{"model":"a","prompt":"x"}')).toBe(`{"prompt":"x","model_name":"upstream-name",${ID}}`)
    expect(forwarded('{"model":"a"}', { model: 'a' })).toBe(`{"model_name":"a",${ID}}`)
    expect(forwarded('{"model":"a","model_name":null}')).toBe(`{"model_name":"upstream-name",${ID}}`)
    expect(forwarded('{"model":"a","model_name":"b"}')).toBe(`{"model":"a","model_name":"upstream-name",${ID}}`)
    expect(forwarded('{"model":["a"]}', { kind: 'multi-image2video' })).toBe(`{"model":["a"],${ID}}`)
  })
})

describe('The model that decides about access and channel', () => {
  it.each([
    ['text2video', { model_name: 'a', model: 'b' }, 'a'],
    ['text2video', { model: 'b' }, 'b'],
    ['text2video', { model_name: null, model: 'b' }, 'b'],
    ['text2video', {}, 'vidgen-v1'],
    ['multi-image2video', { model_name: 'a' }, 'a'],
    ['multi-image2video', { model: 'b' }, 'vidgen-v1-6'],
    ['multi-image2video', {}, 'vidgen-v1-6'],
  ] as const)('of %s with %j is %s', (kind, fields, model) => {
    expect(routedModel(kind, fields)).toBe(model)
  })
})

/** Notes what comes; `ended` resolves with how it ended. */
class Notes implements ByteSink {
  text = ''
  ended: Promise<GatewayError | undefined>
  private settle!: (error?: GatewayError) => void

  constructor() {
    this.ended = new Promise((resolve) => {
      this.settle = resolve
    })
  }

  data(chunk: Buffer): void {
    this.text += chunk.toString()
  }

  end(): void {
    this.settle()
  }

  fail(error: GatewayError): void {
    this.settle(error)
  }
}

const task = keptTask({ object: '{"n":0}' })
const changed = (count: number, state: Task['state'] = 'processing'): Task => ({
  ...task,
  state,
  object: `{"n":${count}}`,
})

const frame = (count: number): string => `event: task\ndata: {"n":${count}}\n\n`

function begun(tasks: Tasks = new StandInTasks()): { events: TaskEvents; notes: Notes; call: RequestContext } {
  const call = new RequestContext('req_1', 'GET', '/vidgen/v1/videos/text2video/1/events', 0)
  const notes = new Notes()
  const events = videoTaskEvents(tasks, task, call)
  events.start(notes)
  return { events, notes, call }
}

describe('The event stream of a video task', () => {
  it('gives a reader who is behind the newest object only, and the last one in any case', async () => {
    const tasks = new StandInTasks()
    const { events, notes } = begun(tasks)
    events.pause()
    tasks.announce(changed(1))
    tasks.announce(changed(2))
    expect(notes.text).toBe(frame(0))
    events.resume()
    expect(notes.text).toBe(frame(0) + frame(2))
    events.pause()
    tasks.announce(changed(3, 'succeed'))
    expect(await notes.ended).toBeUndefined()
    expect(notes.text).toBe(frame(0) + frame(2) + frame(3))
  })

  it('is kept alive every 15 s of silence, unless the reader is behind', () => {
    jest.useFakeTimers()
    try {
      const tasks = new StandInTasks()
      const { events, notes } = begun(tasks)
      jest.advanceTimersByTime(14_999)
      expect(notes.text).toBe(frame(0))
      jest.advanceTimersByTime(1)
      expect(notes.text).toBe(`${frame(0)}: keep-alive\n\n`)
      jest.advanceTimersByTime(10_000)
      tasks.announce(changed(1))
      jest.advanceTimersByTime(14_999)
      expect(notes.text).toBe(`${frame(0)}: keep-alive\n\n${frame(1)}`)
      events.pause()
      jest.advanceTimersByTime(60_000)
      expect(notes.text).toBe(`${frame(0)}: keep-alive\n\n${frame(1)}`)
      events.cancel()
      expect(jest.getTimerCount()).toBe(0)
    } finally {
      jest.useRealTimers()
    }
  })

  it('says nothing more once the caller has left', () => {
    jest.useFakeTimers()
    try {
      const tasks = new StandInTasks()
      const { notes, call } = begun(tasks)
      call.disconnect.abort()
      tasks.announce(changed(1))
      expect(jest.getTimerCount()).toBe(0)
      expect(notes.text).toBe(frame(0))
    } finally {
      jest.useRealTimers()
    }
  })

  it('fails when the task cannot be followed, without saying why', async () => {
    class Broken extends StandInTasks {
      override watch(): Promise<void> {
        return Promise.reject(new Error('a secret of the store'))
      }
    }
    const { notes } = begun(new Broken())
    const error = await notes.ended
    expect(error?.kind).toBe('internal')
    expect(error?.message).not.toContain('secret')
  })
})

describe('The service of videos', () => {
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

    it('of a model that no channel serves, or under a key of another form, is refused before anything is recorded', async () => {
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

    it('of another caller is not found, and no upstream is asked', async () => {
      const channel = new StandInChannel('first')
      application = await startVideoApplication([channel])
      application.tasks.foreign.add('text2video/7')
      expect(await application.get(`${TEXT_PATH}/7`)).toMatchObject({ status: 404, body: { code: 1203 } })
      expect(channel.reads).toEqual([])
    })

    it.each(['%2E%2E', 'a%2F..%2Fb', 'x'.repeat(257), 'a%00'])(
      'with an id that would lead elsewhere is not found, and no upstream is asked: %s',
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
      'is not shown when it turns out to be the %s task of another caller',
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
})
