import { readdirSync, readlinkSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { startP3Simulator } from '@multi-model-gateway/sandbox/p3/p3.simulator.js'
import type { Simulator } from '@multi-model-gateway/sandbox/server/simulator-server.js'
import { eventually } from '../support/eventually.js'
import { openRaw, SPEECH_PATH, startGateway, type TestGateway } from '../support/gateway.js'
import { HELD_GROWTH_BYTES, readWatching } from '../support/held-memory.js'
import { p3Channel, p3Text, UPSTREAM_KEY } from '../support/provider-gateways.js'
import { type CountingProxy, startCountingProxy } from '../support/proxies.js'

const MEGABYTE = 1_000_000
/** Twice as much travels as hexadecimal digits. */
const AUDIO_BYTES = 72 * MEGABYTE
/** What the kernel's buffers of three loopback hops may hold for a reader who does not read. */
const IN_FLIGHT_BYTES = 64 * MEGABYTE

// Hundreds of megabytes through four hops of one process: slow where another worker shares the core.
jest.setTimeout(180_000)

let simulator: Simulator
let proxy: CountingProxy
let gateway: TestGateway

beforeAll(async () => {
  simulator = await startP3Simulator({ apiKey: UPSTREAM_KEY })
  proxy = await startCountingProxy(simulator.port)
  const channels = [p3Channel('first', simulator, { baseUrl: proxy.url })]
  gateway = await startGateway({ channels, sections: { ssrf: { allow: [new URL(proxy.url).host] } } })
})
afterAll(async () => {
  await gateway.close()
  await proxy.close()
  await simulator.close()
})

const audio = (
  words: string,
  more: object = {},
  bytes = AUDIO_BYTES,
  { url }: TestGateway = gateway,
): Promise<IncomingMessage> =>
  openRaw(url, {
    path: SPEECH_PATH,
    body: p3Text(`${words} #bytes=${bytes}`, { response_format: 'pcm', ...more }),
  })

/** Temporary files without a name that this process holds open. */
const openSpools = (): number =>
  readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).includes('gateway-upload-')
    } catch {
      return false
    }
  }).length

describe('a speech of 72 MB by P3', () => {
  it.each([
    ['in many events', '', {}],
    ['in one event alone', '#oneshot', {}],
    ['that is repeated in the last event', '#aggregate', {}],
    ['in JSON in place of events', '#json', {}],
    ['with subtitles', '', { metadata: { subtitle_enable: true } }],
    ['behind a link', '', { metadata: { output_format: 'url' } }],
  ])('%s passes without being held', async (_name, word, more) => {
    const { bytes, growthBytes } = await readWatching(() => audio(word, more))
    expect(bytes).toBe(AUDIO_BYTES)
    expect(growthBytes).toBeLessThan(HELD_GROWTH_BYTES)
    if (process.platform === 'linux') await eventually(() => openSpools() === 0)
  })

  it('passes as events without being held', async () => {
    const { bytes, growthBytes } = await readWatching(() => audio('', { stream_format: 'sse' }))
    expect(bytes).toBeGreaterThan((AUDIO_BYTES * 4) / 3)
    expect(growthBytes).toBeLessThan(HELD_GROWTH_BYTES)
  })

  it('waits at the upstream for a reader who does not read', async () => {
    const own = await startCountingProxy(simulator.port)
    const patient = await startGateway({ channels: [p3Channel('first', simulator, { baseUrl: own.url })] })
    try {
      const stalled = await audio('', {}, 2 * AUDIO_BYTES, patient)
      // Meanwhile whole speeches pass by.
      await readWatching(() => audio(''))
      const [sent = 0] = own.sentBytes
      expect(sent).toBeGreaterThan(0)
      expect(sent).toBeLessThan(IN_FLIGHT_BYTES)
      let late = 0
      for await (const chunk of stalled as AsyncIterable<Buffer>) late += chunk.length
      expect(late).toBe(2 * AUDIO_BYTES)
    } finally {
      await patient.close()
      await own.close()
    }
  })
})
