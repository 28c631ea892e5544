import type { IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import {
  CHAT_PATH,
  chatText,
  openRaw,
  SPEECH_PATH,
  speechText,
  startGateway,
  type TestGateway,
} from '../support/gateway.js'
import { HELD_GROWTH_BYTES, readWatching } from '../support/held-memory.js'
import { p1Channel, UPSTREAM_KEY } from '../support/provider-gateways.js'
import { type CountingProxy, startCountingProxy } from '../support/proxies.js'

const MEGABYTE = 1_000_000
const ANSWER_BYTES = 100 * MEGABYTE
/** What the kernel's buffers of three loopback hops may hold for a reader who does not read. */
const IN_FLIGHT_BYTES = 64 * MEGABYTE

// Hundreds of megabytes through four hops of one process: slow where another worker shares the core.
jest.setTimeout(180_000)

let simulator: Simulator
let proxy: CountingProxy
let gateway: TestGateway

beforeAll(async () => {
  simulator = await startP1Simulator({ apiKey: UPSTREAM_KEY })
  proxy = await startCountingProxy(simulator.port)
  gateway = await startGateway({ channels: [p1Channel('first', simulator, { baseUrl: proxy.url })] })
})
afterAll(async () => {
  await gateway.close()
  await proxy.close()
  await simulator.close()
})

const audio = (bytes: number, more: object = {}): Promise<IncomingMessage> =>
  openRaw(gateway.url, { path: SPEECH_PATH, body: speechText(`#bytes=${bytes}`, { response_format: 'pcm', ...more }) })

describe('an answer of 100 MB', () => {
  it('passes without being held, and a reader who stalls beside it pauses the upstream', async () => {
    await readWatching(() => audio(20 * MEGABYTE))
    const opened = proxy.sentBytes.length
    const stalled = await audio(ANSWER_BYTES)
    // The stalled call cannot reuse the connection of the one before only if that is busy; either way it is one of these.
    const stalledConnection = proxy.sentBytes.length === opened ? opened - 1 : opened
    const before = proxy.sentBytes[stalledConnection] ?? 0
    const { bytes, growthBytes } = await readWatching(() => audio(ANSWER_BYTES))
    expect(bytes).toBe(ANSWER_BYTES)
    expect(growthBytes).toBeLessThan(HELD_GROWTH_BYTES)
    const sent = (proxy.sentBytes[stalledConnection] ?? 0) - before
    expect(sent).toBeGreaterThan(0)
    expect(sent).toBeLessThan(IN_FLIGHT_BYTES)
    // Read on, the stalled answer arrives whole.
    let late = 0
    for await (const chunk of stalled as AsyncIterable<Buffer>) late += chunk.length
    expect(late).toBe(ANSWER_BYTES)
  })

  it('passes as events the gateway builds without being held', async () => {
    const { bytes, growthBytes } = await readWatching(() => audio(ANSWER_BYTES, { stream_format: 'sse' }))
    expect(bytes).toBeGreaterThan((ANSWER_BYTES * 4) / 3)
    expect(growthBytes).toBeLessThan(HELD_GROWTH_BYTES)
  })
})

describe('a chat stream of 50,000 events', () => {
  it('passes without being held', async () => {
    const body = chatText('#chunks=50000', { stream: true })
    const { bytes, growthBytes } = await readWatching(() => openRaw(gateway.url, { path: CHAT_PATH, body }))
    expect(bytes).toBeGreaterThan(15 * MEGABYTE)
    // The reader keeps up with events: what is held of them is little, not what loopback sockets take.
    expect(growthBytes).toBeLessThan(12 * MEGABYTE)
  })
})
