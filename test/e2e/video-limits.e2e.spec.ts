import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { eventually } from '../support/eventually.js'
import { TEST_KEY } from '../support/gateway.js'
import { STORE_START_MS } from '../support/stores.js'
import { startVidgenGateway, type VidgenGateway } from '../support/task-gateways.js'
import { VideoCaller, videoText } from '../support/video-caller.js'

const MAXIMUM_BYTES = 62_914_560
const IN_FLIGHT_BYTES = 100_000

let lab: VidgenGateway
let text: VideoCaller
let multi: VideoCaller

beforeAll(async () => {
  lab = await startVidgenGateway({ sections: { admission: { bytesInFlight: IN_FLIGHT_BYTES } } })
  text = new VideoCaller(lab.gateway)
  multi = new VideoCaller(lab.gateway, TEST_KEY, 'multi-image2video')
}, STORE_START_MS)
beforeEach(() => {
  lab.simulator.reset()
  lab.proxy.release()
})
afterAll(() => lab.close())

/** A good create, filled up with blanks to this size. */
const bodyOf = (bytes: number, changes: object = {}): string =>
  videoText('multi-image2video', { ...changes }).padEnd(bytes, ' ')

describe('a create with images', () => {
  it('may be as large as the limit', async () => {
    const { status } = await multi.create(bodyOf(MAXIMUM_BYTES))
    expect(status).toBe(200)
    expect(lab.simulator.lastRequest?.receivedBytes).toBeGreaterThan(MAXIMUM_BYTES)
  })

  it('larger than that by one byte is a 413, and nobody is asked', async () => {
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
      const begun = once(lab.gateway.server, 'request')
      const socket = sendOnSocket(bodyOf(IN_FLIGHT_BYTES).slice(0, 5000), IN_FLIGHT_BYTES, `half-${round}`)
      await begun
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
  const socket = connect(Number(new URL(lab.gateway.url).port), '127.0.0.1').on('error', () => undefined)
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
