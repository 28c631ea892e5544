import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals'
import { openRaw, SPEECH_PATH } from '../support/gateway.js'
import { HELD_GROWTH_BYTES, readWatching } from '../support/held-memory.js'
import { type P2Gateway, p2Text, startP2Gateway } from '../support/provider-gateways.js'

const BYTES_PER_SECOND = 48_000
/** Three times the ten minutes that any caller requests, so that buffering it would be measurable. */
const AUDIO_BYTES = 30 * 60 * BYTES_PER_SECOND

jest.setTimeout(180_000)

let lab: P2Gateway

beforeAll(async () => {
  lab = await startP2Gateway()
})
afterAll(async () => {
  await lab.close()
})

describe('half an hour of speech from P2', () => {
  it.each([
    ['pcm', 'audio', AUDIO_BYTES],
    ['wav', 'audio', AUDIO_BYTES + 44],
    ['mp3', 'audio', AUDIO_BYTES],
    ['pcm', 'sse', (AUDIO_BYTES * 4) / 3],
  ])('passes as %s, %s without being held', async (format, form, leastBytes) => {
    const body = p2Text(`#bytes=${AUDIO_BYTES}`, { response_format: format, stream_format: form })
    const { bytes, growthBytes } = await readWatching(() => openRaw(lab.gateway.url, { path: SPEECH_PATH, body }))
    expect(bytes).toBeGreaterThanOrEqual(leastBytes)
    expect(growthBytes).toBeLessThan(HELD_GROWTH_BYTES)
  })
})
