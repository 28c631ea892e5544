import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http'
import { afterEach, describe, expect, it } from '@jest/globals'
import {
  MULTI_IMAGE_PATH,
  multiImageBody,
  startVideoApplication,
  TEXT_PATH,
  VIDEO_HEADERS,
  type VideoApplication,
} from '../../test/support/video-application.js'
import { StandInChannel } from '../../test/support/video-stand-ins.js'

let application: VideoApplication
afterEach(() => application.close())

describe('A body with images', () => {
  const sections = {
    limits: { jsonBodyBytes: 1_000, imageBodyBytes: 20_000 },
    admission: { bytesInFlight: 30_000 },
  }
  /** Valid JSON of exactly this length. */
  const bodyOf = (bytes: number): string => {
    const body = multiImageBody()
    return body + ' '.repeat(bytes - body.length)
  }

  it('may be larger than other bodies, up to its own limit', async () => {
    application = await startVideoApplication([new StandInChannel('first')], sections)
    expect((await application.post(MULTI_IMAGE_PATH, bodyOf(20_000))).status).toBe(200)
    expect(await application.post(MULTI_IMAGE_PATH, bodyOf(20_001))).toMatchObject({
      status: 413,
      body: { code: 1200 },
    })
    expect(await application.post(TEXT_PATH, '{"prompt":"x"}'.padEnd(1_001))).toMatchObject({
      status: 413,
      body: { code: 1200 },
    })
  })

  it('is refused before it is read while too many bytes are under way, and admitted when they are done', async () => {
    const channel = new StandInChannel('first')
    application = await startVideoApplication([channel], sections)
    let open: () => void = () => undefined
    channel.gate = new Promise((done) => {
      open = done
    })
    const first = application.post(MULTI_IMAGE_PATH, bodyOf(20_000))
    while (channel.bodies.length === 0) await new Promise((done) => setImmediate(done))

    // It announces its body and never sends it: the answer needs none.
    const second = announce({ 'content-length': '10001' })
    const [answer] = (await once(second, 'response')) as [IncomingMessage]
    expect(answer.statusCode).toBe(503)
    expect(answer.headers['retry-after']).toBe('5')
    second.destroy()
    const third = application.post(MULTI_IMAGE_PATH, bodyOf(10_000))
    while (channel.bodies.length < 2) await new Promise((done) => setImmediate(done))

    open()
    expect([(await first).status, (await third).status]).toEqual([200, 200])
    expect((await application.post(MULTI_IMAGE_PATH, bodyOf(20_000))).status).toBe(200)
  })

  it.each([
    [413, { 'content-length': '20001' }],
    [415, { 'content-length': '20', 'content-encoding': 'gzip' }],
    [415, { 'content-length': '20', 'content-type': 'text/plain' }],
  ])('is refused with %i by its headers alone: %j', async (status, further) => {
    application = await startVideoApplication([new StandInChannel('first')], sections)
    const request = announce(further)
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    expect(answer.statusCode).toBe(status)
    request.destroy()
  })

  it('of unknown length counts with as much as it may have until it has arrived, then with its own length', async () => {
    const channel = new StandInChannel('first')
    application = await startVideoApplication([channel], sections)
    let open: () => void = () => undefined
    channel.gate = new Promise((done) => {
      open = done
    })
    const chunked = announce({ 'transfer-encoding': 'chunked' })
    chunked.write(multiImageBody().slice(0, 10))
    while (application.calls.length < 1) await new Promise((done) => setImmediate(done))
    expect((await application.post(MULTI_IMAGE_PATH, bodyOf(10_001))).status).toBe(503)
    chunked.end(multiImageBody().slice(10))
    while (channel.bodies.length === 0) await new Promise((done) => setImmediate(done))
    const other = application.post(MULTI_IMAGE_PATH, bodyOf(20_000))
    while (channel.bodies.length < 2) await new Promise((done) => setImmediate(done))
    open()
    expect((await other).status).toBe(200)
    chunked.destroy()
  })

  it('whose sender leaves makes room for others', async () => {
    const channel = new StandInChannel('first')
    application = await startVideoApplication([channel], sections)
    const stalled = announce({ 'content-length': '20000' })
    stalled.write('{')
    while (application.calls.length < 1) await new Promise((done) => setImmediate(done))
    expect((await application.post(MULTI_IMAGE_PATH, bodyOf(20_000))).status).toBe(503)
    stalled.destroy()
    while (application.calls[0]?.departure.left !== true) await new Promise((done) => setImmediate(done))
    expect((await application.post(MULTI_IMAGE_PATH, bodyOf(20_000))).status).toBe(200)
  })

  function announce(further: Record<string, string>): ClientRequest {
    const request = httpRequest(`${application.url}${MULTI_IMAGE_PATH}`, {
      method: 'POST',
      headers: { ...VIDEO_HEADERS, ...further },
    })
    request.on('error', () => undefined)
    request.flushHeaders()
    return request
  }
})
