import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import {
  type SessionOptions,
  startSessions,
  type TestSession,
  type TestSessions,
} from '../../test/support/realtime-session.js'

let sessions: TestSessions
beforeEach(async () => {
  sessions = await startSessions()
})
afterEach(() => sessions.close())

const CREATE = { type: 'response.create', event_id: 'mine' }
const CREATED = { type: 'response.created', response: { id: 'resp_1', output: [] } }
const WORD = { type: 'response.output_text.delta', delta: 'Hello' }
const USAGE = { total_tokens: 70, input_tokens: 40, output_tokens: 30 }
const DONE = { type: 'response.done', response: { id: 'resp_1', status: 'completed', usage: USAGE } }
const RESTARTING = { code: 1001, reason: 'the gateway is restarting' }

const open = (options: SessionOptions = {}): Promise<TestSession> =>
  sessions.open({ clientDialect: 'ga', upstreamDialect: 'ga', ...options })

/** The upstream says it, and the client has heard it. */
async function say({ client, upstream }: TestSession, ...events: readonly object[]): Promise<void> {
  const heard = client.count(client.received.length + events.length)
  for (const event of events) upstream.send(event)
  await heard
}

/** The client says it, and the upstream has heard it. */
async function ask({ client, upstream }: TestSession, event: object): Promise<void> {
  const heard = upstream.count(upstream.received.length + 1)
  client.send(event)
  await heard
}

/** Resolves when all that the client has sent has been judged. */
async function judged({ client }: TestSession): Promise<void> {
  const refused = client.count(client.received.length + 1)
  client.send({ type: 'nothing' })
  await refused
}

const typesOf = (events: readonly Record<string, unknown>[]): unknown[] => events.map(({ type }) => type)

describe('A session that is to finish', () => {
  it.each<[string, readonly object[]]>([
    ['in which nobody has asked for anything', []],
    ['that has its answer', [CREATED, WORD, DONE]],
    ['whose answer has failed', [CREATED, { type: 'response.done', response: { id: 'resp_1', status: 'failed' } }]],
  ])('%s is closed with 1001 at once, on both sides', async (_which, events) => {
    const opened = await open()
    await say(opened, ...events)
    opened.session.finish()
    expect(await Promise.all([opened.client.closed, opened.upstream.closed])).toEqual([
      RESTARTING,
      { code: 1001, reason: '' },
    ])
    await opened.session.ended
    expect(opened.session.endCause).toBe('drained')
    expect(opened.client.received).toHaveLength(events.length)
  })

  it('is closed when the answer that its client has asked for has ended, and has that answer whole', async () => {
    const opened = await open()
    const { client, entries, session } = opened
    await ask(opened, CREATE)
    session.finish()
    session.finish()
    await say(opened, CREATED, WORD, WORD)
    expect(session.endCause).toBeUndefined()
    opened.upstream.send(DONE)
    expect(await client.closed).toEqual(RESTARTING)
    await session.ended
    expect(client.events()).toEqual([CREATED, WORD, WORD, DONE])
    expect(entries).toMatchObject([{ units: USAGE, estimated: false }])
    expect(entries[0]?.outcome).toBeUndefined()
    expect(opened.call.log.failure).toBeUndefined()
  })

  it.each<[string, object]>([
    ['that it has begun by itself', CREATED],
    ['of which it has not said that it begins', WORD],
  ])('is not closed while its upstream is at an answer %s', async (_how, event) => {
    const opened = await open()
    await say(opened, event)
    opened.session.finish()
    await say(opened, WORD)
    expect(opened.session.endCause).toBeUndefined()
    opened.upstream.send(DONE)
    expect(await opened.client.closed).toEqual(RESTARTING)
    expect(typesOf(opened.client.events()).at(-1)).toBe('response.done')
  })

  it('is not closed before the last of several answers has ended', async () => {
    const opened = await open()
    const other = (event: object): object => JSON.parse(JSON.stringify(event).replace('resp_1', 'resp_2')) as object
    await say(opened, CREATED, other(CREATED))
    opened.session.finish()
    await say(opened, DONE)
    expect(opened.session.endCause).toBeUndefined()
    opened.upstream.send(other(DONE))
    expect(await opened.client.closed).toEqual(RESTARTING)
  })

  it('is closed when its upstream refuses the answer that was asked for', async () => {
    const opened = await open()
    await ask(opened, CREATE)
    opened.session.finish()
    const error = { type: 'invalid_request_error', code: 'invalid_value', message: 'No.', event_id: 'mine' }
    opened.upstream.send({ type: 'error', error })
    expect(await opened.client.closed).toEqual(RESTARTING)
    expect(typesOf(opened.client.events())).toEqual(['error'])
  })

  it('begins nothing more: only a cancel goes on to its upstream, and wrong events are answered as ever', async () => {
    const opened = await open()
    const { client, session, upstream } = opened
    await say(opened, CREATED)
    session.finish()
    client.send({ type: 'input_audio_buffer.append', audio: 'AAAA' })
    client.send(CREATE)
    client.send({ type: 'session.update', session: { type: 'realtime' } })
    await judged(opened)
    await ask(opened, { type: 'response.cancel' })
    expect(typesOf(upstream.events())).toEqual(['response.cancel'])
    upstream.send({ type: 'response.done', response: { id: 'resp_1', status: 'cancelled', usage: USAGE } })
    expect(await client.closed).toEqual(RESTARTING)
    expect(typesOf(client.events())).toEqual(['response.created', 'error', 'response.done'])
    expect(opened.entries).toMatchObject([{ units: USAGE, estimated: false }])
  })

  it('ends in mid-answer once the grace time is over, with an estimate of what was said', async () => {
    const opened = await open()
    await say(opened, CREATED, WORD)
    opened.session.finish()
    await say(opened, WORD)
    opened.session.drain()
    expect(await opened.client.closed).toEqual(RESTARTING)
    await opened.session.ended
    expect(opened.entries).toMatchObject([{ units: { output_tokens: 2 }, estimated: true, outcome: 'refused' }])
  })

  it('ends when its client leaves, though the answer has not ended', async () => {
    const opened = await open()
    await say(opened, CREATED)
    opened.session.finish()
    opened.client.socket.close(1000)
    expect(await opened.upstream.closed).toEqual({ code: 1000, reason: '' })
    await opened.session.ended
    expect(opened.session.endCause).toBe('client_closed')
    expect(opened.entries).toMatchObject([{ outcome: 'caller_left' }])
  })

  it('ends when its upstream falls silent in the answer', async () => {
    const opened = await open({ limits: { realtimeIdleMs: 300 } })
    await say(opened, CREATED)
    opened.session.finish()
    expect(await opened.client.closed).toEqual({ code: 1001, reason: 'idle timeout' })
    expect(opened.session.endCause).toBe('idle')
  })

  it('ends with its upstream', async () => {
    const opened = await open()
    await say(opened, CREATED)
    opened.session.finish()
    const closed = once(opened.client.socket, 'close')
    opened.upstream.socket.close(1011, 'out of order')
    expect((await closed)[0]).toBe(1011)
    expect(opened.session.endCause).toBe('upstream_closed')
  })
})
