import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { codePoint } from '../../../test/support/arbitraries.js'
import {
  type Fields,
  member,
  ROWS,
  spelled,
  SPOKEN_ANSWER,
  TranslatedSession,
} from '../../../test/support/realtime-server-events.js'
import { checkClientEvent, isEventRefusal } from './client-events.js'
import { ClientDialect, type RealtimeDialect } from './dialect.js'
import { isOutOfBand, requestsOutOfBand, responseIdOf, usageOf } from './session-state.js'
import { RealtimeTranslator } from './translator.js'

const beta = (): TranslatedSession => new TranslatedSession(ClientDialect.of('beta'), 'ga')
/** JSON texts, not objects: the spelling of numbers is part of what is compared. */
interface Row {
  readonly name: string
  readonly beta: string
  /** The same request in GA; absent = the same bytes. */
  readonly ga?: string
  /** The event for a beta upstream, when it differs from the beta event itself. */
  readonly toBeta?: string
  readonly onlyBeta?: true
}

const VAD = '{"type":"server_vad","threshold":0.50,"prefix_padding_ms":300,"silence_duration_ms":500}'
const TOOLS =
  '[{"type":"function","name":"f","description":"d","parameters":{"type":"object","properties":{"n":{"maximum":12345678901234567,"multipleOf":1.0}}}}]'
const PCM = '{"type":"audio/pcm","rate":24000}'

const CLIENT_EVENTS: readonly Row[] = [
  {
    name: 'session.update',
    beta: `{"type":"session.update","event_id":"ev_1","session":{"modalities":["text","audio"],"instructions":"Be brief.","voice":"alloy","input_audio_format":"pcm16","output_audio_format":"pcm16","input_audio_transcription":{"model":"whisper-1"},"turn_detection":${VAD},"temperature":0.8,"tools":[],"tool_choice":"auto"}}`,
    ga: `{"type":"session.update","event_id":"ev_1","session":{"type":"realtime","output_modalities":["audio"],"instructions":"Be brief.","audio":{"input":{"format":${PCM},"transcription":{"model":"whisper-1"},"turn_detection":${VAD}},"output":{"format":${PCM},"voice":"alloy"}},"tools":[],"tool_choice":"auto"}}`,
    toBeta: `{"type":"session.update","event_id":"ev_1","session":{"modalities":["audio","text"],"instructions":"Be brief.","voice":"alloy","input_audio_format":"pcm16","output_audio_format":"pcm16","input_audio_transcription":{"model":"whisper-1"},"turn_detection":${VAD},"tools":[],"tool_choice":"auto"}}`,
  },
  {
    name: 'session.update of every other key',
    beta: `{"type":"session.update","session":{"modalities":["text"],"input_audio_format":"g711_ulaw","output_audio_format":"g711_alaw","input_audio_noise_reduction":{"type":"near_field"},"turn_detection":null,"input_audio_transcription":null,"speed":1.0,"max_response_output_tokens":"inf","tools":${TOOLS},"tracing":"auto","include":["item.input_audio_transcription.logprobs"],"prompt":{"id":"p"},"x_new":1e2}}`,
    ga: `{"type":"session.update","session":{"type":"realtime","output_modalities":["text"],"audio":{"input":{"format":{"type":"audio/pcmu"},"noise_reduction":{"type":"near_field"},"turn_detection":null,"transcription":null},"output":{"format":{"type":"audio/pcma"},"speed":1.0}},"max_output_tokens":"inf","tools":${TOOLS},"tracing":"auto","include":["item.input_audio_transcription.logprobs"],"prompt":{"id":"p"},"x_new":1e2}}`,
  },
  {
    name: 'session.update of nothing but words',
    beta: '{"type":"session.update","session":{"instructions":""}}',
    ga: '{"type":"session.update","session":{"type":"realtime","instructions":""}}',
  },
  { name: 'input_audio_buffer.append', beta: '{"type":"input_audio_buffer.append","audio":"AAAAAAAA"}' },
  { name: 'input_audio_buffer.commit', beta: '{"type":"input_audio_buffer.commit"}' },
  { name: 'input_audio_buffer.clear', beta: '{ "event_id":"c", "type":"input_audio_buffer.clear" }' },
  {
    name: 'conversation.item.create of a user',
    beta: '{"type":"conversation.item.create","previous_item_id":"root","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_audio","audio":"AAAA"}]}}',
  },
  {
    name: 'conversation.item.create of the system',
    beta: '{"type":"conversation.item.create","item":{"type":"message","role":"system","content":[{"type":"input_text","text":"hi"}]}}',
  },
  {
    name: 'conversation.item.create of the assistant',
    beta: '{"type":"conversation.item.create","item":{"id":"i1","type":"message","role":"assistant","content":[{"type":"text","text":"\\u0041","x":1.0},{"type":"audio","transcript":"b"}]}}',
    ga: '{"type":"conversation.item.create","item":{"id":"i1","type":"message","role":"assistant","content":[{"type":"output_text","text":"\\u0041","x":1.0},{"type":"output_audio","transcript":"b"}]}}',
  },
  {
    name: 'conversation.item.create of a function output',
    beta: '{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"call_1","output":"{\\"temp_c\\":21}"}}',
  },
  { name: 'conversation.item.retrieve', beta: '{"type":"conversation.item.retrieve","item_id":"i1"}' },
  {
    name: 'conversation.item.truncate',
    beta: '{"type":"conversation.item.truncate","item_id":"i1","content_index":0,"audio_end_ms":1500}',
  },
  { name: 'conversation.item.delete', beta: '{"type":"conversation.item.delete","item_id":"i1"}' },
  { name: 'response.create without wishes', beta: '{"type":"response.create"}' },
  {
    name: 'response.create',
    beta: `{"type":"response.create","response":{"modalities":["audio","text"],"instructions":"x","voice":"echo","output_audio_format":"g711_ulaw","tools":${TOOLS},"tool_choice":"none","conversation":"none","metadata":{"a":"1"},"max_output_tokens":1024,"input":[{"type":"item_reference","id":"i0"},{"type":"message","role":"assistant","content":[{"type":"text","text":"t"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"t"}]}]}}`,
    ga: `{"type":"response.create","response":{"output_modalities":["audio"],"instructions":"x","audio":{"output":{"voice":"echo","format":{"type":"audio/pcmu"}}},"tools":${TOOLS},"tool_choice":"none","conversation":"none","metadata":{"a":"1"},"max_output_tokens":1024,"input":[{"type":"item_reference","id":"i0"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"t"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"t"}]}]}}`,
  },
  {
    name: 'response.create in the words of beta alone',
    beta: '{"type":"response.create","response":{"modalities":["text"],"temperature":0.6,"max_response_output_tokens":9}}',
    ga: '{"type":"response.create","response":{"output_modalities":["text"],"max_output_tokens":9}}',
    toBeta: '{"type":"response.create","response":{"modalities":["text"],"max_output_tokens":9}}',
  },
  { name: 'response.cancel', beta: '{"type":"response.cancel","response_id":"r1"}' },
  { name: 'output_audio_buffer.clear', beta: '{"type":"output_audio_buffer.clear"}' },
  {
    name: 'transcription_session.update',
    beta: '{"type":"transcription_session.update","session":{"input_audio_format":"pcm16","input_audio_transcription":{"model":"whisper-1"},"turn_detection":null,"include":["item.input_audio_transcription.logprobs"]}}',
    ga: `{"type":"session.update","session":{"type":"transcription","audio":{"input":{"format":${PCM},"transcription":{"model":"whisper-1"},"turn_detection":null}},"include":["item.input_audio_transcription.logprobs"]}}`,
  },
]

function sent(
  text: string,
  client: RealtimeDialect,
  upstream: RealtimeDialect,
): { readonly frame: Buffer; readonly sent: readonly Buffer[] } {
  const frame = Buffer.from(text)
  const event = checkClientEvent(frame, client)
  if (isEventRefusal(event)) throw new Error(event.message)
  return { frame, sent: new RealtimeTranslator({ client: ClientDialect.of(client), upstream }).toUpstream(event) }
}

describe.each(CLIENT_EVENTS)('$name', ({ beta, ga = beta, toBeta = beta }) => {
  it('reaches a GA upstream in the words of GA from a beta client', () => {
    const { frame, sent: frames } = sent(beta, 'beta', 'ga')
    expect(frames).toHaveLength(1)
    if (ga === beta) expect(frames[0]).toBe(frame)
    else expect(spelled(frames[0])).toEqual(spelled(ga))
  })

  it('reaches a beta upstream in the words of beta from a GA client', () => {
    const { frame, sent: frames } = sent(ga, 'ga', 'beta')
    expect(frames).toHaveLength(1)
    if (ga === toBeta) expect(frames[0]).toBe(frame)
    else expect(spelled(frames[0])).toEqual(spelled(toBeta))
  })

  it('is the very same frame between a client and an upstream of one dialect', () => {
    for (const [text, dialect] of [
      [beta, 'beta'],
      [ga, 'ga'],
    ] as const) {
      const { frame, sent: frames } = sent(text, dialect, dialect)
      expect(frames).toHaveLength(1)
      expect(frames[0]).toBe(frame)
    }
  })
})

describe('A beta client of a GA upstream', () => {
  it.each([
    ['["audio"]', '["audio"]'],
    ['["text"]', '["text"]'],
    ['["text","audio"]', '["audio"]'],
    ['["audio","text"]', '["audio"]'],
  ])('that asks for %s gets %s', (modalities, expected) => {
    const { sent: frames } = sent(`{"type":"session.update","session":{"modalities":${modalities}}}`, 'beta', 'ga')
    expect(JSON.parse(String(frames[0]))).toEqual({
      type: 'session.update',
      session: { type: 'realtime', output_modalities: JSON.parse(expected) as unknown },
    })
  })

  it('never sends on what only its own side knows', () => {
    const { sent: frames } = sent(
      '{"type":"session.update","session":{"temperature":0.9,"client_secret":{"expires_at":null},"voice":"ash"}}',
      'beta',
      'ga',
    )
    expect(String(frames[0])).toBe(
      '{"type":"session.update","session":{"type":"realtime","audio":{"output":{"voice":"ash"}}}}',
    )
  })

  it('may mix GA keys in: they stay, and its own words win where both say something', () => {
    const { sent: frames } = sent(
      '{"type":"session.update","session":{"truncation":"auto","audio":{"input":{"format":{"type":"audio/pcma"}},"output":{"voice":"a","x":1}},"voice":"b"}}',
      'beta',
      'ga',
    )
    expect(JSON.parse(String(frames[0]))).toEqual({
      type: 'session.update',
      session: {
        type: 'realtime',
        truncation: 'auto',
        audio: { input: { format: { type: 'audio/pcma' } }, output: { voice: 'b', x: 1 } },
      },
    })
  })

  it.each([
    '{"max_response_output_tokens":5,"max_output_tokens":7}',
    '{"max_output_tokens":7,"max_response_output_tokens":5}',
  ])('is taken at the word of its own dialect: %s', (session) => {
    const { sent: frames } = sent(`{"type":"session.update","session":${session}}`, 'beta', 'ga')
    expect(String(frames[0])).toBe('{"type":"session.update","session":{"type":"realtime","max_output_tokens":5}}')
  })

  it('has its tools sent byte for byte, however they are spelled', () => {
    const tools =
      '[ {"type" : "function","name":"\\u0066","parameters":{"a":1.0,"b":12345678901234567,"c":-0,"d":[1e400]}} ]'
    const { sent: frames } = sent(`{"type":"session.update","session":{"tools":${tools},"voice":"v"}}`, 'beta', 'ga')
    expect(String(frames[0])).toContain(`"tools":${tools}`)
  })

  it('hears its own session back, word for word', () => {
    const modalities = fc.constantFrom(['text'], ['text', 'audio'], ['audio', 'text'])
    const format = fc.constantFrom('pcm16', 'g711_ulaw', 'g711_alaw')
    const session = fc.record(
      {
        modalities,
        voice: fc.string(),
        instructions: fc.string({ unit: codePoint }),
        input_audio_format: format,
        output_audio_format: format,
        input_audio_transcription: fc.constantFrom(null, { model: 'whisper-1' }),
        input_audio_noise_reduction: fc.constantFrom(null, { type: 'near_field' }),
        turn_detection: fc.constantFrom(null, { type: 'server_vad', threshold: 0.5 }),
        max_response_output_tokens: fc.constantFrom('inf', 7),
        speed: fc.constantFrom(1, 1.5),
        tool_choice: fc.constantFrom('auto', { type: 'function', name: 'f' }),
        tools: fc.array(
          fc.record({ name: fc.string(), parameters: fc.dictionary(fc.constantFrom('a', 'b'), allowedJson) }),
        ),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(session, fc.constantFrom(0.6, 0.8, 1.2), (asked, temperature) => {
        const call = beta()
        const [told] = call.say({ type: 'session.update', session: { ...asked, temperature } })
        const plain = JSON.parse(JSON.stringify({ ...asked, temperature, client_secret: null })) as Fields
        expect(member(call.hear(echo(told))[0], 'session')).toEqual(plain)
      }),
      { numRuns: 500 },
    )
  })

  it('hears its temperature and modalities in its own spelling until it changes them', () => {
    const translator = new RealtimeTranslator({ client: ClientDialect.of('beta'), upstream: 'ga' })
    const say = (text: string): void => {
      const checked = checkClientEvent(Buffer.from(text), 'beta')
      if (!isEventRefusal(checked)) translator.toUpstream(checked)
    }
    const hear = (modality: string): string =>
      String(
        translator.toClient(
          Buffer.from(`{"type":"session.updated","session":{"output_modalities":["${modality}"]}}`),
        )[0],
      )
    expect(hear('audio')).toBe(
      '{"type":"session.updated","session":{"modalities":["audio","text"],"temperature":0.8,"client_secret":null}}',
    )
    say('{"type":"session.update","session":{"modalities":[ "text", "audio" ],"temperature":0.90}}')
    expect(hear('audio')).toContain('"modalities":[ "text", "audio" ],"temperature":0.90')
    say('{"type":"session.update","session":{"voice":"x"}}')
    expect(hear('audio')).toContain('"modalities":[ "text", "audio" ],"temperature":0.90')
    expect(hear('text')).toContain('"modalities":["text"],"temperature":0.90')
  })

  it('hears the usual words where it said null', () => {
    const call = beta()
    const [told] = call.say({ type: 'session.update', session: { temperature: null, modalities: null } })
    expect(told).toEqual({ type: 'session.update', session: { type: 'realtime', output_modalities: null } })
    const shown = { type: 'session.updated', session: { output_modalities: ['audio'] } }
    expect(member(call.hear(shown)[0], 'session')).toMatchObject({ temperature: 0.8, modalities: ['audio', 'text'] })
  })

  it('hears the wishes of one response with that response, and those of the session with the next', () => {
    const call = beta()
    call.say({ type: 'session.update', session: { temperature: 1.1, modalities: ['text', 'audio'] } })
    call.say({ type: 'response.create', response: { temperature: 0.7, modalities: ['audio', 'text'] } })
    const response = (id: string): Fields => ({ id, output_modalities: ['audio'], output: [] })
    const heard = (type: string, id: string): unknown =>
      member(call.hear({ type, response: response(id) })[0], 'response')
    const own = { temperature: 0.7, modalities: ['audio', 'text'] }
    const usual = { temperature: 1.1, modalities: ['text', 'audio'] }
    expect(heard('response.created', 'r1')).toMatchObject(own)
    expect(heard('response.created', 'r2')).toMatchObject(usual)
    expect(heard('response.done', 'r2')).toMatchObject(usual)
    expect(heard('response.done', 'r1')).toMatchObject(own)
    expect(heard('response.done', 'r1')).toMatchObject(usual)
  })

  it('does not hear the wishes of a refused response with the next one', () => {
    const call = beta()
    call.say({ type: 'response.create', response: { temperature: 0.7 } })
    call.hear({ type: 'error', error: { type: 'invalid_request_error', message: 'no' } })
    const [created] = call.hear({ type: 'response.created', response: { id: 'r1' } })
    expect(member(created, 'response')['temperature']).toBe(0.8)
  })

  it('hears a whole spoken turn in the order and the names of beta', () => {
    const call = beta()
    const types = [
      'session.created',
      'input_audio_buffer.speech_started',
      'input_audio_buffer.committed',
      'conversation.item.added',
      'conversation.item.done',
      ...SPOKEN_ANSWER.ga,
    ]
    expect(types.flatMap((type) => call.hear({ type })).map(({ type }) => type)).toEqual([
      'session.created',
      'input_audio_buffer.speech_started',
      'input_audio_buffer.committed',
      'conversation.item.created',
      ...SPOKEN_ANSWER.beta,
    ])
  })

  it('remembers sixteen responses under way and forgets the oldest', () => {
    const call = beta()
    for (let index = 0; index < 17; index++) {
      call.say({ type: 'response.create', response: { temperature: 0.7 } })
      call.hear({ type: 'response.created', response: { id: `r${index}` } })
    }
    const heard = (id: string): unknown =>
      member(call.hear({ type: 'response.done', response: { id } })[0], 'response')['temperature']
    expect(heard('r0')).toBe(0.8)
    expect(heard('r1')).toBe(0.7)
    expect(heard('r16')).toBe(0.7)
  })
})

/** Keys that reach a prototype are refused, and a generator of odd values likes them. */
const allowedJson = fc
  .jsonValue()
  .filter((value) => !/"(?:__proto__|constructor|prototype)":/.test(JSON.stringify(value)))

/** A GA upstream's session: the settings it was sent. */
const echo = (told: Fields | undefined): Fields => ({ type: 'session.updated', session: member(told, 'session') })

const undetermined = (): ClientDialect => ClientDialect.ofHandshake({ betaHeader: undefined, protocols: ['realtime'] })

describe('A GA client of a beta upstream', () => {
  const item = (status: string): Fields => ({ id: 'item_2', type: 'message', role: 'assistant', status, content: [] })

  it('hears that an answer is complete before its output item is done', () => {
    const call = new TranslatedSession(ClientDialect.of('ga'), 'beta')
    call.hear({
      type: 'conversation.item.created',
      event_id: 'e1',
      previous_item_id: 'item_1',
      item: item('in_progress'),
    })
    const done = {
      type: 'response.output_item.done',
      event_id: 'e2',
      response_id: 'r',
      output_index: 0,
      item: item('completed'),
    }
    expect(call.hear(done)).toEqual([
      { type: 'conversation.item.done', event_id: 'e2_item', previous_item_id: 'item_1', item: item('completed') },
      done,
    ])
    expect(call.hear(done)).toEqual([done])
  })

  it('hears nothing of the conversation about an answer outside of it', () => {
    const call = new TranslatedSession(ClientDialect.of('ga'), 'beta')
    const done = { type: 'response.output_item.done', event_id: 'e2', item: item('completed') }
    expect(call.hear(done)).toEqual([done])
  })
})

describe('A client that has not shown its dialect', () => {
  const GA_KEYS = { type: 'realtime', output_modalities: ['audio'], max_output_tokens: 'inf' }
  const BETA_KEYS = {
    modalities: ['audio', 'text'],
    voice: 'alloy',
    input_audio_format: 'pcm16',
    max_response_output_tokens: 'inf',
    temperature: 0.8,
  }
  const audio = { input: { format: { type: 'audio/pcm', rate: 24000 } }, output: { voice: 'alloy' } }

  it.each([
    ['ga', { id: 's', ...GA_KEYS, audio }],
    ['beta', { id: 's', ...BETA_KEYS }],
  ] as const)('hears session.created of a %s upstream with the keys of both', (upstream, session) => {
    const call = new TranslatedSession(undetermined(), upstream)
    const [created] = call.hear({ type: 'session.created', event_id: 'e', session })
    expect(member(created, 'session')).toMatchObject({ id: 's', ...GA_KEYS, ...BETA_KEYS, audio })
  })

  it('is a beta client until it shows GA, and then hears a GA upstream untouched', () => {
    const call = new TranslatedSession(undetermined(), 'ga')
    const delta = { type: 'response.output_text.delta', delta: 'x', obfuscation: 'y' }
    expect(call.hear(delta)).toEqual([{ type: 'response.text.delta', delta: 'x' }])
    const update = { type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } }
    expect(call.say(update)).toEqual([update])
    expect(call.client.dialect).toBe('ga')
    expect(call.hear(delta)).toEqual([delta])
  })

  it('is not taken at a word that was refused', () => {
    const client = undetermined()
    const call = new TranslatedSession(client, 'ga')
    expect(() => call.say({ type: 'session.update', session: { type: 'realtime', audio: 1 } })).toThrow(
      "Invalid type for 'session.audio'",
    )
    expect(client.dialect).toBeUndefined()
  })
})

describe('The translation', () => {
  const texts = ROWS.flatMap(({ beta: one, ga: other }) => [one, other]).filter((text) => text !== undefined)

  it('never throws on damaged frames', () => {
    const damaged = fc
      .tuple(fc.constantFrom(...texts), fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }), fc.nat())
      .map(([text, changes, length]) => {
        const frame = Buffer.from(text)
        for (const [place, byte] of changes) frame[place % frame.length] = byte
        return length % 3 === 0 ? frame.subarray(0, length % frame.length) : frame
      })
    const combination = fc.constantFrom<readonly [RealtimeDialect, RealtimeDialect]>(['beta', 'ga'], ['ga', 'beta'])
    fc.assert(
      fc.property(damaged, combination, (frame, [client, upstream]) => {
        const translator = new RealtimeTranslator({ client: ClientDialect.of(client), upstream })
        expect(translator.toClient(frame).length).toBeLessThanOrEqual(2)
      }),
      { numRuns: 5000 },
    )
  })

  it('leaves the frame it was given as it was', () => {
    for (const text of texts) {
      for (const [client, upstream] of [
        ['beta', 'ga'],
        ['ga', 'beta'],
      ] as const) {
        const frame = Buffer.from(text)
        new RealtimeTranslator({ client: ClientDialect.of(client), upstream }).toClient(frame)
        expect(frame.toString()).toBe(text)
      }
    }
  })

  it('carries audio over bit by bit, whatever its size', () => {
    const delta = Buffer.alloc(300_000, 'AbC/').toString()
    const [frame] = beta().hear({ type: 'response.output_audio.delta', delta, obfuscation: 'x'.repeat(100) })
    expect(frame).toEqual({ type: 'response.audio.delta', delta })
  })
})

function expectShown(
  text: string,
  client: RealtimeDialect,
  upstream: RealtimeDialect,
  expected: readonly string[],
): void {
  const frame = Buffer.from(text)
  const frames = new RealtimeTranslator({ client: ClientDialect.of(client), upstream }).toClient(frame)
  expect(frames.map(spelled)).toEqual(expected.map(spelled))
  if (expected.length === 1 && expected[0] === text) expect(frames[0]).toBe(frame)
}

const ofGa = ROWS.flatMap(({ name, beta, ga, toBeta }) =>
  ga === undefined ? [] : [{ name, text: ga, expected: toBeta ?? [beta ?? ga] }],
)
const ofBeta = ROWS.flatMap(({ name, beta, ga, toGa }) =>
  beta === undefined ? [] : [{ name, text: beta, expected: toGa ?? [ga ?? beta] }],
)

describe('A beta client', () => {
  it.each(ofGa)('of a GA upstream is shown $name in beta', ({ text, expected }) => {
    expectShown(text, 'beta', 'ga', expected)
  })

  it.each(ofBeta)('of a beta upstream is shown the very same frame: $name', ({ text }) => {
    expectShown(text, 'beta', 'beta', [text])
  })
})

describe('A GA client', () => {
  it.each(ofBeta)('of a beta upstream is shown $name in GA', ({ text, expected }) => {
    expectShown(text, 'ga', 'beta', expected)
  })

  it.each(ofGa)('of a GA upstream is shown the very same frame: $name', ({ text }) => {
    expectShown(text, 'ga', 'ga', [text])
  })
})

describe('The dialect of a client', () => {
  it.each([
    ['realtime=v1', [], 'beta'],
    ['Realtime=V1', [], 'beta'],
    ['assistants=v2, realtime=v1', [], 'beta'],
    [undefined, ['realtime', 'openai-insecure-api-key.sk-x', 'openai-beta.realtime-v1'], 'beta'],
    [undefined, ['realtime'], undefined],
    [undefined, [], undefined],
    ['realtime=v2', ['openai-beta.realtime-v2'], undefined],
  ])('after a handshake with header %j and protocols %j is %s', (betaHeader, protocols, dialect) => {
    expect(ClientDialect.ofHandshake({ betaHeader, protocols }).dialect).toBe(dialect)
  })

  it('is decided by the first event that shows one, for good', () => {
    const client = ClientDialect.ofHandshake({ betaHeader: undefined, protocols: ['realtime'] })
    client.learn(undefined)
    expect(client.dialect).toBeUndefined()
    client.learn('ga')
    client.learn('beta')
    expect(client.dialect).toBe('ga')
  })

  it('stays what the handshake said, whatever its events look like', () => {
    const client = ClientDialect.ofHandshake({ betaHeader: 'realtime=v1', protocols: [] })
    client.learn('ga')
    expect(client.dialect).toBe('beta')
  })
})

describe('A transcription session', () => {
  const PCM_FORMAT = { type: 'audio/pcm', rate: 24_000 }
  const HEAD = { object: 'realtime.transcription_session', id: 'sess_1', expires_at: 9 }
  const TURNS = { type: 'server_vad', threshold: 0.5 }
  const NAMED = { model: 'whisper-1' }
  const GA_SESSION = {
    type: 'transcription',
    ...HEAD,
    audio: { input: { format: PCM_FORMAT, transcription: NAMED, noise_reduction: null, turn_detection: TURNS } },
    include: null,
  }
  const BETA_SESSION = {
    ...HEAD,
    input_audio_format: 'pcm16',
    input_audio_transcription: NAMED,
    input_audio_noise_reduction: null,
    turn_detection: TURNS,
    include: null,
    client_secret: null,
  }

  it.each(['created', 'updated'])('of a GA upstream is %s for a client of beta in beta’s own event', (what) => {
    const event = { type: `session.${what}`, event_id: 'e', session: GA_SESSION }
    expect(beta().hear(event)).toEqual([
      { type: `transcription_session.${what}`, event_id: 'e', session: BETA_SESSION },
    ])
  })

  it.each(['created', 'updated'])('of a beta upstream is %s for a client of GA as a session of that type', (what) => {
    const session = new TranslatedSession(ClientDialect.of('ga'), 'beta')
    const event = { type: `transcription_session.${what}`, event_id: 'e', session: BETA_SESSION }
    const [heard, ...others] = session.hear(event)
    expect(others).toEqual([])
    expect(heard).toMatchObject({ type: `session.${what}`, event_id: 'e', session: GA_SESSION })
    const ofBeta = Object.keys(BETA_SESSION).filter((name) => !Object.hasOwn(GA_SESSION, name))
    expect(ofBeta.length).toBeGreaterThan(3)
    for (const name of ofBeta) expect(member(heard, 'session')).not.toHaveProperty(name)
  })

  it.each(['ga', 'beta'] as const)('of a %s upstream begins in both dialects for a client of neither', (upstream) => {
    const client = ClientDialect.ofHandshake({ betaHeader: undefined, protocols: [] })
    const created = {
      ga: { type: 'session.created', event_id: 'e', session: GA_SESSION },
      beta: { type: 'transcription_session.created', event_id: 'e', session: BETA_SESSION },
    }
    expect(new TranslatedSession(client, upstream).hear(created[upstream])).toEqual([
      { type: 'session.created', event_id: 'e', session: { ...GA_SESSION, ...BETA_SESSION } },
    ])
  })
})

describe('The dialect of clients that show none', () => {
  const CREATED = { type: 'session.created', session: { type: 'realtime', output_modalities: ['audio'] } }
  const TEXT = { type: 'response.output_text.delta', delta: 'a' }
  const assuming = (assumed: RealtimeDialect | 'auto'): TranslatedSession =>
    new TranslatedSession(ClientDialect.ofHandshake({ betaHeader: undefined, protocols: [], assumed }), 'ga')

  it('is GA where that is assumed, from the first event on', () => {
    const session = assuming('ga')
    expect(session.hear(CREATED)).toEqual([CREATED])
    expect(session.hear(TEXT)).toEqual([TEXT])
  })

  it('is beta where that is assumed, without a key of GA', () => {
    const session = assuming('beta')
    const [created] = session.hear(CREATED)
    expect(member(created, 'session')).not.toHaveProperty('output_modalities')
    expect(session.hear(TEXT)).toEqual([{ ...TEXT, type: 'response.text.delta' }])
  })

  it('is beta by default, after a beginning in both', () => {
    const session = assuming('auto')
    const [created] = session.hear(CREATED)
    expect(member(created, 'session')).toMatchObject({ output_modalities: ['audio'], modalities: ['audio', 'text'] })
    expect(session.hear(TEXT)).toEqual([{ ...TEXT, type: 'response.text.delta' }])
  })

  it('gives way to the one that an event shows', () => {
    const session = assuming('ga')
    session.say({ type: 'session.update', session: { modalities: ['text'] } })
    expect(session.hear(TEXT)).toEqual([{ ...TEXT, type: 'response.text.delta' }])
  })

  it('gives way to the one of the handshake', () => {
    const client = ClientDialect.ofHandshake({ betaHeader: 'realtime=v1', protocols: [], assumed: 'ga' })
    expect(new TranslatedSession(client, 'ga').hear(TEXT)).toEqual([{ ...TEXT, type: 'response.text.delta' }])
  })
})

const USAGE = {
  total_tokens: 253,
  input_tokens: 132,
  output_tokens: 121,
  input_token_details: {
    cached_tokens: 64,
    text_tokens: 119,
    audio_tokens: 13,
    cached_tokens_details: { text_tokens: 64, audio_tokens: 0 },
  },
  output_token_details: { text_tokens: 30, audio_tokens: 91 },
}

const of = (event: object): unknown => usageOf(Buffer.from(JSON.stringify(event)))

describe('The usage of a server event', () => {
  it.each(['completed', 'cancelled', 'failed', 'incomplete'])('is the one of a response that is %s', (status) => {
    const response = { usage: { wrong: 1 }, output: [{ usage: { wrong: 2 } }] }
    expect(of({ type: 'response.done', usage: { wrong: 3 }, response: { ...response, status, usage: USAGE } })).toEqual(
      USAGE,
    )
  })

  it('is the one of an input transcription, in tokens or in seconds', () => {
    const type = 'conversation.item.input_audio_transcription.completed'
    expect(of({ type, transcript: 'a', usage: { type: 'duration', seconds: 2.5 } })).toEqual({ seconds: 2.5 })
    expect(of({ type, usage: { type: 'tokens', total_tokens: 3, input_token_details: { audio_tokens: 2 } } })).toEqual({
      total_tokens: 3,
      input_token_details: { audio_tokens: 2 },
    })
  })

  it.each([
    { type: 'response.done', response: { usage: null } },
    { type: 'response.done', response: {} },
    { type: 'response.done', response: null },
    { type: 'response.done', usage: USAGE },
    { type: 'response.created', response: { usage: USAGE } },
    { type: 'conversation.item.input_audio_transcription.completed' },
    { type: 'conversation.item.input_audio_transcription.delta', usage: { seconds: 2 } },
    { usage: USAGE },
  ])('is nothing in %j', (event) => {
    expect(of(event)).toBeUndefined()
  })

  it.each([
    '',
    'null',
    '{',
    '{"type":"response.done","response":{"usage":{]}}',
    '{"type":"response.done","response":{"usage":{"a":1]}}',
  ])('is nothing in %j, and nothing is thrown', (text) => {
    expect(usageOf(Buffer.from(text))).toBeUndefined()
  })
})

const frameOf = (event: unknown): Buffer => Buffer.from(JSON.stringify(event))

describe('An answer', () => {
  it.each<[string, object | null]>([
    ['it names a conversation', { conversation_id: 'conv_1', usage: null }],
    ['it does not speak of conversations', { usage: null, metadata: { conversation_id: null } }],
    ['there is nothing of it', null],
  ])('is of the conversation where %s', (_why, response) => {
    expect(isOutOfBand(frameOf({ type: 'response.done', response }))).toBe(false)
  })

  it('is out of band where its conversation is null', () => {
    const response = { id: 'resp_1', conversation_id: null, usage: null }
    expect(isOutOfBand(frameOf({ type: 'response.done', response }))).toBe(true)
  })

  it('is of the conversation where it cannot be read', () => {
    expect(isOutOfBand(Buffer.from('{"type":"response.done","response":{]}'))).toBe(false)
  })
})

describe('A client asks for an answer', () => {
  it('out of band where it wants no conversation', () => {
    expect(requestsOutOfBand(frameOf({ type: 'response.create', response: { conversation: 'none' } }))).toBe(true)
  })

  it.each([
    { type: 'response.create' },
    { type: 'response.create', response: null },
    { type: 'response.create', response: { conversation: 'auto' } },
    { type: 'response.create', response: { conversation: null }, conversation: 'none' },
  ])('of the conversation by %j', (event) => {
    expect(requestsOutOfBand(frameOf(event))).toBe(false)
  })
})

describe('The name of an answer', () => {
  it('is the id of its response', () => {
    expect(responseIdOf(frameOf({ type: 'response.created', event_id: 'e', response: { id: 'resp_1' } }))).toBe(
      'resp_1',
    )
  })

  it.each([{ id: 'x' }, { response: {} }, { response: { id: 1 } }, { response: 'resp_1' }])(
    'is nothing in %j',
    (event) => {
      expect(responseIdOf(frameOf(event))).toBeUndefined()
    },
  )
})
