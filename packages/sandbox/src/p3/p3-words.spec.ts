import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import type { Simulator } from '../server/simulator.js'
import { startP3Simulator } from './p3.simulator.js'

const STREAM = { stream: true }
/** Section 3 of the notes. */
const CODES = [
  ...[1000, 1001, 1002, 1004, 1008, 1013, 1024, 1026, 1027, 1033, 1039, 1041, 1042, 1043, 1044],
  ...[2013, 2037, 2038, 2039, 2042, 2045, 2048, 2049, 2054, 2056, 20132],
]
let simulator: Simulator

beforeAll(async () => {
  simulator = await startP3Simulator()
})
afterEach(() => {
  simulator.reset()
})
afterAll(async () => {
  await simulator.close()
})

function post(text: string, change: object = {}, signal?: AbortSignal): Promise<Response> {
  return fetch(`${simulator.url}/v1/t2a_v2`, {
    method: 'POST',
    headers: { authorization: 'Bearer any', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'speech-02-hd', text, voice_setting: { voice_id: 'Calm_Woman' }, ...change }),
    ...(signal === undefined ? {} : { signal }),
  })
}

/** What arrives until the stream ends or breaks, and which of the two. */
async function readAll(response: Response): Promise<{ text: string; broken: boolean }> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes as Uint8Array, { stream: true })
    return { text, broken: false }
  } catch {
    return { text, broken: true }
  }
}

const refusal = (code: number): object => ({
  data: null,
  trace_id: expect.any(String),
  base_resp: { status_code: code, status_msg: expect.stringMatching(/\w/) },
})

describe('a refusal on wish', () => {
  it.each(CODES)('#%i is HTTP 200 and JSON, streamed or not', async (code) => {
    for (const change of [STREAM, {}]) {
      const response = await post(`#${code} please`, change)
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
      expect(await response.json()).toEqual(refusal(code))
    }
  })

  it.each([
    ['#jsonerr', 1000],
    ['#jsonerr=1026', 1026],
  ])('%s is JSON although events were asked for', async (text, code) => {
    const response = await post(text, STREAM)
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(await response.json()).toEqual(refusal(code))
  })

  it('#errfirst is an event stream whose first chunk refuses', async () => {
    const response = await post('#errfirst=1002', STREAM)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const { text } = await readAll(response)
    expect(text).toMatch(/^data: \{[^\n]*\}\n\n$/)
    expect(JSON.parse(text.slice(6))).toEqual(refusal(1002))
  })

  it('#errmid is an event stream that refuses after two pieces, and in JSON the refusal alone', async () => {
    const { text, broken } = await readAll(await post('#errmid=1027', STREAM))
    expect(broken).toBe(false)
    const frames = text.split('\n\n')
    expect(frames).toHaveLength(4)
    for (const frame of frames.slice(0, 2)) expect(frame).toMatch(/^data: \{"data":\{"audio":"\w+","status":1/)
    expect(JSON.parse(frames[2]?.slice(6) ?? '')).toEqual(refusal(1027))
    expect(await (await post('#errmid')).json()).toEqual(refusal(1000))
  })
})

describe('a failure of the host on wish', () => {
  it.each([500, 503, 529])('#%i is that status with HTML', async (status) => {
    const response = await post(`#${status}`, STREAM)
    expect([response.status, response.headers.get('content-type')]).toEqual([status, 'text/html'])
    expect(await response.text()).toMatch(/^<html>/)
  })

  it('#429 is that status with retry-after', async () => {
    const response = await post('#429')
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '2'])
    expect(await response.json()).toEqual(refusal(1002))
  })

  it.each([
    ['#400', 400, 2013],
    ['#401', 401, 1004],
    ['#402', 402, 1008],
    ['#quota', 200, 1008],
  ])('%s is %i with %i', async (text, status, code) => {
    const response = await post(text)
    expect(response.status).toBe(status)
    expect(await response.json()).toEqual(refusal(code))
  })
})

describe('a broken answer on wish', () => {
  it('#cut: events end well but without the last chunk', async () => {
    const { text, broken } = await readAll(await post('#cut', STREAM))
    expect(broken).toBe(false)
    expect(text).toMatch(/^(data: \{"data":\{"audio":"\w+","status":1[^\n]*\}\n\n)+$/)
  })

  it('#cut: JSON is destroyed midway', async () => {
    const { text, broken } = await readAll(await post('#cut'))
    expect(broken).toBe(true)
    expect(text).toMatch(/^\{"data":\{"audio":"[0-9a-f]+$/)
  })

  it('#reset: events are destroyed midway', async () => {
    const { text, broken } = await readAll(await post('#reset', STREAM))
    expect(broken).toBe(true)
    expect(text).toMatch(/^data: \{/)
  })

  it('#reset: JSON is never begun', async () => {
    await expect(post('#reset')).rejects.toThrow('fetch failed')
  })

  it.each([STREAM, {}])('#stall: some of it, then silence: %j', async (change) => {
    const stop = new AbortController()
    const response = await post('#stall', change, stop.signal)
    const reader = response.body?.getReader()
    const first = (await reader?.read())?.value as Uint8Array | undefined
    expect(first?.length).toBeGreaterThan(100)
    expect(simulator.activeRequests).toBe(1)
    const aborted = simulator.nextAbort()
    stop.abort()
    await aborted
  })

  it('#hang: the request is read and nothing comes', async () => {
    const stop = new AbortController()
    const received = simulator.nextRequest()
    const failing = expect(post('#hang', {}, stop.signal)).rejects.toThrow('aborted')
    expect((await received).answeredStatus).toBeUndefined()
    const aborted = simulator.nextAbort()
    stop.abort()
    await failing
    expect((await aborted).answeredStatus).toBeUndefined()
  })

  it.each([
    ['#html', 'text/html; charset=utf-8', /^<!doctype html>/],
    ['#malformed', 'application/json', /^\{[^}]*$/],
    ['#empty', 'application/json', /^$/],
  ])('%s is %s of no use', async (text, type, body) => {
    const response = await post(text, STREAM)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, type])
    expect(await response.text()).toMatch(body)
  })

  it('#json: the whole audio as JSON although events were asked for', async () => {
    const response = await post('#json', STREAM)
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(await response.json()).toMatchObject({
      data: { audio: expect.stringMatching(/^[0-9a-f]+$/), status: 2 },
      base_resp: { status_code: 0 },
    })
  })

  it('#slow: the whole answer, piece by piece', async () => {
    const started = performance.now()
    const { text } = await readAll(await post('#slow', STREAM))
    expect(performance.now() - started).toBeGreaterThan(100)
    expect(text).toMatch(/"status":2/)
  })

  it('stands wherever a queued fault says so', async () => {
    simulator.queueFault('errorframe')
    expect(await (await post('hello')).json()).toEqual(refusal(1000))
    simulator.queueFault('503')
    expect((await post('hello')).status).toBe(503)
  })
})

describe('a relay that talks too much', () => {
  it('is recorded', async () => {
    await fetch(`${simulator.url}/v1/t2a_v2`, {
      method: 'POST',
      headers: { authorization: 'Bearer any', 'x-forwarded-for': '10.0.0.1', 'x-api-key': 'k' },
      body: '{}',
    })
    expect(simulator.violations).toEqual(['forwarded header: x-forwarded-for', 'forwarded header: x-api-key'])
  })
})
