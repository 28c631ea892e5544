import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { toFile } from 'openai'
import { spoolsLeft, wavOf, wavOfSeconds } from '../support/audio-uploads.js'
import { eventually } from '../support/eventually.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { FORM_HEAD, formBytes, openUpload, sendFile } from '../support/slow-uploads.js'

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

describe('a caller who leaves', () => {
  let connectedBefore: number
  beforeEach(async () => {
    connectedBefore = await callersConnected()
  })
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
})

// Their connections are not counted: the SDKs keep and open some as they like.
describe('a caller who aborts', () => {
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
