import { afterAll, afterEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../support/eventually.js'
import { startCall, timeAbort } from '../support/failing-calls.js'
import { TEST_KEY } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import { withLab } from '../support/provider-gateways.js'
import {
  askForImage,
  imagePath,
  IMGGEN_SECRET,
  type ImggenGateway,
  type ImggenGatewayOptions,
  startImggenGateway,
} from '../support/task-gateways.js'

let lab: ImggenGateway
shareLab(async () => (lab = await startImggenGateway()))
afterEach(() => {
  expect(lab.simulator.violations).toEqual([])
})
afterAll(() => {
  expect(lab.gateway.logText()).not.toContain(IMGGEN_SECRET)
})

/** A lab of its own for a test that needs another configuration. */
const inLab = (options: ImggenGatewayOptions, run: (lab: ImggenGateway) => Promise<void>): Promise<void> =>
  withLab(startImggenGateway(options), async (lab) => {
    await run(lab)
    expect([...lab.simulator.violations, ...lab.second.violations]).toEqual([])
    expect(lab.gateway.logText()).not.toContain(IMGGEN_SECRET)
  })

/** Specification: a finished four-image task carries these. */
const NINE_BUTTONS = [
  ...[1, 2, 3, 4].map((index) => `upsample::${index}`),
  'reroll::0',
  ...[1, 2, 3, 4].map((index) => `variation::${index}`),
]

const UNKNOWN = { code: 1203, message: 'There is no such task.', description: 'There is no such task.' }

describe.each(['N', 'T', 'A'] as const)('A task of the variant %s', (variant) => {
  it('is shown as it is at every step', () =>
    inLab({ simulator: { variant } }, async ({ gateway, simulator }) => {
      const id = simulator.submit('a red kite', { state: 'mine' })
      const shown: unknown[] = []
      for (let step = 0; step < 7; step++) {
        const { status, headers, body } = await askForImage(gateway, imagePath(id))
        expect([status, headers.get('content-type')]).toEqual([200, 'application/json'])
        expect(body).toMatchObject({ id, action: 'IMAGINE', prompt: 'a red kite', state: 'mine', maskBase64: '' })
        for (const time of ['submitTime', 'startTime', 'finishTime']) expect(Number.isInteger(body[time])).toBe(true)
        shown.push(`${String(body['status'])} ${String(body['progress'])}`)
        simulator.advance(id)
      }
      expect(shown).toEqual([
        'NOT_START ',
        'SUBMITTED 0%',
        'IN_PROGRESS 0%',
        'IN_PROGRESS 31%',
        'IN_PROGRESS 62%',
        'IN_PROGRESS 93%',
        'SUCCESS 100%',
      ])
    }))

  it('that has failed says why', () =>
    inLab({ simulator: { variant } }, async ({ gateway, simulator }) => {
      const id = simulator.submit('a kite #fail')
      simulator.finish(id)
      const { body } = await askForImage(gateway, imagePath(id))
      expect(body).toMatchObject({ status: 'FAILURE', progress: '', imageUrl: '', buttons: [] })
      expect(body['failReason']).toMatch(/\w/)
    }))

  it.each(['empty', 'null'] as const)('that is unknown (%s) is 404 for every question', (unknown) =>
    inLab({ simulator: { variant, unknown } }, async ({ gateway, simulator }) => {
      for (const question of ['fetch', 'image-seed', 'events']) {
        const { status, body, headers } = await askForImage(gateway, imagePath('1750000000000999', question))
        expect(status).toBe(404)
        expect(body).toEqual({ ...UNKNOWN, request_id: headers.get('x-request-id') })
      }
      expect(simulator.requests).toHaveLength(3)
    }),
  )

  it.each(['result', 'task'] as const)('has its seed among its properties (the upstream answers with the %s)', (seed) =>
    inLab({ simulator: { variant, seed } }, async ({ gateway, simulator }) => {
      const id = simulator.submit('a kite')
      simulator.finish(id)
      const task = (await askForImage(gateway, imagePath(id))).body
      const { status, body } = await askForImage(gateway, imagePath(id, 'image-seed'))
      expect(status).toBe(200)
      const properties = task['properties'] as object
      expect(body).toEqual({ ...task, properties: { ...properties, seed: expect.stringMatching(/^\d+$/) } })
    }),
  )
})

describe('A finished task', () => {
  it('carries its nine buttons, its picture, and what no specification names', async () => {
    const { gateway, simulator } = lab
    const id = simulator.submit('a kite')
    simulator.finish(id)
    const { body, text } = await askForImage(gateway, imagePath(id))
    const names = (body['buttons'] as { customId: string }[]).map(
      ({ customId }) => /^MJ::JOB::(\w+::\d)::[0-9a-f-]{36}(?:::SOLO)?$/.exec(customId)?.[1],
    )
    expect(names).toEqual(NINE_BUTTONS)
    expect(body['imageUrl']).toContain(simulator.url)
    expect(text).toContain('"shardId":9223372036854775807')
  })
})

describe('A seed', () => {
  it('of a task that has not succeeded is refused in the upstream’s words', async () => {
    const { gateway, simulator } = lab
    const { status, body } = await askForImage(gateway, imagePath(simulator.submit('a kite'), 'image-seed'))
    expect(status).toBe(400)
    expect(body).toMatchObject({ code: 1201, description: 'The task has no message hash' })
  })

  it('may take longer than other answers of its channel', () =>
    inLab({ channel: { timeouts: { firstByteMs: 30 } } }, async ({ gateway, simulator }) => {
      const id = simulator.submit('a kite')
      simulator.finish(id)
      // Node's own timers of this length are exact to a second.
      simulator.queueFault({ kind: 'delay', ms: 1500 })
      expect((await askForImage(gateway, imagePath(id, 'image-seed'))).status).toBe(200)
      simulator.queueFault('hang')
      expect(await askForImage(gateway, imagePath(id))).toMatchObject({ status: 504, body: { code: 5002 } })
    }))
})

describe('Several channels', () => {
  it('are asked in turn, and the one that knew a task is asked first from then on', () =>
    inLab({ withSecond: true }, async ({ gateway, simulator, second }) => {
      const id = second.submit('a kite')
      second.finish(id)
      for (const question of ['fetch', 'fetch', 'image-seed']) {
        expect((await askForImage(gateway, imagePath(id, question))).status).toBe(200)
      }
      expect(simulator.requests).toHaveLength(1)
      expect(await askForImage(gateway, imagePath('1'))).toMatchObject({ status: 404, body: UNKNOWN })
      expect([simulator.requests.length, second.requests.length]).toEqual([2, 5])
    }))

  it.each([
    ['500', 502, 5000],
    ['429', 429, 1302],
    ['reset', 502, 5000],
    ['401', 502, 5000],
    ['quota', 502, 5000],
  ] as const)('of which one fails with %s and the other knows nothing: the failure counts', (fault, status, code) =>
    inLab({ withSecond: true }, async ({ gateway, simulator, second }) => {
      simulator.queueFault(fault)
      expect(await askForImage(gateway, imagePath('1'))).toMatchObject({ status, body: { code } })
      expect(second.requests).toHaveLength(1)
    }),
  )

  it('of which one fails and the other knows the task: the task counts', () =>
    inLab({ withSecond: true }, async ({ gateway, simulator, second }) => {
      simulator.queueFault('500')
      expect((await askForImage(gateway, imagePath(second.submit('a kite')))).status).toBe(200)
    }))
})

describe('The events of a task', () => {
  const OFTEN = { tasks: { pollIntervalMs: 5 } }
  const ONCE = { tasks: { pollIntervalMs: 600_000 } }

  interface TaskStream {
    readonly response: Response
    /** The next frame; undefined at the end. */
    readonly next: () => Promise<string | undefined>
    readonly leave: () => void
  }

  async function follow({ gateway }: ImggenGateway, id: string, key = TEST_KEY): Promise<TaskStream> {
    const leaving = new AbortController()
    const headers = { authorization: `Bearer ${key}` }
    const response = await fetch(gateway.url + imagePath(id, 'events'), { headers, signal: leaving.signal })
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    const decoder = new TextDecoder()
    let text = ''
    return {
      response,
      next: async () => {
        for (;;) {
          const end = text.indexOf('\n\n')
          if (end !== -1) {
            const frame = text.slice(0, end)
            text = text.slice(end + 2)
            return frame
          }
          const { done, value } = await reader.read()
          if (done) return text === '' ? undefined : text
          text += decoder.decode(value, { stream: true })
        }
      },
      leave: () => {
        leaving.abort()
      },
    }
  }

  /** The task in a frame. */
  function taskIn(frame: string | undefined): Record<string, unknown> {
    const [, data] = /^event: task\ndata: (.*)$/.exec(frame ?? '') ?? []
    if (data === undefined) throw new Error(`this is no event of a task: ${frame}`)
    return JSON.parse(data) as Record<string, unknown>
  }

  it('are the task object at each change, up to its end', () =>
    inLab({ sections: OFTEN }, async (lab) => {
      const id = lab.simulator.submit('a kite')
      const stream = await follow(lab, id)
      expect(stream.response.status).toBe(200)
      expect(stream.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
      const shown: unknown[] = []
      for (let frame = await stream.next(); frame !== undefined; frame = await stream.next()) {
        const { status, progress, imageUrl, properties } = taskIn(frame)
        expect(properties).toMatchObject({ nonce: id })
        shown.push(`${String(status)} ${String(progress)} ${imageUrl === '' ? 'nothing' : 'a picture'}`)
        lab.simulator.advance(id)
      }
      expect(shown).toEqual([
        'NOT_START  nothing',
        'SUBMITTED 0% nothing',
        'IN_PROGRESS 0% nothing',
        'IN_PROGRESS 31% a picture',
        'IN_PROGRESS 62% a picture',
        'IN_PROGRESS 93% a picture',
        'SUCCESS 100% a picture',
      ])
    }))

  it('of one that has ended are that one', () =>
    inLab({ sections: ONCE }, async (lab) => {
      const id = lab.simulator.submit('a kite #fail')
      lab.simulator.finish(id)
      const stream = await follow(lab, id)
      expect(taskIn(await stream.next())).toMatchObject({ status: 'FAILURE' })
      expect(await stream.next()).toBeUndefined()
      expect(lab.simulator.requests).toHaveLength(1)
    }))

  it('begin with a proper error when the first look fails', () =>
    inLab({ sections: OFTEN }, async ({ gateway, simulator }) => {
      expect(await askForImage(gateway, imagePath('1', 'events'))).toMatchObject({ status: 404, body: { code: 1203 } })
      simulator.queueFault('500')
      expect(await askForImage(gateway, imagePath('1', 'events'))).toMatchObject({ status: 502, body: { code: 5000 } })
      expect(simulator.requests).toHaveLength(2)
    }))

  it('are shared by all who follow: the upstream is asked once', () =>
    inLab({ sections: ONCE, keys: ['a', 'b'].map((id) => ({ id, key: `key-of-${id}-123456` })) }, async (lab) => {
      const id = lab.simulator.submit('a kite')
      lab.simulator.queueFault({ kind: 'delay', ms: 100 })
      const streams = await Promise.all(['a', 'b', 'b'].map((key) => follow(lab, id, `key-of-${key}-123456`)))
      const late = await follow(lab, id, 'key-of-a-123456')
      for (const { next, leave } of [...streams, late]) {
        expect(taskIn(await next())).toMatchObject({ status: 'NOT_START' })
        leave()
      }
      expect(lab.simulator.requests).toHaveLength(1)
    }))

  it('are not shared with a caller’s own key that the upstream does not know', () =>
    inLab({ sections: ONCE, channel: { credentials: 'caller' } }, async (lab) => {
      const id = lab.simulator.submit('a kite')
      const stream = await follow(lab, id, IMGGEN_SECRET)
      expect(taskIn(await stream.next())).toMatchObject({ id })
      expect(await askForImage(lab.gateway, imagePath(id, 'events'), 'theirs')).toMatchObject({ status: 401 })
      stream.leave()
    }))

  it('end the asking when the last who follows has left', () =>
    inLab({ sections: OFTEN }, async (lab) => {
      const { gateway, simulator } = lab
      const id = simulator.submit('a kite #stuck')
      const [first, second] = [await follow(lab, id), await follow(lab, id)]
      first.leave()
      await gateway.logLine(first.response.headers.get('x-request-id') ?? '')
      const before = simulator.requests.length
      await eventually(() => simulator.requests.length > before + 2)
      simulator.queueFault('hang')
      const aborted = simulator.nextAbort()
      await eventually(() => simulator.activeRequests === 1)
      second.leave()
      await aborted
      const line = await gateway.logLine(second.response.headers.get('x-request-id') ?? '')
      expect(line).toMatchObject({ status: 499 })
      const count = simulator.requests.length
      for (let other = 0; other < 20; other++) await askForImage(gateway, imagePath('1'))
      expect(simulator.requests).toHaveLength(count + 20)
    }))

  it('outlive a failure or two, and end with one error when it goes on', () =>
    inLab({ sections: OFTEN }, async (lab) => {
      const { simulator } = lab
      const id = simulator.submit('a kite')
      const stream = await follow(lab, id)
      expect(taskIn(await stream.next())).toMatchObject({ status: 'NOT_START' })
      for (const fault of ['500', 'malformed'] as const) simulator.queueFault(fault)
      const before = simulator.requests.length
      await eventually(() => simulator.requests.length > before + 2)
      simulator.advance(id)
      expect(taskIn(await stream.next())).toMatchObject({ status: 'SUBMITTED' })
      simulator.forget(id)
      const error = (await stream.next()) ?? ''
      expect(error).toMatch(/^data: \{"code":1203,.*"description":"There is no such task."\}$/)
      expect(await stream.next()).toBeUndefined()
    }))

  it('end after the age that a task may have', () =>
    inLab({ sections: { tasks: { pollIntervalMs: 5, maxAgeMs: 60 } } }, async (lab) => {
      const stream = await follow(lab, lab.simulator.submit('a kite #stuck'))
      expect(taskIn(await stream.next())).toMatchObject({ status: 'NOT_START' })
      expect(await stream.next()).toBeUndefined()
      const count = lab.simulator.requests.length
      for (let other = 0; other < 20; other++) await askForImage(lab.gateway, imagePath('1'))
      expect(lab.simulator.requests).toHaveLength(count + 20)
    }))
})

describe('An upstream’s failure', () => {
  it.each([
    ['html', 502, 5000],
    ['malformed', 502, 5000],
    ['cut', 502, 5000],
    ['cleancut', 502, 5000],
    ['errorframe', 502, 5000],
    ['500', 502, 5000],
    ['503', 502, 5000],
    ['402', 502, 5000],
    ['403', 502, 5000],
    ['400', 400, 1201],
    ['404', 404, 1203],
    ['empty', 404, 1203],
  ] as const)('%s is %i with the code %i', async (fault, status, code) => {
    const { gateway, simulator } = lab
    const id = simulator.submit('a kite')
    simulator.queueFault(fault)
    const answer = await askForImage(gateway, imagePath(id))
    expect(answer).toMatchObject({ status, body: { code, description: answer.body['message'] } })
    expect(Object.keys(answer.body).sort()).toEqual(['code', 'description', 'message', 'request_id'])
  })

  it('to accept the channel’s secret is never shown as the caller’s', () =>
    inLab({ channel: { credentials: `${IMGGEN_SECRET}-old` } }, async ({ gateway, simulator }) => {
      const { status, headers, body } = await askForImage(gateway, imagePath(simulator.submit('a kite')))
      expect([status, body['code'], headers.get('x-should-retry')]).toEqual([502, 5000, 'false'])
    }))

  it('to answer does not outlive its caller', async () => {
    const { gateway, simulator } = lab
    simulator.queueFault('hang')
    await timeAbort(simulator, () => startCall(gateway, { method: 'GET', path: imagePath('1') }))
    expect(simulator.lastRequest?.answeredStatus).toBeUndefined()
  })
})

describe('A request', () => {
  it.each(['a.b', 'a%20b', 'a%2Fb', '..a', 'a'.repeat(65), 'é', '%25'])('for the task %s is refused', async (id) => {
    const { gateway, simulator } = lab
    for (const question of ['fetch', 'image-seed', 'events']) {
      const { status, body } = await askForImage(gateway, imagePath(id, question))
      expect(status).toBe(400)
      expect(body).toMatchObject({ code: 1201, description: expect.stringContaining("'id'") })
    }
    expect(simulator.requests).toEqual([])
  })

  it.each(['a', 'a'.repeat(64), 'A-b_9'])('may be for the task %s', async (id) => {
    const { gateway, simulator } = lab
    simulator.submit('a kite', { id })
    expect(await askForImage(gateway, imagePath(id))).toMatchObject({ status: 200, body: { id } })
  })

  it('needs a key', async () => {
    const { gateway, simulator } = lab
    expect(await askForImage(gateway, imagePath('a.b'), 'wrong')).toMatchObject({ status: 401, body: { code: 1000 } })
    const missing = await fetch(gateway.url + imagePath('1'))
    expect([missing.status, await missing.json()]).toMatchObject([401, { code: 1001, description: expect.any(String) }])
    expect(simulator.requests).toEqual([])
  })

  it('by another method is 405, and to another path 404, in the dialect of images', async () => {
    const { gateway } = lab
    const headers = { authorization: `Bearer ${TEST_KEY}` }
    const posted = await fetch(gateway.url + imagePath('1'), { method: 'POST', headers })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, expect.stringContaining('GET')])
    expect(await posted.json()).toMatchObject({ code: 1202, description: expect.any(String) })
    const elsewhere = await askForImage(gateway, '/imggen/task/1')
    expect(elsewhere).toMatchObject({ status: 404, body: { code: 1203, description: expect.any(String) } })
  })

  it('with a key of the caller’s own is the upstream’s to judge', () =>
    inLab({ channel: { credentials: 'caller' } }, async ({ gateway, simulator }) => {
      const id = simulator.submit('a kite')
      expect((await askForImage(gateway, imagePath(id), IMGGEN_SECRET)).status).toBe(200)
      expect(await askForImage(gateway, imagePath(id), 'theirs')).toMatchObject({ status: 401, body: { code: 1000 } })
      // A key of the gateway's own is not passed on.
      expect(await askForImage(gateway, imagePath(id))).toMatchObject({ status: 404 })
      expect(simulator.requests).toHaveLength(2)
    }))
})
