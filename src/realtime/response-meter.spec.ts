import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import {
  closes,
  drains,
  revokes,
  type SessionAct,
  startSessions,
  type TestSession,
  type TestSessions,
  vanishes,
} from '../../test/support/realtime-session.js'
import { FrameScan } from '../core/json-spans.js'
import { NextResponseEstimator } from './response-estimate.js'
import { ResponseUsageEstimator } from './response-meter.js'
import { sumOfUnits } from './session-usage.js'

interface Event {
  readonly type: string
  readonly [name: string]: unknown
}

function see(meter: ResponseUsageEstimator, ...events: readonly (Event | string)[]): void {
  for (const event of events) {
    const frame = Buffer.from(typeof event === 'string' ? event : JSON.stringify(event))
    const scan = FrameScan.of(frame)
    if (scan === undefined) throw new Error('no object')
    meter.onEvent(scan.type()?.type ?? '', frame, scan)
  }
}

const append = (meter: ResponseUsageEstimator, bytes: number): void => {
  meter.append(Buffer.byteLength(JSON.stringify({ type: 'input_audio_buffer.append', audio: base64(bytes) })))
}

const base64 = (bytes: number): string => Buffer.alloc(bytes).toString('base64')
const CREATED = { type: 'response.created', response: { id: 'resp_1' } }
const COMMITTED = { type: 'input_audio_buffer.committed' }
const userItem = (...content: readonly object[]): Event => ({
  type: 'conversation.item.added',
  item: { type: 'message', role: 'user', content },
})
const sound = (bytes: number, type = 'response.output_audio.delta'): Event => ({ type, delta: base64(bytes) })

const estimated = (input: readonly [number, number], output: readonly [number, number]): object => ({
  input_token_details: { text_tokens: input[0], audio_tokens: input[1] },
  output_token_details: { text_tokens: output[0], audio_tokens: output[1] },
})

describe('What an answer under way has spoken', () => {
  it.each(['response.audio.delta', 'response.output_audio.delta'])('is the length of each %s', (type) => {
    const meter = new ResponseUsageEstimator()
    see(meter, CREATED, sound(48_000, type), sound(24_001, type))
    expect(meter.estimate()).toMatchObject(estimated([0, 0], [0, 31]))
  })

  it.each<[string, Event]>([
    [
      'the session in GA',
      { type: 'session.updated', session: { audio: { output: { format: { type: 'audio/pcmu' } } } } },
    ],
    ['the session in beta', { type: 'session.created', session: { output_audio_format: 'g711_alaw' } }],
    ['itself', { type: 'response.created', response: { audio: { output: { format: { type: 'audio/pcma' } } } } }],
  ])('is measured in the format of %s', (_whose, event) => {
    const meter = new ResponseUsageEstimator()
    see(meter, event)
    if (event.type !== 'response.created') see(meter, CREATED)
    see(meter, sound(8000))
    expect(meter.estimate()).toMatchObject(estimated([0, 0], [0, 20]))
  })

  it.each([
    'response.text.delta',
    'response.output_text.delta',
    'response.audio_transcript.delta',
    'response.output_audio_transcript.delta',
    'response.function_call_arguments.delta',
    'response.mcp_call_arguments.delta',
  ])('is a token for each %s', (type) => {
    const meter = new ResponseUsageEstimator()
    see(meter, CREATED, { type, delta: 'Hel' }, { type, delta: 'lo' })
    expect(meter.estimate()).toMatchObject({ total_tokens: 2, output_tokens: 2, ...estimated([0, 0], [2, 0]) })
  })

  it('is nothing where a delta holds none, or no JSON', () => {
    const meter = new ResponseUsageEstimator()
    const type = 'response.output_audio.delta'
    see(
      meter,
      '{"type":"response.created",nope}'.replace('nope', '"a":nope'),
      { type },
      { type, delta: '' },
      { type, delta: 7 },
    )
    expect(meter.estimate()).toMatchObject(estimated([0, 0], [0, 0]))
  })

  it('is nothing while no answer is under way', () => {
    const meter = new ResponseUsageEstimator()
    see(meter, { type: 'session.created', session: {} }, userItem({ text: 'Hello' }), COMMITTED)
    expect(meter.estimate()).toBeUndefined()
    see(meter, CREATED, sound(4800))
    meter.end(undefined)
    expect(meter.estimate()).toBeUndefined()
  })
})

describe('What an answer under way has read', () => {
  it('is the audio that the upstream has found speech in', () => {
    const meter = new ResponseUsageEstimator()
    append(meter, 480_000)
    see(
      meter,
      { type: 'input_audio_buffer.speech_started', audio_start_ms: 1000 },
      { type: 'input_audio_buffer.speech_stopped', audio_end_ms: 3500 },
      COMMITTED,
      CREATED,
    )
    expect(meter.estimate()).toMatchObject(estimated([0, 25], [0, 0]))
  })

  it.each<[string, string, number]>([
    ['PCM', 'pcm16', 48_000],
    ['G.711', 'g711_ulaw', 8000],
  ])('is all audio of a client that commits by itself, in %s', (_what, format, bytesPerSecond) => {
    const meter = new ResponseUsageEstimator()
    see(meter, { type: 'session.updated', session: { input_audio_format: format } })
    append(meter, bytesPerSecond)
    append(meter, bytesPerSecond)
    see(meter, COMMITTED, CREATED)
    expect(meter.estimate()).toMatchObject(estimated([0, 20], [0, 0]))
  })

  it('is not the audio that was cleared, that is not committed, or that an earlier answer has read', () => {
    const meter = new ResponseUsageEstimator()
    append(meter, 48_000)
    see(meter, COMMITTED, CREATED)
    meter.end({})
    append(meter, 480_000)
    see(meter, { type: 'input_audio_buffer.cleared' })
    append(meter, 96_000)
    see(meter, COMMITTED)
    append(meter, 480_000)
    see(meter, CREATED)
    expect(meter.estimate()).toMatchObject(estimated([0, 20], [0, 0]))
  })

  it('is every four bytes of text that is not its own, and of its instructions and tools each time', () => {
    const meter = new ResponseUsageEstimator()
    see(meter, { type: 'session.updated', session: { instructions: 'Be brief', tools: [{ name: '12345678901' }] } })
    see(meter, userItem({ type: 'input_text', text: '1234' }, { type: 'input_audio', transcript: null }))
    see(meter, { type: 'conversation.item.created', item: { type: 'function_call_output', output: '12345678' } })
    see(meter, { type: 'conversation.item.created', item: { role: 'assistant', content: [{ text: 'not this' }] } })
    see(meter, CREATED)
    expect(meter.estimate()).toMatchObject(estimated([2 + 6 + 1 + 2, 0], [0, 0]))
    meter.end({})
    see(meter, CREATED)
    expect(meter.estimate()).toMatchObject(estimated([2 + 6, 0], [0, 0]))
  })

  it('is nothing of events that are laid out in another way', () => {
    const meter = new ResponseUsageEstimator()
    see(meter, { type: 'session.updated', session: 3 }, { type: 'conversation.item.added', item: [] })
    see(meter, { type: 'input_audio_buffer.speech_started', audio_start_ms: 'now' })
    see(meter, { type: 'input_audio_buffer.speech_stopped', audio_end_ms: 5 }, COMMITTED, CREATED)
    expect(meter.estimate()).toMatchObject(estimated([0, 0], [0, 0]))
  })
})

describe('What the next answer is expected to hear', () => {
  it('is the sound that the client has committed, though the upstream has not said so yet', () => {
    const meter = new ResponseUsageEstimator()
    append(meter, 96_000)
    expect(meter.estimateNext()).toMatchObject({ tokens: 0, audioSeconds: 10 })
    const commit = Buffer.from('{"type":"input_audio_buffer.commit"}')
    meter.send('input_audio_buffer.commit', commit)
    expect(meter.estimateNext()).toMatchObject({ tokens: commit.length / 4 + 20, audioSeconds: 12 })
    see(meter, COMMITTED)
    expect(meter.estimateNext()).toMatchObject({ audioSeconds: 12 })
    append(meter, 480_000)
    expect(meter.estimateNext()).toMatchObject({ audioSeconds: 12 })
    see(meter, CREATED)
    expect(meter.estimateNext()).toMatchObject({ tokens: 0, audioSeconds: 10 })
  })

  it('is not read by an answer that the client wants out of band', () => {
    const meter = new ResponseUsageEstimator()
    const item = Buffer.from(JSON.stringify({ type: 'conversation.item.create', item: { text: 'a'.repeat(4000) } }))
    const create = Buffer.from('{"type":"response.create","response":{"conversation":"none"}}')
    see(meter, { type: 'session.updated', session: { max_output_tokens: 50 } })
    append(meter, 48_000)
    see(meter, COMMITTED)
    meter.send('conversation.item.create', item)
    const expected = meter.estimateNext()
    expect(expected.tokens).toBe(Math.ceil(item.length / 4 + 10) + 50)
    meter.send('response.create', create)
    see(meter, { type: 'response.created', response: { id: 'apart', conversation_id: null } })
    meter.end({ input_tokens: 3, output_tokens: 4 }, true)
    expect(meter.estimateNext()).toEqual({ ...expected, tokens: (expected.tokens ?? 0) + 7 })
    see(meter, { type: 'response.created', response: { id: 'next', conversation_id: 'conv_1' } })
    expect(meter.estimateNext().tokens).toBe(57)
  })

  it('is read by whatever answer begins on an upstream that names no conversation', () => {
    const meter = new ResponseUsageEstimator()
    append(meter, 48_000)
    see(meter, COMMITTED, { type: 'response.created', response: { id: 'resp_1', conversation_id: null } })
    expect(meter.estimateNext()).toMatchObject({ tokens: 0, audioSeconds: 10 })
  })

  it('is read again by the one after it, as its own figures say', () => {
    const meter = new ResponseUsageEstimator()
    see(meter, { type: 'session.updated', session: { max_output_tokens: 50 } }, CREATED)
    meter.end({ input_tokens: 70, output_tokens: 30 })
    expect(meter.estimateNext()).toMatchObject({ tokens: 150, unboundedResponses: 0 })
    see(meter, CREATED)
    meter.end(undefined)
    expect(meter.estimateNext()).toMatchObject({ tokens: 150 })
  })
})

describe('An answer that is cut', () => {
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
    const opened = await sessions.open({
      clientDialect: 'ga',
      upstreamDialect: 'ga',
      limits: { realtimeIdleMs: 60_000 },
    })
    for (const event of events) opened.upstream.send(event)
    await opened.client.count(events.length)
    return opened
  }

  describe('while it is under way', () => {
    it.each<[string, string, SessionAct]>([
      ['the client closes', 'caller_left', closes('client')],
      ['the client vanishes', 'caller_left', vanishes('client')],
      ['the upstream vanishes', 'upstream_failed', vanishes('upstream')],
      ['the upstream closes as if nothing were', 'upstream_failed', closes('upstream', 1000)],
      ['the gateway drains', 'refused', drains],
      ['the key is revoked', 'refused', revokes],
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
      // Which piece was of which answer is unknown.
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
})

const frame = (event: object): Buffer => Buffer.from(JSON.stringify(event))
const create = (response?: object): Buffer => frame({ type: 'response.create', response })
const tokensOf = (event: Buffer): number => Math.ceil(event.length / 4)

const item = (...content: readonly object[]): Buffer =>
  frame({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })

describe('An answer is expected to read', () => {
  it('four bytes to a token of whatever was sent since the last one began, and of the event that asks for it', () => {
    const expected = new NextResponseEstimator()
    const [first, second] = [item({ type: 'input_text', text: 'x'.repeat(4000) }), create()]
    expected.send(first)
    expect(expected.estimate(0, second)).toMatchObject({
      tokens: Math.ceil((first.length + second.length) / 4),
      unboundedResponses: 1,
    })
    expect(expected.estimate(0)).toMatchObject({ tokens: tokensOf(first) })
    expected.begin()
    expect(expected.estimate(0)).toMatchObject({ tokens: 0 })
  })

  it('as much as the last one has read and said', () => {
    const expected = new NextResponseEstimator()
    expected.end({ total_tokens: 130, input_tokens: 100, output_tokens: 30 })
    expect(expected.estimate(0)).toMatchObject({ tokens: 130 })
    expected.end({ total_tokens: 240, input_tokens: 200, output_tokens: 40 })
    expect(expected.estimate(0)).toMatchObject({ tokens: 240 })
  })

  it('no less after an answer that read nothing', () => {
    const expected = new NextResponseEstimator()
    expected.end({ total_tokens: 130, input_tokens: 100, output_tokens: 30 })
    expected.end({ total_tokens: 0, input_tokens: 0, output_tokens: 0 })
    expect(expected.estimate(0)).toMatchObject({ tokens: 130 })
  })

  it('no less after an answer out of band, which is no part of the conversation', () => {
    const expected = new NextResponseEstimator()
    expected.end({ total_tokens: 130, input_tokens: 100, output_tokens: 30 })
    expected.end({ total_tokens: 12, input_tokens: 10, output_tokens: 2 }, true)
    expect(expected.estimate(0)).toMatchObject({ tokens: 130 })
    expected.end({ total_tokens: 60, input_tokens: 50, output_tokens: 10 })
    expect(expected.estimate(0)).toMatchObject({ tokens: 60 })
  })

  it('as much as the longest of an upstream that names no conversation of any answer', () => {
    const expected = new NextResponseEstimator()
    expected.end({ total_tokens: 130, input_tokens: 100, output_tokens: 30 }, true)
    expected.end({ total_tokens: 240, input_tokens: 200, output_tokens: 40 }, true)
    expect(expected.estimate(0)).toMatchObject({ tokens: 240 })
  })

  it('ten tokens for each second that it hears, and those seconds', () => {
    const expected = new NextResponseEstimator()
    expect(expected.estimate(2.54)).toMatchObject({ tokens: 26, audioSeconds: 12.6 })
  })

  it.each<[string, Record<string, unknown>, number]>([
    ['PCM', {}, 48_000],
    ['G.711', { input_audio_format: 'g711_ulaw' }, 8000],
  ])('sound in an item by its length, in %s, and not as text', (_what, session, bytesPerSecond) => {
    const expected = new NextResponseEstimator()
    expected.configure(session)
    const audio = Buffer.alloc(3 * bytesPerSecond).toString('base64')
    const event = item({ type: 'input_audio', audio })
    expected.send(event)
    expect(expected.estimate(0)).toMatchObject({
      tokens: Math.ceil((event.length - audio.length) / 4 + 30),
      audioSeconds: 13,
    })
  })

  it('a thousand tokens for a picture; a short one, and text that only looks like one, by their bytes', () => {
    const expected = new NextResponseEstimator()
    const long = `data:image/png;base64,${'A'.repeat(5000)}`
    const event = item({ type: 'input_image', image_url: long })
    expected.send(event)
    expect(expected.estimate(0)).toMatchObject({ tokens: Math.ceil((event.length - long.length) / 4 + 1000) })
    expected.begin()
    // As some languages write JSON.
    const escaped = Buffer.from(event.toString().replaceAll('/', '\\/'))
    expected.send(escaped)
    expect(expected.estimate(0)).toMatchObject({ tokens: Math.ceil((event.length - long.length) / 4 + 1000) })
    expected.begin()
    const text = item({ type: 'input_text', text: `"audio":"${'A'.repeat(5000)}"` })
    const short = item({ type: 'input_image', image_url: 'A'.repeat(1023) }, { text: 'x'.repeat(100) })
    expected.send(text)
    expected.send(short)
    expect(expected.estimate(0)).toMatchObject({ tokens: Math.ceil((text.length + short.length) / 4) })
  })
})

describe('An answer is expected to say', () => {
  it.each<[string, Record<string, unknown>]>([
    ['in GA', { max_output_tokens: 100 }],
    ['in beta', { max_response_output_tokens: 100 }],
  ])('as much as the session allows %s, and five seconds of that', (_where, session) => {
    const expected = new NextResponseEstimator()
    expected.configure(session)
    expect(expected.estimate(0)).toEqual({ tokens: 100, unboundedResponses: 0, audioSeconds: 5 })
    expected.configure({ max_output_tokens: 'inf' })
    expect(expected.estimate(0)).toEqual({ tokens: 0, unboundedResponses: 1, audioSeconds: 10 })
  })

  it('as much as it is asked for, whatever the session says', () => {
    const expected = new NextResponseEstimator()
    expected.configure({ max_output_tokens: 100, output_modalities: ['audio'] })
    const few = create({ max_output_tokens: 40 })
    expect(expected.estimate(0, few)).toEqual({ tokens: tokensOf(few) + 40, unboundedResponses: 0, audioSeconds: 2 })
    const any = create({ max_output_tokens: 'inf' })
    expect(expected.estimate(0, any)).toEqual({ tokens: tokensOf(any), unboundedResponses: 1, audioSeconds: 10 })
    const none = create({ max_output_tokens: null })
    expect(expected.estimate(0, none)).toMatchObject({ tokens: tokensOf(none) + 100, unboundedResponses: 0 })
  })

  it('next to no audio where it is in text: what is used up must show all the same', () => {
    const expected = new NextResponseEstimator()
    expect(expected.estimate(0, create({ modalities: ['text'] }))).toMatchObject({ audioSeconds: 0.1 })
    expected.configure({ output_modalities: ['text'] })
    expect(expected.estimate(0)).toMatchObject({ audioSeconds: 0.1 })
    expect(expected.estimate(0, create({ modalities: ['audio', 'text'] }))).toMatchObject({ audioSeconds: 10 })
    expected.configure({ voice: 'alloy' })
    expect(expected.estimate(0)).toMatchObject({ audioSeconds: 0.1 })
  })

  it('no less because of fields of other types', () => {
    const expected = new NextResponseEstimator()
    expected.configure({ max_output_tokens: 'many', modalities: 'audio' })
    for (const response of [3, null, [], { max_output_tokens: {} }, { max_output_tokens: -5 }])
      expect(expected.estimate(0, create(response as object))).toMatchObject({
        unboundedResponses: 1,
        audioSeconds: 10,
      })
    expect(expected.estimate(0, Buffer.from('no JSON'))).toMatchObject({ tokens: 2, unboundedResponses: 1 })
  })
})

describe('The sum of units', () => {
  it('adds what has the same name, however deep, and keeps the rest', () => {
    const first = sumOfUnits(undefined, { total: 3, details: { cached: 1, more: { text: 2 } } })
    expect(sumOfUnits(first, { total: 4, details: { more: { text: 5 }, audio: 6 }, other: 7 })).toEqual({
      total: 7,
      details: { cached: 1, more: { text: 7 }, audio: 6 },
      other: 7,
    })
    expect(first).toEqual({ total: 3, details: { cached: 1, more: { text: 2 } } })
  })

  it('keeps the first kind of a name that changes between number and object', () => {
    expect(sumOfUnits({ a: 1, b: { c: 1 } }, { a: { c: 1 }, b: 1 })).toEqual({ a: 1, b: { c: 1 } })
  })

  it('does not grow with the names that an upstream invents', () => {
    let sums = sumOfUnits(undefined, { total: 1 })
    for (let n = 0; n < 1000; n++) sums = sumOfUnits(sums, { total: 1, [`name${n}`]: 1 })
    expect(Object.keys(sums)).toHaveLength(64)
    expect(sums['total']).toBe(1001)
  })
})
