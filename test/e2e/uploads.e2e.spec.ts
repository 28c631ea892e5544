import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { FaultName } from '@multi-model-gateway/sandbox/server/faults.js'
import { toFile } from 'openai'
import { Admission } from '../../src/overload/admission.js'
import { ABORT_LIMIT_MS, eventually, promised } from '../support/eventually.js'
import { answerChat, SHORT_TIMEOUTS } from '../support/failing-calls.js'
import {
  connectionsOf,
  connectTo,
  errorOf,
  type RawRequest,
  sendRaw,
  startGateway,
  type TestGateway,
} from '../support/gateway.js'
import { closeAfterEach, shareLab } from '../support/lab-lifetime.js'
import { p1Channel, type P1Gateway, startP1Gateway, UPSTREAM_KEY, withP1Gateway } from '../support/provider-gateways.js'
import { startRawUpstream } from '../support/raw-upstream.js'
import { OPENAI_CLIENTS } from '../support/sdk-clients.js'
import { FORM_HEAD, FORM_TAIL, formBytes, openUpload, sendFile } from '../support/slow-uploads.js'
import { fieldPart, filePart, form, sha1, spoolsLeft, upload, wavOf, wavOfSeconds } from '../support/upload-server.js'

const MEGABYTE = 1_000_000

describe('uploads', () => {
  const FILE_LIMIT_BYTES = 26_214_400
  const BODY_LIMIT_BYTES = 28_311_552

  let lab: P1Gateway
  shareLab(async () => (lab = await startP1Gateway()))
  afterEach(() => eventually(() => spoolsLeft().length === 0))

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

  const PIECE_BYTES = 65_536

  describe('a caller who leaves', () => {
    beforeEach(() => {
      // Those that clients of other tests keep alive.
      lab.gateway.server.closeIdleConnections()
    })
    afterEach(() => eventually(async () => (await connectionsOf(lab.gateway)) === 0))

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
      expect(performance.now() - leftAtMs).toBeLessThan(promised(ABORT_LIMIT_MS))
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
      expect(performance.now() - leftAtMs).toBeLessThan(promised(ABORT_LIMIT_MS))
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
      expect(performance.now() - leftAtMs).toBeLessThan(promised(ABORT_LIMIT_MS))
    })
  })

  describe('many callers who leave in the middle of an upload', () => {
    it('leave no file and no socket behind', async () => {
      lab.gateway.server.closeIdleConnections()
      for (let left = 0; left < 20; left++) {
        const requestId = `many-${left}`
        const target = await openUpload(lab.gateway.url, formBytes(3 * MEGABYTE), { 'x-request-id': requestId })
        await target.send(FORM_HEAD)
        await target.send(wavOf(1.5 * MEGABYTE))
        target.socket.destroy()
        await lab.gateway.logLine(requestId)
      }
      await eventually(() => spoolsLeft().length === 0)
      await eventually(async () => (await connectionsOf(lab.gateway)) === 0)
      expect(lab.simulator.requests).toHaveLength(0)
    })
  })
})

describe('upload failover', () => {
  const REPEATABLE_BYTES = 10 * 1024 * 1024
  const TWO = { withSecond: true }

  const opened = closeAfterEach()
  afterEach(() => eventually(() => spoolsLeft().length === 0))

  const request = (file: Buffer, model = 'whisper-1'): RawRequest =>
    upload(form({ language: 'en', model, prompt: 'Zoë' }, file))

  const patience = (fault: FaultName): object => (fault === 'hang' ? { channel: SHORT_TIMEOUTS } : {})

  describe('an upload whose first channel fails', () => {
    it.each([
      ['429', 50_000],
      ['500', 50_000],
      ['401', 50_000],
      ['quota', 50_000],
      ['html', 50_000],
      ['malformed', 50_000],
      ['cut', 50_000],
      ['reset', 50_000],
      ['hang', 50_000],
      ['500', 3_000_000],
      ['reset', 3_000_000],
      ['reset', REPEATABLE_BYTES],
      // It was answered: that it was not served is certain, whatever its size.
      ['500', REPEATABLE_BYTES + 1],
      ['401', REPEATABLE_BYTES + 1],
    ] as const)('with %s is sent again as a whole to the second, file of %i bytes', async (fault, bytes) => {
      const file = wavOf(bytes)
      await withP1Gateway({ ...TWO, ...patience(fault) }, async ({ gateway, simulator, second }) => {
        simulator.queueFault(fault)
        const answer = await sendRaw(gateway.url, request(file))
        expect(answer.status).toBe(200)
        expect(answer.text).toContain(sha1(file).slice(0, 12))
        expect([simulator.requests.length, second.requests.length]).toEqual([1, 1])
        const parts = second.lastRequest?.parts?.map(({ name, value, sha1: digest }) => [name, value ?? digest])
        expect(parts).toEqual([
          ['file', sha1(file)],
          ['language', 'en'],
          ['model', 'whisper-1'],
          ['prompt', 'Zoë'],
        ])
        expect(second.violations).toEqual([])
        const line = await gateway.logLine(String(answer.headers['x-request-id']))
        expect(line).toMatchObject({ attempts: 2, channel: 'second', status: 200 })
      })
    })

    it.each(['reset', 'hang'] as const)('with %s and over 10 MB is not sent again', async (fault) => {
      await withP1Gateway({ ...TWO, ...patience(fault) }, async ({ gateway, simulator, second }) => {
        simulator.queueFault(fault)
        const answer = await sendRaw(gateway.url, request(wavOf(REPEATABLE_BYTES + 1)))
        expect(answer.status).toBe(500)
        expect(errorOf(answer).type).toBe('upstream_error')
        expect(answer.headers['x-should-retry']).toBe('false')
        expect([simulator.requests.length, second.requests.length]).toEqual([1, 0])
      })
    })

    it('because the port is closed is sent to the second, of any size', async () => {
      const file = wavOf(REPEATABLE_BYTES + 1)
      await withP1Gateway(TWO, async ({ gateway, simulator, second }) => {
        await simulator.close()
        const answer = await sendRaw(gateway.url, request(file))
        expect(answer.status).toBe(200)
        expect(second.lastRequest?.parts?.[0]?.sha1).toBe(sha1(file))
      })
    })

    it('through a fault of the caller is not tried on the second', async () => {
      await withP1Gateway(TWO, async ({ gateway, simulator, second }) => {
        simulator.queueFault('400')
        const answer = await sendRaw(gateway.url, request(wavOf(50_000)))
        expect(answer.status).toBe(400)
        expect(second.requests).toEqual([])
      })
    })
  })

  describe('an upstream that refuses an upload before it has read it', () => {
    it.each([
      ['429 Too Many Requests', 'keep-alive'],
      ['503 Service Unavailable', 'close'],
      ['401 Unauthorized', 'close'],
    ])('with %s (connection: %s) is understood, and the second channel gets the file', async (status, connection) => {
      const file = wavOf(8_000_000)
      const head = `HTTP/1.1 ${status}\r\ncontent-length: 2\r\ncontent-type: application/json\r\n`
      const hasty = opened(
        await startRawUpstream((socket) => {
          socket.write(`${head}connection: ${connection}\r\n\r\n{}`)
          if (connection === 'close') socket.end()
        }),
      )
      const second = opened(await startP1Simulator({ apiKey: UPSTREAM_KEY }))
      const first = p1Channel('first', second, { baseUrl: `http://127.0.0.1:${hasty.port}` })
      const channels = [first, p1Channel('second', second, { priority: 1 })]
      const gateway = opened(await startGateway({ channels }))
      const answer = await sendRaw(gateway.url, request(file))
      expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 })
      expect(second.lastRequest?.parts?.[0]?.sha1).toBe(sha1(file))
    })
  })

  describe('an upload that fails everywhere', () => {
    it('is a 500 of the upstream, once, and tells nothing of the account', async () => {
      await withP1Gateway(TWO, async ({ gateway, simulator, second }) => {
        simulator.queueFault('401')
        second.queueFault('500')
        const answer = await sendRaw(gateway.url, request(wavOf(50_000), 'gpt-4o-transcribe'))
        expect([answer.status, errorOf(answer).code]).toEqual([500, 'upstream_failed'])
        expect(answer.text).not.toMatch(/sk-|Incorrect API key|org-/)
      })
    })
  })
})

describe('bytes in flight', () => {
  const IN_FLIGHT_BYTES = 4_000_000

  let gateway: TestGateway
  let sockets: Socket[]
  afterEach(() => {
    for (const socket of sockets) socket.destroy()
  })
  const opened = closeAfterEach()
  beforeEach(async () => {
    sockets = []
    const { port } = opened(await startRawUpstream(answerChat))
    const channel = { provider: 'p1', baseUrl: `http://127.0.0.1:${port}`, models: ['m', 't'] }
    gateway = opened(
      await startGateway({
        channels: [
          { ...channel, id: 'own', credentials: 'k' },
          { ...channel, id: 'callers', credentials: 'caller' },
        ],
        keys: ['a', 'b'].map((id) => ({ id, key: id })),
        sections: {
          admission: { bytesInFlight: IN_FLIGHT_BYTES },
          models: [{ id: 't', class: 'stt-standard', providers: ['p1'] }],
        },
      }),
    )
  })

  const bytes = (): number => gateway.application.get(Admission).memory.bytes

  /** A request of which only the head and so many bytes of the body come. */
  function stall(
    key: string,
    framing: string,
    sentBytes: number,
    path = '/v1/chat/completions',
    type = 'application/json',
  ): Socket {
    const socket = connectTo(gateway)
    sockets.push(socket)
    const head = [`POST ${path} HTTP/1.1`, 'host: x', `authorization: Bearer ${key}`, `content-type: ${type}`, framing]
    const body = 'x'.repeat(sentBytes)
    const chunk = framing.startsWith('transfer') ? `${sentBytes.toString(16)}\r\n${body}` : body
    socket.write(`${head.join('\r\n')}\r\n\r\n${chunk}`)
    return socket
  }

  const chat = (key: string, size: number) =>
    sendRaw(gateway.url, {
      path: '/v1/chat/completions',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(size) }] }),
    })

  describe('Bytes in flight', () => {
    const STEP_BYTES = 65_536

    it('are those of every body on its way, and given back when it is over', async () => {
      const form = 'multipart/form-data; boundary=b'
      stall('a', 'content-length: 300000', 10)
      await eventually(() => bytes() === STEP_BYTES)
      stall('b', 'content-length: 5000000', 10, '/v1/audio/transcriptions', form)
      await eventually(() => bytes() === 2 * STEP_BYTES)
      for (const socket of sockets) socket.destroy()
      await eventually(() => bytes() === 0)
      expect((await chat('a', 100_000)).status).toBe(200)
      await eventually(() => bytes() === 0)
    })

    it('of bodies without a length are no more than have come, and a step ahead', async () => {
      for (let index = 0; index < 5; index++) stall('a', 'transfer-encoding: chunked', 100_000)
      await eventually(() => bytes() >= 5 * 100_000)
      expect(bytes()).toBeLessThanOrEqual(5 * (100_000 + STEP_BYTES))
      expect((await chat('a', 1_000_000)).status).toBe(200)
      expect((await chat('b', 1_000_000)).status).toBe(200)
    })

    it.each(['a', 'bearer-of-a'])('are not taken by announcing them: %s locks out no caller', async (key) => {
      for (let index = 0; index < 20; index++) stall(key, 'content-length: 9000000', 1)
      await eventually(() => bytes() === 20 * STEP_BYTES)
      for (const other of ['b', 'bearer-of-b']) expect((await chat(other, 1_000_000)).status).toBe(200)
    })

    it('count as work of their caller when its request is over, with those of the answer', async () => {
      const counted = jest.spyOn(gateway.application.get(Admission).loop, 'countBytes')
      await chat('b', 1_000_000)
      await eventually(() => counted.mock.calls.length > 0)
      expect(counted.mock.calls).toEqual([[{ keyId: 'b' }, expect.any(Number)]])
      expect(counted.mock.calls[0]?.[1]).toBeGreaterThan(1_000_060)
    })

    it('are for a body of many values those that it takes once it is parsed', async () => {
      stall('b', 'content-length: 300000', 10)
      await eventually(() => bytes() === STEP_BYTES)
      const lists = (count: number) =>
        sendRaw(gateway.url, {
          path: '/v1/chat/completions',
          headers: { authorization: 'Bearer a' },
          body: `{"model":"m","messages":[{"role":"user","content":"x"}],"lists":[${'[],'.repeat(count)}[]]}`,
        })
      // 180 KB, but nearly four megabytes of empty lists: more than the share of one caller.
      const refused = await lists(60_000)
      expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5'])
      expect((await lists(20_000)).status).toBe(200)
      // 65,536 values are the most.
      expect((await lists(65_600)).text).toContain('json_too_many_values')
      await eventually(() => bytes() === STEP_BYTES)
    })

    it.each([
      ['a', 'b'],
      ['bearer-of-a', 'bearer-of-b'],
    ])('leave every caller its share, whatever another one sends: with the keys %s and %s', async (greedy, other) => {
      for (let index = 0; index < 4; index++) stall(greedy, 'content-length: 500000', 499_000)
      await eventually(() => bytes() >= 4 * 499_000)
      const refused = await chat(greedy, 100_000)
      expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5'])
      expect((await chat(other, 1_000_000)).status).toBe(200)
      sockets[0]?.destroy()
      await eventually(() => bytes() < 4 * 499_000)
      expect((await chat(greedy, 100_000)).status).toBe(200)
    })
  })
})
