import { describe, expect, it } from '@jest/globals'
import { FrameScan } from '../core/frame-scan.js'
import { AnswerMeter } from './response-meter.js'

interface Event {
  readonly type: string
  readonly [name: string]: unknown
}

function see(meter: AnswerMeter, ...events: readonly (Event | string)[]): void {
  for (const event of events) {
    const frame = Buffer.from(typeof event === 'string' ? event : JSON.stringify(event))
    const scan = FrameScan.of(frame)
    if (scan === undefined) throw new Error('no object')
    meter.see(scan.type()?.type ?? '', frame, scan)
  }
}

const append = (meter: AnswerMeter, bytes: number): void => {
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
    const meter = new AnswerMeter()
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
    const meter = new AnswerMeter()
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
    const meter = new AnswerMeter()
    see(meter, CREATED, { type, delta: 'Hel' }, { type, delta: 'lo' })
    expect(meter.estimate()).toMatchObject({ total_tokens: 2, output_tokens: 2, ...estimated([0, 0], [2, 0]) })
  })

  it('is nothing where a delta holds none, or no JSON', () => {
    const meter = new AnswerMeter()
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
    const meter = new AnswerMeter()
    see(meter, { type: 'session.created', session: {} }, userItem({ text: 'Hello' }), COMMITTED)
    expect(meter.estimate()).toBeUndefined()
    see(meter, CREATED, sound(4800))
    meter.end(undefined)
    expect(meter.estimate()).toBeUndefined()
  })
})

describe('What an answer under way has read', () => {
  it('is the audio that the upstream has found speech in', () => {
    const meter = new AnswerMeter()
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
    const meter = new AnswerMeter()
    see(meter, { type: 'session.updated', session: { input_audio_format: format } })
    append(meter, bytesPerSecond)
    append(meter, bytesPerSecond)
    see(meter, COMMITTED, CREATED)
    expect(meter.estimate()).toMatchObject(estimated([0, 20], [0, 0]))
  })

  it('is not the audio that was cleared, that is not committed, or that an earlier answer has read', () => {
    const meter = new AnswerMeter()
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
    const meter = new AnswerMeter()
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
    const meter = new AnswerMeter()
    see(meter, { type: 'session.updated', session: 3 }, { type: 'conversation.item.added', item: [] })
    see(meter, { type: 'input_audio_buffer.speech_started', audio_start_ms: 'now' })
    see(meter, { type: 'input_audio_buffer.speech_stopped', audio_end_ms: 5 }, COMMITTED, CREATED)
    expect(meter.estimate()).toMatchObject(estimated([0, 0], [0, 0]))
  })
})

describe('What the next answer is expected to hear', () => {
  it('is the sound that the client has committed, though the upstream has not said so yet', () => {
    const meter = new AnswerMeter()
    append(meter, 96_000)
    expect(meter.expected()).toMatchObject({ tokens: 0, audioSeconds: 10 })
    const commit = Buffer.from('{"type":"input_audio_buffer.commit"}')
    meter.send('input_audio_buffer.commit', commit)
    expect(meter.expected()).toMatchObject({ tokens: commit.length / 4 + 20, audioSeconds: 12 })
    see(meter, COMMITTED)
    expect(meter.expected()).toMatchObject({ audioSeconds: 12 })
    append(meter, 480_000)
    expect(meter.expected()).toMatchObject({ audioSeconds: 12 })
    see(meter, CREATED)
    expect(meter.expected()).toMatchObject({ tokens: 0, audioSeconds: 10 })
  })

  it('is not read by an answer that the client wants out of band', () => {
    const meter = new AnswerMeter()
    const item = Buffer.from(JSON.stringify({ type: 'conversation.item.create', item: { text: 'a'.repeat(4000) } }))
    const create = Buffer.from('{"type":"response.create","response":{"conversation":"none"}}')
    see(meter, { type: 'session.updated', session: { max_output_tokens: 50 } })
    append(meter, 48_000)
    see(meter, COMMITTED)
    meter.send('conversation.item.create', item)
    const expected = meter.expected()
    expect(expected.tokens).toBe(Math.ceil(item.length / 4 + 10) + 50)
    meter.send('response.create', create)
    see(meter, { type: 'response.created', response: { id: 'apart', conversation_id: null } })
    meter.end({ input_tokens: 3, output_tokens: 4 }, true)
    expect(meter.expected()).toEqual({ ...expected, tokens: (expected.tokens ?? 0) + 7 })
    see(meter, { type: 'response.created', response: { id: 'next', conversation_id: 'conv_1' } })
    expect(meter.expected().tokens).toBe(57)
  })

  it('is read by whatever answer begins on an upstream that names no conversation', () => {
    const meter = new AnswerMeter()
    append(meter, 48_000)
    see(meter, COMMITTED, { type: 'response.created', response: { id: 'resp_1', conversation_id: null } })
    expect(meter.expected()).toMatchObject({ tokens: 0, audioSeconds: 10 })
  })

  it('is read again by the one after it, as its own figures say', () => {
    const meter = new AnswerMeter()
    see(meter, { type: 'session.updated', session: { max_output_tokens: 50 } }, CREATED)
    meter.end({ input_tokens: 70, output_tokens: 30 })
    expect(meter.expected()).toMatchObject({ tokens: 150, unboundedAnswers: 0 })
    see(meter, CREATED)
    meter.end(undefined)
    expect(meter.expected()).toMatchObject({ tokens: 150 })
  })
})
