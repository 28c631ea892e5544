import { describe, expect, it } from '@jest/globals'
import { spelled } from '../../../test/support/realtime-server-events.js'
import { ClientDialect } from './client-dialect.js'
import { checkClientEvent, isEventRefusal } from './client-events.js'
import type { RealtimeDialect } from './dialect.js'
import { RealtimeTranslator } from './translator.js'

/** JSON texts, not objects: the spelling of numbers is part of what is compared. */
interface Row {
  readonly name: string
  readonly beta: string
  /** The same wish in GA; absent = the same bytes. */
  readonly ga?: string
  /** What a beta upstream is told when it is not the beta event itself. */
  readonly toBeta?: string
  readonly onlyBeta?: true
}

const VAD = '{"type":"server_vad","threshold":0.50,"prefix_padding_ms":300,"silence_duration_ms":500}'
const TOOLS =
  '[{"type":"function","name":"f","description":"d","parameters":{"type":"object","properties":{"n":{"maximum":12345678901234567,"multipleOf":1.0}}}}]'
const PCM = '{"type":"audio/pcm","rate":24000}'

const ROWS: readonly Row[] = [
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

describe.each(ROWS)('$name', ({ beta, ga = beta, toBeta = beta }) => {
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
})
