import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { toFile } from 'openai'
import { sha1, spoolsLeft, upload, wavOf, wavOfSeconds } from '../support/audio-uploads.js'
import { eventually } from '../support/eventually.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { errorOf, sendRaw } from '../support/raw-http.js'
import { FORM_HEAD, FORM_TAIL, formBytes, openUpload, type SlowUpload } from '../support/slow-uploads.js'
import { fieldPart, filePart } from '../support/upload-server.js'

const FILE_LIMIT_BYTES = 26_214_400
const BODY_LIMIT_BYTES = 28_311_552
const MEGABYTE = 1_000_000
const PIECE_BYTES = 65_536
/** The promise: an upstream whose caller has left is aborted within a second. */
const PROMISED_MS = 1_000

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway()
})
afterEach(async () => {
  lab.simulator.reset()
  await eventually(() => spoolsLeft().length === 0)
})
afterAll(() => lab.close())

const callersConnected = (): Promise<number> =>
  new Promise((resolve, reject) => {
    lab.gateway.server.getConnections((error, count) => {
      if (error === null) resolve(count)
      else reject(error)
    })
  })

/** Sends a file of this size piece by piece, and goes on however the other side answers, until the socket is closed. */
async function sendFile(target: SlowUpload, bytes: number, pieceBytes = PIECE_BYTES): Promise<void> {
  const file = wavOf(Math.min(bytes, PIECE_BYTES))
  await target.send(FORM_HEAD)
  await target.send(file)
  const filler = Buffer.alloc(pieceBytes, 7)
  for (let sent = file.length; sent < bytes && !target.socket.destroyed; sent += filler.length) {
    await target.send(filler.subarray(0, bytes - sent))
  }
  if (!target.socket.destroyed) await target.send(FORM_TAIL)
}

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1])
const codeOf = (answer: string): unknown =>
  (JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as { error: { code: unknown } }).error.code

describe('a file over 25 MB', () => {
  it.each([
    ['one byte too large', FILE_LIMIT_BYTES + 1, 400, 'file_too_large'],
    ['of 26 MB', 26 * 1024 * 1024, 400, 'file_too_large'],
    ['in a body over its limit', BODY_LIMIT_BYTES + 1, 413, 'payload_too_large'],
    ['of 100 MB', 100 * MEGABYTE, 413, 'payload_too_large'],
  ])('%s is answered so that a client who is still sending can read it', async (_name, bytes, status, code) => {
    const target = await openUpload(lab.gateway.url, formBytes(bytes), { connection: 'close' })
    await sendFile(target, bytes)
    await target.closed
    expect([statusOf(target.answer()), codeOf(target.answer())]).toEqual([status, code])
    expect(lab.simulator.requests).toHaveLength(0)
  })

  it('is answered with 413 before its body is sent', async () => {
    const target = await openUpload(lab.gateway.url, 100 * MEGABYTE)
    await once(target.socket, 'data')
    expect([statusOf(target.answer()), codeOf(target.answer())]).toEqual([413, 'payload_too_large'])
    target.socket.destroy()
  })

  it('is answered with 413 as soon as its first bytes pass the limit without a length', async () => {
    const body = Buffer.concat([FORM_HEAD, wavOf(BODY_LIMIT_BYTES + 1), FORM_TAIL])
    const request = upload([], undefined, { 'transfer-encoding': 'chunked' })
    const answer = await sendRaw(lab.gateway.url, { ...request, body })
    // The file's own limit is the lower one and passed first.
    expect([answer.status, errorOf(answer).code]).toEqual([400, 'file_too_large'])
  })

  it.each(OPENAI_CLIENTS)('is a readable error for %s', async (_name, makeClient) => {
    for (const [bytes, status, code] of [
      [FILE_LIMIT_BYTES + 1, 400, 'file_too_large'],
      [30 * MEGABYTE, 413, 'payload_too_large'],
    ] as const) {
      const file = await toFile(wavOf(bytes), 'long.wav')
      const call = makeClient(lab.gateway).audio.transcriptions.create({ file, model: 'whisper-1' })
      await expect(call).rejects.toMatchObject({ status, code, type: 'invalid_request_error' })
    }
    expect(lab.simulator.requests).toHaveLength(0)
  })
})

describe('a file of exactly 25 MB', () => {
  it('reaches the upstream as far as that takes it', async () => {
    const file = wavOf(FILE_LIMIT_BYTES)
    await sendRaw(lab.gateway.url, upload([fieldPart('model', 'whisper-1'), filePart(file)]))
    expect(lab.simulator.lastRequest?.receivedBytes).toBeGreaterThan(FILE_LIMIT_BYTES)
  })

  it('passes without being held in memory, four at a time', async () => {
    const bytes = 26 * MEGABYTE
    const sendOne = async (): Promise<string> => {
      const target = await openUpload(lab.gateway.url, formBytes(bytes), { connection: 'close' })
      await sendFile(target, bytes)
      await target.closed
      return target.answer()
    }
    await sendOne()
    const baseline = process.memoryUsage.rss()
    let growthBytes = 0
    const watch = setInterval(() => {
      growthBytes = Math.max(growthBytes, process.memoryUsage.rss() - baseline)
    }, 5)
    try {
      const answers = await Promise.all([sendOne(), sendOne(), sendOne(), sendOne()])
      expect(answers.map(statusOf)).toEqual([200, 200, 200, 200])
    } finally {
      clearInterval(watch)
    }
    // Gateway, simulator and senders share this process, and garbage waits for its collection.
    expect(growthBytes).toBeGreaterThanOrEqual(0)
    expect(growthBytes).toBeLessThan(60 * MEGABYTE)
  })
})

describe('a slow upload', () => {
  it('in pieces of a few bytes arrives whole', async () => {
    const file = wavOf(20_000)
    const target = await openUpload(lab.gateway.url, formBytes(file.length), { connection: 'close' })
    target.socket.setNoDelay()
    const body = Buffer.concat([FORM_HEAD, file, FORM_TAIL])
    for (let at = 0; at < body.length; at += 13) await target.send(body.subarray(at, at + 13))
    await target.closed
    expect(statusOf(target.answer())).toBe(200)
    expect(lab.simulator.lastRequest?.parts?.[1]?.sha1).toBe(sha1(file))
  })
})

describe('a caller who leaves', () => {
  let connectedBefore: number
  beforeEach(async () => {
    connectedBefore = await callersConnected()
  })
  // Clients keep their connections for later requests; the sockets of these tests must not stay.
  afterEach(() => eventually(async () => (await callersConnected()) <= connectedBefore))

  it.each([
    ['in the middle of a small file', 50_000, 20_000],
    ['in the middle of a file that has gone to disk', 20 * MEGABYTE, 8 * MEGABYTE],
  ])('%s leaves nothing behind and never reaches an upstream', async (name, bytes, sentBytes) => {
    const requestId = `left-${name.replaceAll(' ', '-')}`
    const target = await openUpload(lab.gateway.url, formBytes(bytes), { 'x-request-id': requestId })
    await target.send(FORM_HEAD)
    const file = wavOf(sentBytes)
    for (let at = 0; at < sentBytes; at += PIECE_BYTES) await target.send(file.subarray(at, at + PIECE_BYTES))
    if (sentBytes > MEGABYTE && process.platform === 'linux') await eventually(() => spoolsLeft().length === 1)
    target.socket.destroy()
    expect(await lab.gateway.logLine(requestId)).toMatchObject({ status: 499, attempts: 0 })
    expect(lab.simulator.requests).toHaveLength(0)
  })

  it.each([
    ['before the upstream answers', 'hang', 2 * MEGABYTE],
    ['before the upstream answers a small file', 'hang', 50_000],
    ['in the middle of the answer', 'stall', 2 * MEGABYTE],
  ] as const)('%s ends the work of the upstream within a second', async (name, fault, bytes) => {
    const requestId = `left-${name.replaceAll(' ', '-')}`
    lab.simulator.queueFault(fault)
    const arrived = lab.simulator.nextRequest()
    const aborted = lab.simulator.nextAbort()
    const target = await openUpload(lab.gateway.url, formBytes(bytes), { 'x-request-id': requestId })
    await sendFile(target, bytes)
    await arrived
    const leftAtMs = performance.now()
    target.socket.destroy()
    await aborted
    expect(performance.now() - leftAtMs).toBeLessThan(PROMISED_MS)
    expect(await lab.gateway.logLine(requestId)).toMatchObject({ status: 499, channel: 'first', attempts: 1 })
    await lab.simulator.idle()
    expect(lab.simulator.activeRequests).toBe(0)
  })

  it.each(OPENAI_CLIENTS)('with %s ends the work of the upstream within a second', async (_name, makeClient) => {
    lab.simulator.queueFault('hang')
    const arrived = lab.simulator.nextRequest()
    const aborted = lab.simulator.nextAbort()
    const controller = new AbortController()
    const file = await toFile(wavOfSeconds(1), 'a.wav')
    const { signal } = controller
    const call = makeClient(lab.gateway).audio.transcriptions.create({ file, model: 'whisper-1' }, { signal })
    call.catch(() => undefined)
    await arrived
    const leftAtMs = performance.now()
    controller.abort()
    await aborted
    expect(performance.now() - leftAtMs).toBeLessThan(PROMISED_MS)
  })

  it('in the middle of a stream ends the work of the upstream within a second', async () => {
    lab.simulator.queueFault('stall')
    const aborted = lab.simulator.nextAbort()
    const [, makeClient] = OPENAI_CLIENTS[0] as (typeof OPENAI_CLIENTS)[number]
    const file = await toFile(wavOfSeconds(1), 'a.wav')
    const model = 'gpt-4o-transcribe'
    const stream = await makeClient(lab.gateway).audio.transcriptions.create({ file, model, stream: true })
    for await (const event of stream) {
      expect(event.type).toBe('transcript.text.delta')
      break
    }
    const leftAtMs = performance.now()
    stream.controller.abort()
    await aborted
    expect(performance.now() - leftAtMs).toBeLessThan(PROMISED_MS)
  })
})

describe('many callers who leave in the middle of an upload', () => {
  it('leave no file and no socket behind', async () => {
    const connectedBefore = await callersConnected()
    for (let left = 0; left < 20; left++) {
      const requestId = `many-${left}`
      const target = await openUpload(lab.gateway.url, formBytes(3 * MEGABYTE), { 'x-request-id': requestId })
      await target.send(FORM_HEAD)
      await target.send(wavOf(1.5 * MEGABYTE))
      target.socket.destroy()
      await lab.gateway.logLine(requestId)
    }
    await eventually(() => spoolsLeft().length === 0)
    await eventually(async () => (await callersConnected()) <= connectedBefore)
    expect(lab.simulator.requests).toHaveLength(0)
  })
})
