import { readdirSync, readlinkSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { startP3Simulator } from '../../src/sandbox/p3/p3.simulator.js'
import type { Simulator } from '../../src/sandbox/simulator-server.js'
import { SPEECH_PATH } from '../support/chat-bodies.js'
import { startCountingProxy, type CountingProxy } from '../support/counting-proxy.js'
import { eventually } from '../support/eventually.js'
import { startGateway, type TestGateway } from '../support/gateway.js'
import { UPSTREAM_KEY } from '../support/p1-gateway.js'
import { p3Channel, p3Text } from '../support/p3-gateway.js'
import { openRaw } from '../support/raw-http.js'

const MEGABYTE = 1_000_000
/** Twice as much travels as hexadecimal digits. */
const AUDIO_BYTES = 48 * MEGABYTE
/** Gateway, simulator, proxy and reader share this process; each has a buffer or two in its hands. */
const GROWTH_BYTES = 32 * MEGABYTE
/** For what happens before the first byte. Every look is a full collection. */
const LOOK_EVERY_MS = 500
const LOOK_EVERY_BYTES = 12 * MEGABYTE
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

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Memory in use once garbage is gone: what is left is held by somebody. */
function heldBytes(): number {
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Reads to the end; resolves to the bytes read and the largest growth of what the whole process held meanwhile. */
async function readWatching(
  open: () => Promise<IncomingMessage>,
): Promise<{ readonly bytes: number; readonly growthBytes: number }> {
  const baseline = heldBytes()
  const timer = setInterval(look, LOOK_EVERY_MS)
  let growthBytes = 0
  let bytes = 0
  let lookedAt = 0
  function look(): void {
    growthBytes = Math.max(growthBytes, heldBytes() - baseline)
  }
  try {
    for await (const chunk of (await open()) as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes - lookedAt < LOOK_EVERY_BYTES) continue
      lookedAt = bytes
      look()
    }
  } finally {
    clearInterval(timer)
  }
  return { bytes, growthBytes }
}

/** Temporary files without a name that this process holds open. */
const openSpools = (): number =>
  readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).includes('gateway-upload-')
    } catch {
      return false
    }
  }).length

describe('a speech of 48 MB by P3', () => {
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
    expect(growthBytes).toBeLessThan(GROWTH_BYTES)
    if (process.platform === 'linux') await eventually(() => openSpools() === 0)
  })

  it('passes as events without being held', async () => {
    const { bytes, growthBytes } = await readWatching(() => audio('', { stream_format: 'sse' }))
    expect(bytes).toBeGreaterThan((AUDIO_BYTES * 4) / 3)
    expect(growthBytes).toBeLessThan(GROWTH_BYTES)
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
