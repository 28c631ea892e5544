import { describe, expect, it } from '@jest/globals'
import { eventually } from '../support/eventually.js'
import { TEST_KEY } from '../support/gateway.js'
import {
  askForImage,
  imagePath,
  IMGGEN_SECRET,
  type ImggenGateway,
  type ImggenGatewayOptions,
  startImggenGateway,
} from '../support/imggen-gateway.js'
import { withLab } from '../support/provider-gateways.js'

const OFTEN = { tasks: { pollIntervalMs: 5 } }
const ONCE = { tasks: { pollIntervalMs: 600_000 } }

const inLab = (options: ImggenGatewayOptions, run: (lab: ImggenGateway) => Promise<void>): Promise<void> =>
  withLab(startImggenGateway(options), async (lab) => {
    await run(lab)
    expect(lab.simulator.violations).toEqual([])
  })

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

describe('The events of a task', () => {
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

  it('are not shared with a key of somebody’s own that its upstream does not know', () =>
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
