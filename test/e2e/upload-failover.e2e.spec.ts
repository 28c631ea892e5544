import { afterEach, describe, expect, it } from '@jest/globals'
import { startP1Simulator } from '@multi-model-gateway/sandbox/p1/p1.simulator.js'
import type { FaultName } from '@multi-model-gateway/sandbox/server/faults.js'
import { form, sha1, spoolsLeft, upload, wavOf } from '../support/audio-uploads.js'
import { eventually } from '../support/eventually.js'
import { startGateway } from '../support/gateway.js'
import { p1Channel, UPSTREAM_KEY, withP1Gateway } from '../support/p1-gateway.js'
import { errorOf, type RawRequest, sendRaw } from '../support/raw-http.js'
import { startRawUpstream } from '../support/raw-upstream.js'
import { SHORT_TIMEOUTS } from '../support/upstream-faults.js'

const REPEATABLE_BYTES = 10 * 1024 * 1024
const TWO = { withSecond: true }

afterEach(() => eventually(() => spoolsLeft().length === 0))

const request = (file: Buffer, model = 'whisper-1'): RawRequest =>
  upload(
    form(
      [
        ['language', 'en'],
        ['model', model],
        ['prompt', 'Zoë'],
      ],
      file,
    ),
  )

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

  it('because nobody listens there is sent to the second, whatever its size', async () => {
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
    const hasty = await startRawUpstream((socket) => {
      socket.write(
        `HTTP/1.1 ${status}\r\ncontent-length: 2\r\ncontent-type: application/json\r\nconnection: ${connection}\r\n\r\n{}`,
      )
      if (connection === 'close') socket.end()
    })
    const second = await startP1Simulator({ apiKey: UPSTREAM_KEY })
    const first = p1Channel('first', second, { baseUrl: `http://127.0.0.1:${hasty.port}` })
    const gateway = await startGateway({ channels: [first, p1Channel('second', second, { priority: 1 })] })
    try {
      const answer = await sendRaw(gateway.url, request(file))
      expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 })
      expect(second.lastRequest?.parts?.[0]?.sha1).toBe(sha1(file))
    } finally {
      await gateway.close()
      await second.close()
      await hasty.close()
    }
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
