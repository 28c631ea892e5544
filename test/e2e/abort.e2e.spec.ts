import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { LASTING_CALLS, readAndLeave, timeAbort, type LastingCall } from '../support/aborted-calls.js'
import { chat, CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { TEST_KEY } from '../support/gateway.js'
import { OPENAI_CLIENTS } from '../support/openai-clients.js'
import { startP1Gateway, type P1Gateway } from '../support/p1-gateway.js'
import { sendRaw } from '../support/raw-http.js'

/** The promise: an upstream whose caller has left is aborted within a second. */
const PROMISED_MS = 1_000

let lab: P1Gateway

beforeAll(async () => {
  lab = await startP1Gateway({ withSecond: true })
})
beforeEach(() => {
  lab.simulator.reset()
  lab.second.reset()
})
afterAll(() => lab.close())

/** The request on a socket of the caller's own, which can be destroyed at any moment. */
function sendOnSocket({ path, body }: LastingCall, requestId: string, length = Buffer.byteLength(body)): Socket {
  const socket = connect(Number(new URL(lab.gateway.url).port), '127.0.0.1').on('error', () => undefined)
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: gateway',
    `authorization: Bearer ${TEST_KEY}`,
    'content-type: application/json',
    `content-length: ${length}`,
    `x-request-id: ${requestId}`,
  ]
  socket.resume().write(`${head.join('\r\n')}\r\n\r\n${body}`)
  return socket
}

describe('a caller who destroys the connection', () => {
  it.each(LASTING_CALLS)('$name ends the work of the upstream within a second', async (call) => {
    const requestId = `left-${call.name.replaceAll(' ', '-')}`
    lab.simulator.queueFault(call.fault)
    const { elapsedMs } = await timeAbort(lab.simulator, () => {
      const socket = sendOnSocket(call, requestId)
      return () => socket.destroy()
    })
    expect(elapsedMs).toBeLessThan(PROMISED_MS)
    expect(await lab.gateway.logLine(requestId)).toMatchObject({ status: 499, channel: 'first', attempts: 1 })
    // The channel is not marked: the next call goes to it, not to the second one.
    expect((await sendRaw(lab.gateway.url, { path: CHAT_PATH, body: chatText('Hello') })).status).toBe(200)
    expect([lab.simulator.requests.length, lab.second.requests.length]).toEqual([2, 0])
  })

  it('before the body is whole never reaches an upstream', async () => {
    const begun = once(lab.gateway.server, 'request')
    const [call] = LASTING_CALLS as readonly [LastingCall]
    const socket = sendOnSocket(call, 'left-half', 1_000_000)
    await begun
    socket.destroy()
    expect(await lab.gateway.logLine('left-half')).toMatchObject({ status: 499, attempts: 0 })
    expect(lab.simulator.requests).toEqual([])
  })
})

describe.each(OPENAI_CLIENTS)('a caller who aborts with %s', (_name, makeClient) => {
  it('ends the work of the upstream before the answer', async () => {
    lab.simulator.queueFault('hang')
    const controller = new AbortController()
    const { elapsedMs } = await timeAbort(lab.simulator, () => {
      const { signal } = controller
      const wanted = makeClient(lab.gateway).chat.completions.create(chat('Hello'), { signal })
      wanted.catch(() => undefined)
      return () => {
        controller.abort()
      }
    })
    expect(elapsedMs).toBeLessThan(PROMISED_MS)
  })

  it('ends the work of the upstream in the middle of a stream', async () => {
    lab.simulator.queueFault('stall')
    const stream = await makeClient(lab.gateway).chat.completions.create({ ...chat('#chunks=20'), stream: true })
    const aborted = lab.simulator.nextAbort()
    for await (const chunk of stream) {
      expect(chunk.object).toBe('chat.completion.chunk')
      break
    }
    const leftAtMs = performance.now()
    stream.controller.abort()
    await aborted
    expect(performance.now() - leftAtMs).toBeLessThan(PROMISED_MS)
  })
})

describe('many callers who leave', () => {
  it('leave no request and no socket behind', async () => {
    const call = LASTING_CALLS[3] as LastingCall
    const leaveOnce = async (): Promise<void> => {
      lab.simulator.queueFault('stall')
      const aborted = lab.simulator.nextAbort()
      await readAndLeave(lab.gateway.url, call)
      await aborted
    }
    await leaveOnce()
    const openBefore = lab.simulator.openConnections
    for (let left = 0; left < 50; left++) await leaveOnce()
    await lab.simulator.idle()
    expect(lab.simulator.activeRequests).toBe(0)
    expect(lab.simulator.openConnections).toBeLessThanOrEqual(openBefore + 1)
  })
})
