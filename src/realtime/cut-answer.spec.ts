import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { startSessions, type TestSession, type TestSessions } from '../../test/support/realtime-session.js'

let sessions: TestSessions
beforeEach(async () => {
  sessions = await startSessions()
})
afterEach(() => sessions.close())

const PCM_SECOND = 48_000

const created = (id = 'resp_1'): object => ({ type: 'response.created', response: { id, output: [] } })
const spoken = (seconds: number): object => ({
  type: 'response.output_audio.delta',
  delta: Buffer.alloc(seconds * PCM_SECOND).toString('base64'),
})
const written = { type: 'response.output_audio_transcript.delta', delta: 'Hello' }
const usage = {
  total_tokens: 70,
  input_tokens: 40,
  output_tokens: 30,
  output_token_details: { text_tokens: 2, audio_tokens: 28 },
}
const done = (status = 'completed', figures: object | null = usage): object => ({
  type: 'response.done',
  response: { status, usage: figures },
})

/** Two words and a second and a half: 30 tokens of sound. */
const BEGUN = [created(), written, spoken(1), written, spoken(0.5)]
const ESTIMATE = {
  total_tokens: 32,
  input_tokens: 0,
  output_tokens: 32,
  input_token_details: { text_tokens: 0, audio_tokens: 0 },
  output_token_details: { text_tokens: 2, audio_tokens: 30 },
}

/** A session in which all of these have reached the client. */
async function after(events: readonly object[]): Promise<TestSession> {
  const opened = await sessions.open({ clientDialect: 'ga', upstreamDialect: 'ga', limits: { realtimeIdleMs: 60_000 } })
  for (const event of events) opened.upstream.send(event)
  await opened.client.count(events.length)
  return opened
}

describe('An answer that is cut off', () => {
  it.each<[string, string, (session: TestSession) => void]>([
    [
      'the client closes',
      'caller_left',
      ({ client }) => {
        client.socket.close()
      },
    ],
    [
      'the client vanishes',
      'caller_left',
      ({ client }) => {
        client.socket.terminate()
      },
    ],
    [
      'the upstream vanishes',
      'upstream_failed',
      ({ upstream }) => {
        upstream.socket.terminate()
      },
    ],
    [
      'the upstream closes as if nothing were',
      'upstream_failed',
      ({ upstream }) => {
        upstream.socket.close(1000)
      },
    ],
    [
      'the gateway drains',
      'refused',
      ({ session }) => {
        session.drain()
      },
    ],
    [
      'the key is revoked',
      'refused',
      ({ session }) => {
        session.revoke()
      },
    ],
  ])('because %s is recorded once, as an estimate, %s', async (_why, outcome, end) => {
    const opened = await after(BEGUN)
    end(opened)
    await opened.session.ended
    const { call, entries } = opened
    const common = { call, channelId: 'p1-main', model: 'gpt-realtime' }
    expect(entries).toEqual([{ ...common, kind: 'response', units: ESTIMATE, estimated: true, outcome }])
    expect(call.log.usage).toEqual({ units: ESTIMATE, estimated: true })
  })

  it.each<[string, object]>([
    ['too old', { realtimeAgeMs: 300 }],
    ['idle', { realtimeIdleMs: 300 }],
  ])('because the session is %s is recorded as well', async (_why, limits) => {
    const { client, entries, session, upstream } = await sessions.open({
      clientDialect: 'ga',
      upstreamDialect: 'ga',
      limits,
    })
    for (const event of BEGUN) upstream.send(event)
    await Promise.all([client.closed, session.ended])
    expect(entries).toMatchObject([{ units: ESTIMATE, estimated: true, outcome: 'refused' }])
  })

  it('counts from its first piece where the upstream has not said that it begins', async () => {
    const { client, entries, session } = await after([written])
    client.socket.close()
    await session.ended
    expect(entries).toMatchObject([{ units: { output_tokens: 1 }, estimated: true }])
  })

  it('is recorded though nothing of it has come', async () => {
    const { client, entries, session } = await after([created()])
    client.socket.close()
    await session.ended
    expect(entries).toMatchObject([{ units: { total_tokens: 0 }, estimated: true, outcome: 'caller_left' }])
  })

  it('leaves what earlier answers have reported as it is', async () => {
    const { call, client, entries, session } = await after([created(), written, spoken(3), done(), ...BEGUN])
    client.socket.close()
    await session.ended
    expect(entries).toMatchObject([
      { units: usage, estimated: false },
      { units: ESTIMATE, estimated: true },
    ])
    expect(call.log.usage).toMatchObject({ units: { output_tokens: 62 }, estimated: true })
  })

  it('is counted beside another one that has ended, less what that has reported', async () => {
    const { client, entries, session } = await after([...BEGUN, created('resp_2'), spoken(1), done()])
    client.socket.close()
    await session.ended
    expect(entries).toMatchObject([
      { units: usage, estimated: false },
      { units: { output_token_details: { text_tokens: 0, audio_tokens: 22 } }, estimated: true },
    ])
    // Nobody knows which piece was whose.
    expect(entries[0]?.estimate).toBeUndefined()
  })
})

describe('An answer that has ended', () => {
  it.each<[string, string]>([
    ['completely', 'completed'],
    ['because it was cancelled', 'cancelled'],
  ])('%s is recorded by the figures of its upstream, and the estimate beside them', async (_how, status) => {
    const { call, client, entries, session } = await after([...BEGUN, done(status)])
    client.socket.close()
    await session.ended
    expect(entries).toMatchObject([{ units: usage, estimated: false }])
    expect(entries[0]?.estimate).toEqual(ESTIMATE)
    expect(call.log.usage).toEqual({ units: usage, estimated: false })
  })

  it('after its client left is recorded in the same way', async () => {
    const { client, entries, near, session, upstream } = await after(BEGUN)
    near.client.once('close', () => {
      upstream.send(done('cancelled'))
    })
    client.socket.terminate()
    await session.ended
    expect(entries).toMatchObject([{ units: usage, estimated: false, estimate: ESTIMATE }])
  })

  it('without figures, as it has failed, is not estimated', async () => {
    const { client, entries, session } = await after([...BEGUN, done('failed', null)])
    client.socket.close()
    await session.ended
    expect(entries).toEqual([])
  })
})
