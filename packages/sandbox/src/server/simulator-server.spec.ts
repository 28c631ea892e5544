import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '../p1/p1.simulator.js'
import type { FaultName } from './faults.js'
import { TranscriptTally } from './served-usage.js'
import { type Simulator, startSimulator } from './simulator-server.js'

describe('simulator server', () => {
  let simulator: Simulator

  beforeEach(async () => {
    simulator = await startP1Simulator({ apiKey: 'sk-test' })
  })
  afterEach(async () => {
    await simulator.close()
  })

  function chat(content: string, extra: object = {}, signal?: AbortSignal): Promise<Response> {
    return fetch(`${simulator.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content }], ...extra }),
      ...(signal === undefined ? {} : { signal }),
    })
  }

  describe('what a simulator records', () => {
    it('keeps method, path, query, headers and the exact body of a request', async () => {
      const arriving = simulator.nextRequest()
      await fetch(`${simulator.url}/v1/nowhere?a=1`, {
        method: 'POST',
        headers: { 'X-Stainless-Lang': 'js', cookie: 'a=b' },
        body: '{"seed":12345678901234567}',
      })
      const request = await arriving
      expect(request).toMatchObject({ method: 'POST', path: '/v1/nowhere', receivedBytes: 26, bodyTruncated: false })
      expect(request.query.get('a')).toBe('1')
      expect(request.body.toString()).toBe('{"seed":12345678901234567}')
      expect(request.violations).toEqual(['forwarded header: x-stainless-lang', 'forwarded header: cookie'])
      expect(await request.closed).toBe('finished')
    })

    it('keeps the parts of a form, and their bytes while the body is kept', async () => {
      const form = new FormData()
      form.append('model', 'whisper-1')
      form.append('file', new File(['RIFF and so on'], 'a.wav', { type: 'audio/wav' }))
      const headers = { authorization: 'Bearer sk-test' }
      await fetch(`${simulator.url}/v1/audio/transcriptions`, { method: 'POST', headers, body: form })
      const [model, file] = simulator.lastRequest?.parts ?? []
      expect(model).toMatchObject({ name: 'model', value: 'whisper-1', filename: undefined })
      expect(file).toMatchObject({ name: 'file', value: undefined, filename: 'a.wav', contentType: 'audio/wav' })
      expect(file?.rawDisposition).toBe('form-data; name="file"; filename="a.wav"')
      expect(file === undefined ? '' : simulator.lastRequest?.partBytes(file)?.toString()).toBe('RIFF and so on')
    })

    it('keeps the first mebibyte of a large body and counts the rest', async () => {
      const arriving = simulator.nextRequest()
      await chat('x'.repeat(3 * 1024 * 1024))
      const request = await arriving
      expect(request.body.length).toBe(1024 * 1024)
      expect(request.receivedBytes).toBeGreaterThan(3 * 1024 * 1024)
      expect(request.bodyTruncated).toBe(true)
    })

    it('forgets old bodies when they pass 32 MiB in all', async () => {
      const text = `#chunks=1 ${'x'.repeat(1024 * 1024)}`
      for (let index = 0; index < 40; index += 1) await (await chat(text)).arrayBuffer()
      const held = simulator.requests.filter((request) => request.body.length > 0)
      expect(held.length).toBe(32)
      expect(simulator.requests.length).toBe(40)
    })

    it('tells when the caller left a stream, and how soon', async () => {
      const controller = new AbortController()
      const aborted = simulator.nextAbort()
      const response = await chat('#chunks=10000000', { stream: true }, controller.signal)
      const reader = response.body?.getReader()
      await reader?.read()
      const leftAtMs = performance.now()
      controller.abort()
      const request = await aborted
      expect(await request.closed).toBe('aborted')
      expect((request.closedAtMs ?? Infinity) - leftAtMs).toBeLessThan(1000)
      await simulator.idle()
      expect(simulator.activeRequests).toBe(0)
    })

    it('reports an upload that was broken off as aborted', async () => {
      const arriving = simulator.nextRequest()
      const upload = httpRequest(`${simulator.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: 'Bearer sk-test', 'content-length': 1000 },
      })
      upload.on('error', () => undefined)
      const arrived = new Promise((resolve) => simulator.once('request', resolve))
      upload.write('{"half":')
      await arrived
      upload.destroy()
      const request = await arriving
      expect(await request.closed).toBe('aborted')
      expect(request.receivedBytes).toBeLessThan(1000)
      await simulator.idle()
      expect(simulator.violations).toEqual([])
    })
  })

  describe('the faults a caller can ask for', () => {
    const statuses: readonly [FaultName, number, string][] = [
      ['400', 400, 'invalid_request_error'],
      ['401', 401, 'invalid_request_error'],
      ['402', 402, 'billing_error'],
      ['403', 403, 'invalid_request_error'],
      ['404', 404, 'invalid_request_error'],
      ['413', 413, 'server_error'],
      ['422', 422, 'invalid_request_error'],
      ['429', 429, 'requests'],
      ['quota', 429, 'insufficient_quota'],
      ['500', 500, 'server_error'],
      ['503', 503, 'server_error'],
      ['529', 529, 'server_error'],
    ]

    it.each(statuses)('#%s in the text answers status %i of type %s', async (name, status, type) => {
      const response = await chat(`#${name} please`)
      expect(response.status).toBe(status)
      expect(await response.json()).toMatchObject({ error: { type } })
      expect(response.headers.get('retry-after')).toBe(name === '429' ? '2' : null)
      expect(response.headers.has('x-ratelimit-limit-requests')).toBe(status !== 401)
    })

    it('a queued fault strikes one request and no more', async () => {
      simulator.queueFault('500')
      expect((await chat('hello')).status).toBe(500)
      expect((await chat('hello')).status).toBe(200)
    })

    it('a fault queued for one method waits until that comes', async () => {
      simulator.queueFault('500', 'POST')
      expect((await fetch(`${simulator.url}/v1/models`)).status).not.toBe(500)
      expect((await chat('hello')).status).toBe(500)
    })

    it('a queued answer is sent as given', async () => {
      simulator.queueFault({ kind: 'status', status: 418, headers: { 'x-odd': '1' }, body: 'teapot' })
      const response = await chat('hello')
      expect([response.status, response.headers.get('x-odd'), await response.text()]).toEqual([418, '1', 'teapot'])
    })

    it('a delay comes before the normal answer', async () => {
      simulator.queueFault({ kind: 'delay', ms: 60 })
      const startedAtMs = performance.now()
      expect((await chat('hello')).status).toBe(200)
      expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(55)
    })

    it('html, malformed and empty answers keep status 200', async () => {
      expect((await chat('#html')).headers.get('content-type')).toContain('text/html')
      await expect((await chat('#malformed')).json()).rejects.toThrow(/in JSON/)
      expect(await (await chat('#empty')).text()).toBe('')
    })

    it('a reset is seen before any byte of the answer', async () => {
      await expect(chat('#reset')).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
      expect(await simulator.lastRequest?.closed).toBe('broken')
    })

    it('a hanging request ends when the caller leaves', async () => {
      const controller = new AbortController()
      const arriving = simulator.nextRequest()
      const pending = chat('#hang', {}, controller.signal)
      const request = await arriving
      controller.abort()
      await expect(pending).rejects.toMatchObject({ name: 'AbortError' })
      expect(await request.closed).toBe('aborted')
    })

    it.each([{ stream: true }, { stream: false }])('a cut destroys the connection in the middle, %p', async (extra) => {
      const response = await chat('#cut one two three four', extra)
      expect(response.status).toBe(200)
      await expect(response.text()).rejects.toThrow('terminated')
      expect(await simulator.lastRequest?.closed).toBe('broken')
    })

    it('a clean cut ends the stream properly without its terminator', async () => {
      const text = await (await chat('#cleancut one two three', { stream: true })).text()
      expect(text).toContain('"role":"assistant"')
      expect(text.endsWith('\n\n')).toBe(true)
      expect(text).not.toContain('[DONE]')
      expect(text).not.toContain('"finish_reason":"stop"')
    })

    it('a clean cut of a plain answer leaves half a JSON text', async () => {
      await expect((await chat('#cleancut')).json()).rejects.toThrow(/in JSON/)
    })

    it('a stall sends the first half and then nothing, on an open connection', async () => {
      const controller = new AbortController()
      const response = await chat('#stall one two three', { stream: true }, controller.signal)
      const reader = response.body?.getReader()
      expect((await reader?.read())?.done).toBe(false)
      expect(simulator.activeRequests).toBe(1)
      controller.abort()
      expect(await simulator.lastRequest?.closed).toBe('aborted')
    })

    it('an error frame follows two good frames', async () => {
      const text = await (await chat('#errorframe one two three', { stream: true })).text()
      const frames = text.trimEnd().split('\n\n')
      expect(frames).toHaveLength(4)
      expect(JSON.parse(frames[2]?.slice(6) ?? '')).toMatchObject({
        error: { type: 'server_error', param: null, code: null },
      })
      expect(frames[3]).toBe('data: [DONE]')
      const plain = await chat('#errorframe')
      expect(plain.status).toBe(500)
      expect(await plain.json()).toMatchObject({ error: { type: 'server_error' } })
    })

    it('a slow answer arrives in pieces 50 ms apart', async () => {
      const startedAtMs = performance.now()
      await (await chat('#slow one two', { stream: true })).text()
      expect(performance.now() - startedAtMs).toBeGreaterThan(200)
    })
  })

  it('closing destroys open streams and idle connections', async () => {
    const extra = await startP1Simulator()
    const response = await fetch(`${extra.url}/v1/models`, { headers: { authorization: 'Bearer any' } })
    await response.arrayBuffer()
    expect(extra.openConnections).toBe(1)
    await extra.close()
    expect(extra.openConnections).toBe(0)
  })
})

describe('a streamed answer', () => {
  let simulator: Simulator | undefined

  afterEach(async () => {
    await simulator?.close()
  })

  const PIECE = Buffer.alloc(1024 * 1024)

  /** Streams mebibytes for ever and reports how many were made, and when the making was given up. */
  async function startEndless(): Promise<{
    made: () => number
    givenUp: Promise<void>
    open: () => Promise<IncomingMessage>
  }> {
    let count = 0
    let giveUp: () => void = () => undefined
    const givenUp = new Promise<void>((resolve) => (giveUp = resolve))
    function* endless(): Generator<Buffer> {
      try {
        for (;;) {
          count += 1
          yield PIECE
        }
      } finally {
        giveUp()
      }
    }
    const server = await startSimulator((exchange) => exchange.stream(200, {}, endless()))
    simulator = server
    const open = async (): Promise<IncomingMessage> => {
      const request = httpRequest(server.url).end()
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      return response
    }
    return { made: () => count, givenUp, open }
  }

  it('makes no more pieces than the network takes while the caller does not read', async () => {
    const { made, open } = await startEndless()
    const response = await open()
    response.pause()
    for (let turn = 0; turn < 3000; turn += 1) await nextTurn()
    expect(made()).toBeLessThan(50)
    response.destroy()
  })

  it('goes on when the caller reads again', async () => {
    const { made, open } = await startEndless()
    const response = await open()
    response.pause()
    for (let turn = 0; turn < 100; turn += 1) await nextTurn()
    let received = 0
    for await (const chunk of response as AsyncIterable<Buffer>) {
      received += chunk.length
      if (received > 100 * PIECE.length) break
    }
    expect(made()).toBeGreaterThan(100)
  })

  it('is given up as soon as the caller leaves', async () => {
    const { givenUp, open } = await startEndless()
    const response = await open()
    response.destroy()
    await givenUp
    expect(await simulator?.lastRequest?.closed).toBe('aborted')
  })
})

describe('What was served of a transcript', () => {
  const WHOLE = { promptTokens: 30, audioInputTokens: 30, completionTokens: 12 }
  const frame = (event: object): string => `data: ${JSON.stringify(event)}\r\n\r\n`
  const PIECE = frame({ type: 'transcript.text.delta', delta: 'Hello' })

  function unitsOf(...frames: readonly string[]): object {
    const tally = new TranscriptTally(WHOLE)
    frames.forEach(tally.note)
    return tally.units
  }

  it('is all of it once it has come to its end', () => {
    expect(unitsOf(PIECE, frame({ type: 'transcript.text.done', text: 'Hello' }), 'data: [DONE]\r\n\r\n')).toEqual(
      WHOLE,
    )
  })

  it('is all of the audio and the pieces that were written, before that', () => {
    expect(unitsOf(PIECE, PIECE, PIECE.slice(0, 20))).toEqual({ ...WHOLE, completionTokens: 2 })
  })

  it('is the audio where nothing was written', () => {
    expect(unitsOf()).toEqual({ ...WHOLE, completionTokens: 0 })
  })
})
