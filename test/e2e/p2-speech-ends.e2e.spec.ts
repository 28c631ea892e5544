import { once } from 'node:events'
import { type ClientRequest, request } from 'node:http'
import { describe, expect, it } from '@jest/globals'
import type { SocketFault } from '@multi-model-gateway/sandbox/server/websocket-protocol.js'
import { SPEECH_PATH } from '../support/chat-bodies.js'
import { TEST_KEY } from '../support/gateway.js'
import { p2Text, withP2Gateway } from '../support/p2-gateway.js'
import { openRaw, sendRaw } from '../support/raw-http.js'

/** The promise: an upstream whose caller has left is aborted within a second. */
const PROMISED_MS = 1_000
const SENTENCE = 'Hello there, this is a sentence that takes the upstream some frames to say.'
const LONG = '#bytes=60000000'

function begin(url: string, body: string, requestId: string): ClientRequest {
  const headers = {
    authorization: `Bearer ${TEST_KEY}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'x-request-id': requestId,
  }
  const outgoing = request(new URL(SPEECH_PATH, url), { method: 'POST', agent: false, headers })
  outgoing.on('error', () => undefined)
  outgoing.end(body)
  return outgoing
}

const SILENCES: readonly (readonly [string, SocketFault, string])[] = [
  ['while the upgrade is not answered', { kind: 'hang' }, 'handshake'],
  ['before the first audio', '#hang', 'session'],
]

describe('a caller of P2 who leaves', () => {
  it.each(SILENCES)('%s ends the connection of the upstream within a second', async (_name, fault, event) => {
    await withP2Gateway({ withSecond: true }, async ({ gateway, simulator, second }) => {
      simulator.queueFault(fault)
      const arrived = new Promise((resolve) => simulator.once(event as 'session', resolve))
      const closed = simulator.nextClose()
      const outgoing = begin(gateway.url, p2Text(SENTENCE), 'left-silence')
      await arrived
      const leftAtMs = performance.now()
      outgoing.destroy()
      await closed
      expect(performance.now() - leftAtMs).toBeLessThan(PROMISED_MS)
      expect(await gateway.logLine('left-silence')).toMatchObject({ status: 499, channel: 'first', attempts: 1 })
      expect(second.sessions).toEqual([])
    })
  })

  it.each(['audio', 'sse'])('in the middle of %s ends it within a second, too', async (stream_format) => {
    await withP2Gateway({ simulator: { gapMs: 60_000 } }, async ({ gateway, simulator }) => {
      simulator.queueFault('#slow')
      const body = p2Text(SENTENCE, { stream_format })
      const response = await openRaw(gateway.url, { path: SPEECH_PATH, body })
      await once(response, 'data')
      const aborted = simulator.nextAbort()
      const leftAtMs = performance.now()
      response.destroy()
      const session = await aborted
      expect(performance.now() - leftAtMs).toBeLessThan(PROMISED_MS)
      expect(session.end?.by).toBe('client')
      await simulator.idle()
      expect(simulator.openConnections).toBe(0)
    })
  })

  it('between two pieces asks for no further one', async () => {
    await withP2Gateway({}, async ({ gateway, simulator }) => {
      const response = await openRaw(gateway.url, { path: SPEECH_PATH, body: p2Text('Hello there. '.repeat(200)) })
      await once(response, 'data')
      response.destroy()
      await simulator.idle()
      const { length } = simulator.sessions
      expect(length).toBeLessThan(3)
      expect((await sendRaw(gateway.url, { path: SPEECH_PATH, body: p2Text('Hello.') })).status).toBe(200)
      expect(simulator.sessions).toHaveLength(length + 1)
    })
  })
})

describe('a caller of P2 who reads slowly', () => {
  it.each(['audio', 'sse'])('slows the upstream, and loses nothing of %s', async (stream_format) => {
    const channel = { timeouts: { idleMs: 400 } }
    await withP2Gateway({ channel }, async ({ gateway, simulator }) => {
      const arrived = simulator.nextSession()
      const body = p2Text(LONG, { response_format: 'pcm', stream_format })
      const response = await openRaw(gateway.url, { path: SPEECH_PATH, body })
      const session = await arrived
      // Longer than the upstream may be silent: a pause of the caller's is not its silence.
      expect(await session.nextStall(800)).toBe(true)
      expect(session.sentBytes).toBeLessThan(40_000_000)
      let received = 0
      for await (const chunk of response) received += (chunk as Buffer).length
      if (stream_format === 'audio') expect(received).toBe(60_000_000)
      // Base64 takes a third more, and each event a little around it.
      else expect(received).toBeGreaterThan(80_000_000)
    })
  })
})

describe('a second channel at P2', () => {
  const FAULTS: readonly SocketFault[] = [
    '#err3003',
    '#err3005',
    '#err3006',
    '#err3031',
    '#errgrant',
    '#errquota',
    '#garbage',
    '#hang',
    { kind: 'reset' },
    { kind: 'hang' },
    { kind: 'status', status: 401, body: '{}' },
    { kind: 'status', status: 404, body: '' },
    { kind: 'status', status: 429, body: '{}' },
    { kind: 'status', status: 500, body: '' },
  ]
  const TWO = {
    withSecond: true,
    channel: { timeouts: { firstByteMs: 500 } },
    // One failure is enough.
    sections: { breaker: { failures: 1 } },
  }

  it.each(FAULTS)('speaks when the first fails with %j', async (fault) => {
    await withP2Gateway(TWO, async ({ gateway, simulator, second }) => {
      simulator.queueFault(fault)
      const answer = await sendRaw(gateway.url, { path: SPEECH_PATH, body: p2Text(SENTENCE) })
      expect(answer).toMatchObject({ status: 200, complete: true })
      expect([simulator.sessions.length, second.sessions.length]).toEqual([1, 1])
      const line = await gateway.logLine(String(answer.headers['x-request-id']))
      expect(line).toMatchObject({ attempts: 2, channel: 'second' })
      // The first is left alone for a while.
      expect((await sendRaw(gateway.url, { path: SPEECH_PATH, body: p2Text(SENTENCE) })).status).toBe(200)
      expect([simulator.sessions.length, second.sessions.length]).toEqual([1, 2])
    })
  })

  it.each(['#err3001', '#err3010', '#err3011', '#err3050'])(
    'is not asked when the caller is at fault (%s)',
    async (fault) => {
      await withP2Gateway(TWO, async ({ gateway, simulator, second }) => {
        simulator.queueFault(fault)
        expect((await sendRaw(gateway.url, { path: SPEECH_PATH, body: p2Text(SENTENCE) })).status).toBe(400)
        expect(second.sessions).toEqual([])
        expect((await sendRaw(gateway.url, { path: SPEECH_PATH, body: p2Text(SENTENCE) })).status).toBe(200)
        expect(simulator.sessions).toHaveLength(2)
      })
    },
  )

  it.each(['#cut', '#closeearly', '#errmid'])('never begins again what has begun (%s)', async (fault) => {
    await withP2Gateway(TWO, async ({ gateway, simulator, second }) => {
      simulator.queueFault(fault)
      const answer = await sendRaw(gateway.url, { path: SPEECH_PATH, body: p2Text(SENTENCE) })
      expect(answer).toMatchObject({ status: 200, complete: false })
      expect(second.sessions).toEqual([])
    })
  })
})
