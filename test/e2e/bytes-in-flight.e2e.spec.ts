import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Admission } from '../../src/overload/admission.js'
import { eventually } from '../support/eventually.js'
import { startGateway, type TestGateway } from '../support/gateway.js'
import { sendRaw } from '../support/raw-http.js'
import { type RawUpstream, startRawUpstream } from '../support/raw-upstream.js'

const IN_FLIGHT_BYTES = 4_000_000
const ANSWER = '{"id":"c","object":"chat.completion","choices":[]}'

let upstream: RawUpstream
let gateway: TestGateway
let sockets: Socket[]
beforeEach(async () => {
  sockets = []
  upstream = await startRawUpstream((socket) => {
    socket.write(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${ANSWER.length}\r\n\r\n${ANSWER}`,
    )
  })
  const keys = ['a', 'b'].map((id) => ({ id, key: id }))
  const channel = { provider: 'p1', baseUrl: `http://127.0.0.1:${upstream.port}`, models: ['m', 't'] }
  gateway = await startGateway({
    channels: [
      { ...channel, id: 'own', credentials: 'k' },
      { ...channel, id: 'callers', credentials: 'caller' },
    ],
    keys,
    sections: {
      admission: { bytesInFlight: IN_FLIGHT_BYTES },
      models: [{ id: 't', class: 'stt-standard', providers: ['p1'] }],
    },
  })
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await gateway.close()
  await upstream.close()
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
  const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1').on('error', () => undefined)
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
  it('are those of every body on its way, and given back when it is over', async () => {
    const form = 'multipart/form-data; boundary=b'
    stall('a', 'content-length: 300000', 10)
    await eventually(() => bytes() === 300_000)
    stall('b', 'content-length: 5000000', 10, '/v1/audio/transcriptions', form)
    await eventually(() => bytes() === 300_000 + 1_048_576)
    for (const socket of sockets) socket.destroy()
    await eventually(() => bytes() === 0)
    expect((await chat('a', 100_000)).status).toBe(200)
    await eventually(() => bytes() === 0)
  })

  it('of bodies without a length are no more than have come, give or take', async () => {
    for (let index = 0; index < 5; index++) stall('a', 'transfer-encoding: chunked', 100_000)
    await eventually(() => bytes() === 5 * 262_144)
    expect((await chat('a', 1_000_000)).status).toBe(200)
    expect((await chat('b', 1_000_000)).status).toBe(200)
  })

  it.each([
    ['a', 'b'],
    ['bearer-of-a', 'bearer-of-b'],
  ])('leave every caller its share, whatever another one sends: with the keys %s and %s', async (greedy, other) => {
    for (let index = 0; index < 8; index++) stall(greedy, 'content-length: 500000', 100)
    await eventually(() => bytes() === IN_FLIGHT_BYTES)
    const refused = await chat(other, 500_000)
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5'])
    sockets[0]?.destroy()
    await eventually(() => bytes() === IN_FLIGHT_BYTES - 500_000)
    expect((await chat(greedy, 100_000)).status).toBe(503)
    expect((await chat(other, 400_000)).status).toBe(200)
  })
})
