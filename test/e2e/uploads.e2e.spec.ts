import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { toFile } from 'openai'
import { sha1, spoolsLeft, upload, wavOf } from '../support/audio-uploads.js'
import { eventually } from '../support/eventually.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { errorOf, sendRaw } from '../support/raw-http.js'
import { FORM_HEAD, FORM_TAIL, formBytes, openUpload, sendFile } from '../support/slow-uploads.js'
import { fieldPart, filePart } from '../support/upload-server.js'

const FILE_LIMIT_BYTES = 26_214_400
const BODY_LIMIT_BYTES = 28_311_552
const MEGABYTE = 1_000_000

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway()
})
afterEach(async () => {
  lab.simulator.reset()
  await eventually(() => spoolsLeft().length === 0)
})
afterAll(() => lab.close())

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
