import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterAll, afterEach, describe, expect, it } from '@jest/globals'
import { Admission } from '../../src/overload/admission.js'
import { VIDGEN_KINDS } from '@multi-model-gateway/sandbox/vidgen/vidgen-request.js'
import { eventually } from '../support/eventually.js'
import { connectTo, TEST_KEY } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import {
  OTHER_KEY,
  POLLED_OFTEN,
  startVidgenGateway,
  VIDGEN_CREDENTIALS,
  type VidgenGateway,
} from '../support/task-gateways.js'
import { VideoCaller, videoText } from '../support/video-caller.js'

describe('video creates', () => {
  let lab: VidgenGateway
  let caller: VideoCaller
  let keys = 0

  shareLab(async () => {
    lab = await startVidgenGateway({ tasks: { ...POLLED_OFTEN, reconcileMs: 200 } })
    caller = new VideoCaller(lab.gateway)
    return lab
  })
  afterEach(() => {
    lab.proxy.release()
  })
  afterAll(() => {
    expect(lab.simulator.duplicates).toEqual([])
  })

  const newKey = (): Record<string, string> => ({ 'idempotency-key': `key-${++keys}` })
  const made = (): number => lab.simulator.creates.length

  describe.each(VIDGEN_KINDS)('a %s create that is sent again under its key', (kind) => {
    const callerWith = (key = TEST_KEY): VideoCaller => new VideoCaller(lab.gateway, key, kind)

    it('gets the first answer to the byte, marked as a replay, whatever became of the task', async () => {
      const [header, creates] = [newKey(), made()]
      const first = await callerWith().create({}, header)
      expect(first.headers).not.toHaveProperty('x-idempotent-replay')
      lab.simulator.settle(first.body.data.task_id, 'succeed')
      const stream = await callerWith().follow(first.body.data.task_id)
      expect(await stream.ended).toBe(true)
      const second = await callerWith().create({}, header)
      expect([second.status, second.text]).toEqual([200, first.text])
      expect(second.headers['x-idempotent-replay']).toBe('true')
      expect(made()).toBe(creates + 1)
    })

    it('while the first is in progress gets 409 with Retry-After, and its response afterwards', async () => {
      const [header, creates] = [newKey(), made()]
      lab.proxy.hold()
      const first = callerWith().create({}, header)
      await eventually(() => made() === creates + 1)
      const second = await callerWith().create({}, header)
      expect([second.status, second.headers['retry-after']]).toEqual([409, '1'])
      expect(second.headers).not.toHaveProperty('x-should-retry')
      expect(second.body.code).toBe(1303)
      lab.proxy.release()
      const third = await first.then(() => callerWith().create({}, header))
      expect(third.text).toBe((await first).text)
      expect(made()).toBe(creates + 1)
    })

    it('with another body is refused, and so is one that differs in a blank', async () => {
      const header = newKey()
      await callerWith().create({}, header)
      const creates = made()
      for (const body of [videoText(kind, { mode: 'pro' }), `${videoText(kind)} `]) {
        const { status, body: refusal, headers } = await callerWith().create(body, header)
        expect([status, refusal.code, headers['x-should-retry']]).toEqual([422, 1201, 'false'])
      }
      expect(made()).toBe(creates)
    })

    it('by another caller, or on the other route, is a create of its own', async () => {
      const header = newKey()
      const first = await callerWith().create({}, header)
      const stranger = await callerWith(OTHER_KEY).create({}, header)
      const otherKind = VIDGEN_KINDS.find((each) => each !== kind)
      const elsewhere = await new VideoCaller(lab.gateway, TEST_KEY, otherKind).create({}, header)
      expect([stranger.status, elsewhere.status]).toEqual([200, 200])
      expect(new Set([first, stranger, elsewhere].map(({ body }) => body.data.task_id)).size).toBe(3)
    })
  })

  describe('twenty creates at once under one key', () => {
    it('make one task; the others get 409 with Retry-After, or its response', async () => {
      const [header, creates] = [newKey(), made()]
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => caller.create({ external_task_id: 'twenty' }, header)),
      )
      expect(made()).toBe(creates + 1)
      const good = answers.filter(({ status }) => status === 200)
      expect(new Set(good.map(({ text }) => text)).size).toBe(1)
      expect(good.filter(({ headers }) => headers['x-idempotent-replay'] === undefined)).toHaveLength(1)
      for (const { status } of answers) expect([200, 409]).toContain(status)
    })
  })

  describe('a key', () => {
    it('of a create that the upstream refused is free again, and so is its external id', async () => {
      const header = newKey()
      const refused = await caller.create({ prompt: 'x #1301', external_task_id: 'second-try' }, header)
      expect(refused.status).toBe(400)
      const again = await caller.create({ external_task_id: 'second-try' }, header)
      expect(again.status).toBe(200)
      expect(again.headers).not.toHaveProperty('x-idempotent-replay')
    })

    it('of a create that was refused before the upstream was asked is not taken', async () => {
      const header = newKey()
      expect((await caller.create({ prompt: '' }, header)).status).toBe(400)
      expect((await caller.create({}, header)).status).toBe(200)
    })

    it('of a create whose answer was lost is held until the task is found, and then has its answer', async () => {
      const [header, creates] = [newKey(), made()]
      const lost = { prompt: 'x #lost', external_task_id: 'held' }
      const first = await caller.create(lost, header)
      expect([first.status, first.headers['x-should-retry']]).toEqual([502, 'false'])
      await eventually(async () => {
        const { status } = await caller.create(lost, header)
        expect([409, 200]).toContain(status)
        return status === 200
      })
      const replay = await caller.create(lost, header)
      expect(replay.headers['x-idempotent-replay']).toBe('true')
      expect(replay.body.data).toMatchObject({
        task_id: lab.simulator.creates.at(-1)?.id,
        task_info: { external_task_id: 'held' },
      })
      expect(made()).toBe(creates + 1)
    })

    it('of a create that was never found tells that it failed, and never makes a second task', async () => {
      const [header, creates] = [newKey(), made()]
      const lost = { prompt: 'x #5000', callback_url: lab.receiver.url() }
      const before = lab.receiver.received.length
      expect((await caller.create(lost, header)).status).toBe(502)
      await lab.receiver.has(before + 1)
      const replay = await caller.create(lost, header)
      expect([replay.status, replay.headers['x-idempotent-replay']]).toEqual([200, 'true'])
      expect(replay.body.data).toMatchObject({
        task_status: 'failed',
        task_status_msg: 'The upstream has no record of this task.',
      })
      expect((await caller.read(replay.body.data.task_id)).body.data.task_status).toBe('failed')
      expect(made()).toBe(creates)
    })

    it.each(['x'.repeat(255), 'a ~', '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}'])('may be %j', async (key) => {
      const header = { 'idempotency-key': key }
      const { text } = await caller.create({}, header)
      expect((await caller.create({}, header)).text).toBe(text)
    })

    it.each(['', 'x'.repeat(256), 'ü', 'a\tb'])('may not be %j', async (key) => {
      const { status, body } = await caller.create({}, { 'idempotency-key': key })
      expect([status, body.code]).toEqual([400, 1201])
      expect(body.message).toContain("'Idempotency-Key'")
      expect(lab.simulator.requests.filter(({ method }) => method === 'POST')).toEqual([])
    })
  })
})

describe('video limits', () => {
  const MAXIMUM_BYTES = 62_914_560
  const IN_FLIGHT_BYTES = 100_000

  let lab: VidgenGateway
  let text: VideoCaller
  let multi: VideoCaller

  shareLab(async () => {
    lab = await startVidgenGateway({ sections: { admission: { bytesInFlight: IN_FLIGHT_BYTES, callerShare: 1 } } })
    text = new VideoCaller(lab.gateway)
    multi = new VideoCaller(lab.gateway, TEST_KEY, 'multi-image2video')
    return lab
  })
  afterEach(() => {
    lab.proxy.release()
  })

  /** A good create, filled up with blanks to this size. */
  const bodyOf = (bytes: number, changes: object = {}): string =>
    videoText('multi-image2video', { ...changes }).padEnd(bytes, ' ')

  describe('a create with images', () => {
    it('may be as large as the limit', async () => {
      const { status } = await multi.create(bodyOf(MAXIMUM_BYTES))
      expect(status).toBe(200)
      expect(lab.simulator.lastRequest?.receivedBytes).toBeGreaterThan(MAXIMUM_BYTES)
    })

    it('larger than that by one byte is a 413, without a request to an upstream', async () => {
      const { status, body, headers } = await multi.create(bodyOf(MAXIMUM_BYTES + 1))
      expect([status, body.code, headers['x-should-retry']]).toEqual([413, 1200, 'false'])
      expect(lab.simulator.requests).toEqual([])
    })

    it('larger than that is refused as well when it does not say so before', async () => {
      const { status, body } = await multi.create(bodyOf(MAXIMUM_BYTES + 1), { 'transfer-encoding': 'chunked' })
      expect([status, body.code]).toEqual([413, 1200])
      expect(lab.simulator.requests).toEqual([])
    })
  })

  describe('a create without images', () => {
    it('has the limit of all JSON bodies', async () => {
      const { status, body } = await text.create(videoText('text2video').padEnd(10_485_761, ' '))
      expect([status, body.code]).toEqual([413, 1200])
    })
  })

  describe('more bytes in flight than the gateway may hold', () => {
    it('are refused with 503 and a time to come back, while others are served', async () => {
      const made = lab.simulator.creates.length
      lab.proxy.hold()
      const first = multi.create(bodyOf(IN_FLIGHT_BYTES - 1000))
      await eventually(() => lab.simulator.creates.length === made + 1)
      const refused = await multi.create(bodyOf(2000, { external_task_id: 'too-much' }))
      expect([refused.status, refused.body.code, refused.headers['retry-after']]).toEqual([503, 5001, '5'])
      expect(refused.headers).not.toHaveProperty('x-should-retry')
      expect(lab.simulator.creates).toHaveLength(made + 1)
      const small = multi.create(bodyOf(900))
      const other = text.create()
      await eventually(() => lab.simulator.creates.length === made + 3)
      lab.proxy.release()
      expect((await Promise.all([first, small, other])).map(({ status }) => status)).toEqual([200, 200, 200])
      // All of it was given back.
      expect((await multi.create(bodyOf(IN_FLIGHT_BYTES, { external_task_id: 'too-much' }))).status).toBe(200)
    })

    it('are given back by callers who leave while they send, and by those who are refused', async () => {
      for (let round = 0; round < 3; round++) {
        const socket = sendOnSocket(bodyOf(IN_FLIGHT_BYTES).slice(0, -1000), IN_FLIGHT_BYTES, `half-${round}`)
        await eventually(() => lab.gateway.application.get(Admission).memory.bytes === IN_FLIGHT_BYTES)
        expect((await multi.create(bodyOf(2000))).status).toBe(503)
        socket.destroy()
        expect(await lab.gateway.logLine(`half-${round}`)).toMatchObject({ status: 499 })
        expect((await multi.create('{}'.padEnd(IN_FLIGHT_BYTES, ' '))).status).toBe(400)
        expect((await multi.create(bodyOf(IN_FLIGHT_BYTES))).status).toBe(200)
      }
    })
  })

  describe('a caller who leaves', () => {
    it('before the body is whole has created nothing', async () => {
      const own = 'left-before'
      const body = bodyOf(5000, { external_task_id: own })
      const begun = once(lab.gateway.server, 'request')
      const socket = sendOnSocket(body.slice(0, 4000), 5000, own)
      await begun
      socket.destroy()
      expect(await lab.gateway.logLine(own)).toMatchObject({ status: 499, attempts: 0 })
      expect(lab.simulator.requests).toEqual([])
      expect((await multi.create({ external_task_id: own })).status).toBe(200)
    })

    it('while the upstream makes the task finds it by its external id, made once', async () => {
      const own = 'left-during'
      const made = lab.simulator.creates.length
      lab.proxy.hold()
      const socket = sendOnSocket(videoText('multi-image2video', { external_task_id: own }), undefined, own)
      await eventually(() => lab.simulator.creates.length === made + 1)
      socket.destroy()
      expect(await lab.gateway.logLine(own)).toMatchObject({ status: 499, attempts: 1 })
      lab.proxy.release()
      await eventually(async () => (await multi.read(own)).status === 200)
      expect((await multi.read(own)).body.data.task_id).toBe(lab.simulator.creates.at(-1)?.id)
      expect((await multi.listed())[0]).toBe(lab.simulator.creates.at(-1)?.id)
      expect(lab.simulator.creates).toHaveLength(made + 1)
      expect((await multi.create({ external_task_id: own })).status).toBe(400)
    })

    it('while the upstream makes the task gets its answer with the same Idempotency-Key', async () => {
      const made = lab.simulator.creates.length
      const body = videoText('multi-image2video')
      const header = { 'idempotency-key': 'left-with-key' }
      lab.proxy.hold()
      const socket = sendOnSocket(body, undefined, 'left-with-key', header)
      await eventually(() => lab.simulator.creates.length === made + 1)
      socket.destroy()
      await lab.gateway.logLine('left-with-key')
      lab.proxy.release()
      await eventually(async () => (await multi.create(body, header)).status === 200)
      const replay = await multi.create(body, header)
      expect(replay.headers['x-idempotent-replay']).toBe('true')
      expect(replay.body.data.task_id).toBe(lab.simulator.creates.at(-1)?.id)
      expect(lab.simulator.creates).toHaveLength(made + 1)
    })
  })

  /** A create on a socket of the caller's own, which can be destroyed at any moment; `length` = what it announces. */
  function sendOnSocket(
    body: string,
    length = Buffer.byteLength(body),
    requestId = '',
    headers: Readonly<Record<string, string>> = {},
  ): Socket {
    const socket = connectTo(lab.gateway)
    const head = [
      `POST ${multi.path} HTTP/1.1`,
      'host: gateway',
      `authorization: Bearer ${TEST_KEY}`,
      'content-type: application/json',
      `content-length: ${length}`,
      `x-request-id: ${requestId}`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ]
    socket.resume().write(`${head.join('\r\n')}\r\n\r\n${body}`)
    return socket
  }
})

describe('video callers key', () => {
  const ALICE = 'upstream-bearer-of-alice'
  const BOB = 'upstream-bearer-of-bob'

  let lab: VidgenGateway
  let alice: VideoCaller
  let bob: VideoCaller

  // The first channel passes the caller's own bearer on; the second has a key of its own, and serves known keys.
  shareLab(async () => {
    lab = await startVidgenGateway({
      access: 'anyone',
      tasks: POLLED_OFTEN,
      withSecond: true,
      channel: { credentials: 'caller' },
      secondChannel: { credentials: VIDGEN_CREDENTIALS },
    })
    alice = new VideoCaller(lab.gateway, ALICE)
    bob = new VideoCaller(lab.gateway, BOB)
    return lab
  })
  afterAll(() => {
    expect(lab.gateway.logText()).not.toMatch(new RegExp(`${ALICE}|${BOB}`))
  })

  const asked = (): unknown[] => lab.simulator.requests.map(({ method, headers }) => [method, headers['authorization']])

  describe('a caller with an upstream key of their own', () => {
    it('creates, reads and follows a task with that key alone', async () => {
      const id = await alice.created({ external_task_id: 'own-key' })
      lab.simulator.advance(id)
      expect((await alice.read('own-key')).body.data).toMatchObject({ task_id: id, task_status: 'processing' })
      expect(asked()).toEqual([
        ['POST', `Bearer ${ALICE}`],
        ['GET', `Bearer ${ALICE}`],
      ])
      expect(await alice.listed()).toEqual([id])
    })

    it('sees nothing of others, and others nothing of theirs', async () => {
      const [mine, theirs] = [await alice.created(), await bob.created()]
      expect([(await alice.read(theirs)).status, (await bob.read(mine)).status]).toEqual([404, 404])
      expect(await alice.listed()).not.toContain(theirs)
      expect(await bob.listed()).toEqual([theirs])
    })

    it('may use any external id and any Idempotency-Key, also those of another owner', async () => {
      const header = { 'idempotency-key': 'the-same' }
      const ids = [
        await alice.created({ external_task_id: 'same' }, header),
        await bob.created({ external_task_id: 'same' }, header),
      ]
      expect(new Set(ids).size).toBe(2)
      const again = await alice.create({ external_task_id: 'same' }, header)
      expect([again.body.data.task_id, again.headers['x-idempotent-replay']]).toEqual([ids[0], 'true'])
    })

    it('gets the upstream’s message about that key', async () => {
      const refused = await new VideoCaller(lab.gateway, 'bad').create({})
      expect([refused.status, refused.body.code]).toEqual([401, 1000])
      lab.simulator.queueFault('quota')
      const empty = await alice.create({ external_task_id: 'paid-later' })
      expect([empty.status, empty.body.code, empty.headers['x-should-retry']]).toEqual([429, 1302, 'false'])
      expect((await alice.create({ external_task_id: 'paid-later' })).status).toBe(200)
    })

    it('may not request callbacks, which need polls with that key', async () => {
      const { status, body } = await alice.create({ callback_url: lab.receiver.url(), external_task_id: 'no-callback' })
      expect([status, body.code]).toEqual([400, 1201])
      expect(body.message).toContain("'callback_url'")
      expect(lab.simulator.requests).toEqual([])
      expect((await alice.create({ external_task_id: 'no-callback' })).status).toBe(200)
    })

    it('finds a create whose answer was lost as soon as they ask for it', async () => {
      const lost = await alice.create({ prompt: 'x #lost', external_task_id: 'lost' })
      expect([lost.status, lost.headers['x-should-retry']]).toEqual([502, 'false'])
      const { status, body } = await alice.read('lost')
      expect([status, body.data.task_id]).toEqual([200, lab.simulator.creates.at(-1)?.id])
      expect(lab.simulator.duplicates).toEqual([])
    })

    it('follows a task to its end, asking with their key, and no longer than they listen', async () => {
      const [ended, left] = [await alice.created(), await alice.created()]
      const [stream, leaving] = [
        await alice.follow(ended),
        await alice.follow(left, { 'x-request-id': 'alice-leaves' }),
      ]
      await leaving.shows('submitted')
      leaving.leave()
      await lab.gateway.logLine('alice-leaves')
      const before = lab.simulator.requests.length
      lab.simulator.settle(ended, 'succeed')
      expect(await stream.ended).toBe(true)
      expect(stream.statuses.at(-1)).toBe('succeed')
      const later = lab.simulator.requests.slice(before)
      expect(later.map(({ path }) => path)).toEqual([`/v1/videos/text2video/${ended}`])
      expect(later[0]?.headers['authorization']).toBe(`Bearer ${ALICE}`)
    })

    it('is never used in the background: the task is not polled', async () => {
      await alice.created()
      lab.simulator.reset()
      const known = new VideoCaller(lab.gateway, TEST_KEY)
      const id = await known.created()
      // Long enough for every task to have its turn many times.
      while (lab.second.requests.length < 20) await lab.second.nextRequest()
      expect(lab.simulator.requests).toEqual([])
      lab.second.settle(id, 'failed')
    })
  })

  describe('a key of the gateway', () => {
    it('is never passed on', async () => {
      const known = new VideoCaller(lab.gateway, TEST_KEY)
      const id = await known.created()
      expect(asked()).toEqual([])
      expect(lab.second.creates.at(-1)?.id).toBe(id)
      expect(lab.second.lastRequest?.headers['authorization']).not.toContain(TEST_KEY)
      expect((await known.read(id)).status).toBe(200)
      lab.second.settle(id, 'failed')
    })
  })
})
