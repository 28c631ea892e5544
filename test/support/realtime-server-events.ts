import { isRecord } from '../../src/core/validation-rules.js'
import { checkClientEvent, type ClientEventLimits, isEventRefusal } from '../../src/dialects/realtime/client-events.js'
import type { ClientDialect, RealtimeDialect } from '../../src/dialects/realtime/dialect.js'
import type { EventRefusal } from '../../src/dialects/realtime/session-rules.js'
import { RealtimeTranslator } from '../../src/dialects/realtime/translator.js'

/** The frame that is sent on. Throws when the event is refused. */
export function accepted(
  text: string | Buffer,
  dialect: RealtimeDialect = 'beta',
  limits: ClientEventLimits = {},
): Buffer {
  const judged = checkClientEvent(Buffer.from(text), dialect, limits)
  if (isEventRefusal(judged)) throw new Error(`${judged.code}: ${judged.message}`)
  return judged.frame
}

/** The refusal. Throws when the event is accepted. */
export function refused(
  text: string | Buffer,
  dialect: RealtimeDialect = 'beta',
  limits: ClientEventLimits = {},
): EventRefusal {
  const judged = checkClientEvent(Buffer.from(text), dialect, limits)
  if (!isEventRefusal(judged)) throw new Error(`accepted: ${judged.type}`)
  return judged
}

export const update = (session: string): string => `{"type":"session.update","event_id":"ev_1","session":${session}}`
export const create = (response: string): string =>
  `{"type":"response.create","event_id":"ev_1","response":${response}}`
export const createdItem = (value: string): string =>
  `{"type":"conversation.item.create","event_id":"ev_1","item":${value}}`

export type Fields = Record<string, unknown>

/** One session: what the client says goes up, what the upstream says comes down, all as objects. */
export class TranslatedSession {
  private readonly translator: RealtimeTranslator

  constructor(
    readonly client: ClientDialect,
    upstream: RealtimeDialect,
  ) {
    this.translator = new RealtimeTranslator({ client, upstream })
  }

  /** What the upstream is sent. Throws when the event is refused. */
  say(event: Fields): Fields[] {
    const judged = checkClientEvent(Buffer.from(JSON.stringify(event)), this.client.dialect)
    if (isEventRefusal(judged)) throw new Error(judged.message)
    return this.translator.toUpstream(judged).map(parsed)
  }

  /** What the client is shown. */
  hear(event: Fields): Fields[] {
    return this.translator.toClient(Buffer.from(JSON.stringify(event))).map(parsed)
  }
}

const parsed = (frame: Buffer): Fields => JSON.parse(frame.toString()) as Fields

/** A member that is an object. Throws when there is none. */
export const member = (event: Fields | undefined, name: string): Fields => {
  const value = event?.[name]
  if (!isRecord(value)) throw new Error(`no ${name}`)
  return value
}

/** JSON texts, not objects: the spelling of numbers is part of what is compared. */
export interface ServerRow {
  readonly name: string
  /** The event of a beta upstream; absent = beta has none. */
  readonly beta?: string
  /** The event of a GA upstream; absent = GA has none. */
  readonly ga?: string
  /** What a beta client is shown of the GA event, when it is not the beta event. */
  readonly toBeta?: readonly string[]
  /** What a GA client is shown of the beta event, when it is not the GA event. */
  readonly toGa?: readonly string[]
}

const AT = '"response_id":"resp_1","item_id":"item_2","output_index":0,"content_index":0'
const PCM = '{"type":"audio/pcm","rate":24000}'
const VAD =
  '{"type":"server_vad","threshold":0.5,"prefix_padding_ms":300,"silence_duration_ms":200,"create_response":true,"interrupt_response":true}'
const USAGE =
  '{"total_tokens":253,"input_tokens":132,"output_tokens":121,"input_token_details":{"cached_tokens":64,"text_tokens":119,"audio_tokens":13,"cached_tokens_details":{"text_tokens":64,"audio_tokens":0}},"output_token_details":{"text_tokens":30,"audio_tokens":91}}'

const BETA_SESSION = `{"id":"sess_001","object":"realtime.session","model":"gpt-realtime","expires_at":1780697149,"modalities":["audio","text"],"instructions":"","voice":"alloy","turn_detection":${VAD},"input_audio_format":"pcm16","output_audio_format":"pcm16","input_audio_transcription":null,"input_audio_noise_reduction":null,"tool_choice":"auto","temperature":0.8,"max_response_output_tokens":"inf","tools":[],"speed":1.0,"tracing":null,"include":null,"client_secret":null}`
const GA_SESSION = `{"type":"realtime","object":"realtime.session","id":"sess_001","model":"gpt-realtime","output_modalities":["audio"],"instructions":"","tools":[],"tool_choice":"auto","max_output_tokens":"inf","tracing":null,"expires_at":1780697149,"audio":{"input":{"format":${PCM},"transcription":null,"noise_reduction":null,"turn_detection":${VAD}},"output":{"format":${PCM},"voice":"alloy","speed":1.0}},"include":null}`

const betaItem = (content: string, status = 'completed'): string =>
  `{"id":"item_2","object":"realtime.item","type":"message","status":"${status}","role":"assistant","content":${content}}`
const gaItem = (content: string, status = 'completed'): string =>
  `{"id":"item_2","type":"message","status":"${status}","role":"assistant","content":${content}}`
/** As a GA client is shown a beta item: the kind of object stays. */
const gaItemOfBeta = (content: string, status = 'completed'): string => betaItem(content, status)

const BETA_SAID = '[{"type":"audio","transcript":"Hello there."},{"type":"text","text":"t"}]'
const GA_SAID = '[{"type":"output_audio","transcript":"Hello there."},{"type":"output_text","text":"t"}]'
const USER =
  '{"id":"item_1","object":"realtime.item","type":"message","status":"completed","role":"user","content":[{"type":"input_audio","transcript":null}]}'
const CALL =
  '{"id":"item_3","object":"realtime.item","type":"function_call","status":"in_progress","name":"get_weather","call_id":"call_1","arguments":""}'

const betaResponse = (output: string, status: string, usage: string): string =>
  `{"object":"realtime.response","id":"resp_1","status":"${status}","status_details":null,"output":${output},"conversation_id":"conv_1","modalities":["audio","text"],"voice":"alloy","output_audio_format":"pcm16","temperature":0.8,"max_output_tokens":"inf","usage":${usage},"metadata":{"n":1.0}}`
const gaResponse = (output: string, status: string, usage: string): string =>
  `{"object":"realtime.response","id":"resp_1","status":"${status}","status_details":null,"output":${output},"conversation_id":"conv_1","output_modalities":["audio"],"audio":{"output":{"format":${PCM},"voice":"alloy"}},"max_output_tokens":"inf","usage":${usage},"metadata":{"n":1.0}}`

const same = (name: string, rest: string): ServerRow => {
  const text = `{"event_id":"e1","type":"${name}",${rest}}`
  return { name, beta: text, ga: text }
}

const gaOnly = (name: string, rest: string): ServerRow => {
  const text = `{"event_id":"e1","type":"${name}",${rest}}`
  return { name, ga: text, toBeta: [text] }
}

/** The six that are renamed; GA deltas carry padding. */
const renamed = (betaName: string, gaName: string, rest: string): ServerRow[] => {
  const beta = `{"event_id":"e1","type":"${betaName}",${AT}${rest}}`
  const ga = `{"event_id":"e1","type":"${gaName}",${AT}${rest}}`
  const padded = `{"event_id":"e1","type":"${gaName}",${AT}${rest},"obfuscation":"aX9"}`
  const first = `{"obfuscation":"aX9","type":"${gaName}","event_id":"e1",${AT}${rest}}`
  return [
    { name: gaName, beta, ga },
    { name: `${gaName} with padding`, ga: padded, toBeta: [beta] },
    { name: `${gaName} with padding in front`, ga: first, toBeta: [beta] },
  ]
}

const item = (name: string, more = ''): ServerRow => ({
  name,
  beta: `{"event_id":"e1","type":"${name}"${more},"item":${betaItem(BETA_SAID)}}`,
  ga: `{"event_id":"e1","type":"${name}"${more},"item":${gaItem(GA_SAID)}}`,
  toGa: [`{"event_id":"e1","type":"${name}"${more},"item":${gaItemOfBeta(GA_SAID)}}`],
})

export const ROWS: readonly ServerRow[] = [
  ...['session.created', 'session.updated'].map((name) => ({
    name,
    beta: `{"event_id":"e1","type":"${name}","session":${BETA_SESSION}}`,
    ga: `{"event_id":"e1","type":"${name}","session":${GA_SESSION}}`,
  })),
  {
    name: 'session.updated with what only GA knows',
    ga: `{"type":"session.updated","session":{"type":"realtime","truncation":"auto","audio":{"input":{"format":{"type":"audio/pcm","rate":16000},"idle":1},"output":{"voice":{"id":"v"}}},"reasoning":{"effort":"low"}}}`,
    toBeta: [
      `{"type":"session.updated","session":{"truncation":"auto","audio":{"input":{"format":{"type":"audio/pcm","rate":16000},"idle":1}},"voice":{"id":"v"},"reasoning":{"effort":"low"},"temperature":0.8,"client_secret":null}}`,
    ],
  },
  same('conversation.created', '"conversation":{"id":"conv_1","object":"realtime.conversation"}'),
  {
    name: 'conversation.item.created of a complete item',
    beta: `{"event_id":"e1","type":"conversation.item.created","previous_item_id":"item_0","item":${USER}}`,
    toGa: [
      `{"event_id":"e1","type":"conversation.item.added","previous_item_id":"item_0","item":${USER}}`,
      `{"event_id":"e1_item","type":"conversation.item.done","previous_item_id":"item_0","item":${USER}}`,
    ],
  },
  {
    name: 'conversation.item.created of an item in progress',
    beta: `{"event_id":"e1","type":"conversation.item.created","previous_item_id":"item_1","item":${betaItem('[]', 'in_progress')}}`,
    toGa: [
      `{"event_id":"e1","type":"conversation.item.added","previous_item_id":"item_1","item":${gaItemOfBeta('[]', 'in_progress')}}`,
    ],
  },
  {
    name: 'conversation.item.added',
    ga: `{"event_id":"e1","type":"conversation.item.added","previous_item_id":null,"item":${gaItem(GA_SAID)}}`,
    toBeta: [
      `{"event_id":"e1","type":"conversation.item.created","previous_item_id":null,"item":${betaItem(BETA_SAID)}}`,
    ],
  },
  {
    name: 'conversation.item.done',
    ga: `{"event_id":"e1","type":"conversation.item.done","previous_item_id":null,"item":${gaItem(GA_SAID)}}`,
    toBeta: [],
  },
  item('conversation.item.retrieved'),
  same('conversation.item.truncated', '"item_id":"i","content_index":0,"audio_end_ms":1500'),
  same('conversation.item.deleted', '"item_id":"i"'),
  same('conversation.item.input_audio_transcription.delta', '"item_id":"i","content_index":0,"delta":"Hel"'),
  {
    name: 'conversation.item.input_audio_transcription.delta with padding',
    ga: '{"event_id":"e1","type":"conversation.item.input_audio_transcription.delta","obfuscation":"x","item_id":"i","content_index":0,"delta":"Hel"}',
    toBeta: [
      '{"event_id":"e1","type":"conversation.item.input_audio_transcription.delta","item_id":"i","content_index":0,"delta":"Hel"}',
    ],
  },
  same(
    'conversation.item.input_audio_transcription.completed',
    '"item_id":"item_1","content_index":0,"transcript":"Hello","usage":{"type":"duration","seconds":2}',
  ),
  same(
    'conversation.item.input_audio_transcription.failed',
    '"item_id":"i","content_index":0,"error":{"type":"t","code":"c","message":"m","param":null}',
  ),
  gaOnly(
    'conversation.item.input_audio_transcription.segment',
    '"item_id":"i","content_index":0,"id":"s","speaker":"A","start":0.0,"end":1.5,"text":"t"',
  ),
  same('input_audio_buffer.committed', '"previous_item_id":null,"item_id":"i"'),
  {
    name: 'input_audio_buffer.cleared',
    beta: '{"type":"input_audio_buffer.cleared"}',
    ga: '{"type":"input_audio_buffer.cleared"}',
  },
  same('input_audio_buffer.speech_started', '"audio_start_ms":10,"item_id":"i"'),
  same('input_audio_buffer.speech_stopped', '"audio_end_ms":10,"item_id":"i"'),
  gaOnly('input_audio_buffer.timeout_triggered', '"audio_start_ms":1,"audio_end_ms":2,"item_id":"i"'),
  gaOnly('input_audio_buffer.dtmf_event_received', '"event":"5","received_at":1780697149'),
  {
    name: 'response.created',
    beta: `{"event_id":"e1","type":"response.created","response":${betaResponse('[]', 'in_progress', 'null')}}`,
    ga: `{"event_id":"e1","type":"response.created","response":${gaResponse('[]', 'in_progress', 'null')}}`,
  },
  {
    name: 'response.done',
    beta: `{"event_id":"e1","type":"response.done","response":${betaResponse(`[${betaItem(BETA_SAID)},${CALL}]`, 'completed', USAGE)}}`,
    ga: `{"event_id":"e1","type":"response.done","response":${gaResponse(`[${gaItem(GA_SAID)},${CALL}]`, 'completed', USAGE)}}`,
    toGa: [
      `{"event_id":"e1","type":"response.done","response":${gaResponse(`[${gaItemOfBeta(GA_SAID)},${CALL}]`, 'completed', USAGE)}}`,
    ],
  },
  {
    name: 'response.done of a failed response',
    ga: '{"type":"response.done","response":{"object":"realtime.response","id":"r","status":"failed","status_details":{"type":"failed","error":{"type":"t","code":"model_not_found"}},"output":[],"usage":null}}',
    toBeta: [
      '{"type":"response.done","response":{"object":"realtime.response","id":"r","status":"failed","status_details":{"type":"failed","error":{"type":"t","code":"model_not_found"}},"output":[],"usage":null,"temperature":0.8}}',
    ],
  },
  item('response.output_item.added', ',"response_id":"resp_1","output_index":0'),
  item('response.output_item.done', ',"response_id":"resp_1","output_index":0'),
  same('response.content_part.added', `${AT},"part":{"type":"audio","transcript":""}`),
  same('response.content_part.done', `${AT},"part":{"type":"text","text":"Hello"}`),
  {
    name: 'response.content_part.done with the part type of items',
    ga: `{"event_id":"e1","type":"response.content_part.done",${AT},"part":{"type":"output_audio","transcript":"x"}}`,
    toBeta: [`{"event_id":"e1","type":"response.content_part.done",${AT},"part":{"type":"audio","transcript":"x"}}`],
  },
  ...renamed('response.text.delta', 'response.output_text.delta', ',"delta":"Hel\\"\\u00e9"'),
  ...renamed('response.text.done', 'response.output_text.done', ',"text":"Hello"'),
  ...renamed('response.audio_transcript.delta', 'response.output_audio_transcript.delta', ',"delta":"Hel"'),
  ...renamed('response.audio_transcript.done', 'response.output_audio_transcript.done', ',"transcript":"Hello"'),
  ...renamed('response.audio.delta', 'response.output_audio.delta', ',"delta":"AAAA"'),
  ...renamed('response.audio.done', 'response.output_audio.done', ''),
  same(
    'response.function_call_arguments.delta',
    '"response_id":"r","item_id":"i","output_index":1,"call_id":"c","delta":"{"',
  ),
  {
    name: 'response.function_call_arguments.delta with padding',
    ga: '{"type":"response.function_call_arguments.delta","call_id":"c","delta":"{\\"","obfuscation":""}',
    toBeta: ['{"type":"response.function_call_arguments.delta","call_id":"c","delta":"{\\""}'],
  },
  same(
    'response.function_call_arguments.done',
    '"response_id":"r","item_id":"i","output_index":1,"call_id":"c","arguments":"{\\"a\\":1.0}"',
  ),
  gaOnly('response.function_call_arguments.done', '"call_id":"c","name":"get_weather","arguments":"{}"'),
  same(
    'rate_limits.updated',
    '"rate_limits":[{"name":"requests","limit":1000,"remaining":999,"reset_seconds":60},{"name":"tokens","limit":15000000,"remaining":14999371,"reset_seconds":0.002}]',
  ),
  same('output_audio_buffer.started', '"response_id":"r"'),
  same('output_audio_buffer.stopped', '"response_id":"r"'),
  same('output_audio_buffer.cleared', '"response_id":"r"'),
  {
    name: 'transcription_session.updated',
    beta: '{"event_id":"e1","type":"transcription_session.updated","session":{"object":"realtime.transcription_session","id":"s","expires_at":0,"input_audio_format":"pcm16","input_audio_transcription":null,"input_audio_noise_reduction":null,"turn_detection":null,"include":null,"client_secret":null}}',
    ga: `{"event_id":"e1","type":"session.updated","session":{"type":"transcription","object":"realtime.transcription_session","id":"s","expires_at":0,"audio":{"input":{"format":${PCM},"transcription":null,"noise_reduction":null,"turn_detection":null}},"include":null}}`,
  },
  ...['mcp_list_tools.in_progress', 'mcp_list_tools.completed', 'mcp_list_tools.failed'].map((name) =>
    gaOnly(name, '"item_id":"i"'),
  ),
  ...['response.mcp_call_arguments.delta', 'response.mcp_call_arguments.done'].map((name) =>
    gaOnly(name, '"item_id":"i","delta":"x"'),
  ),
  ...['response.mcp_call.in_progress', 'response.mcp_call.completed', 'response.mcp_call.failed'].map((name) =>
    gaOnly(name, '"item_id":"i"'),
  ),
  same(
    'error',
    '"error":{"type":"invalid_request_error","code":"input_audio_buffer_commit_empty","message":"m","param":null,"event_id":"ev_1"}',
  ),
  {
    name: 'error about a setting',
    beta: `{"type":"error","event_id":"e","error":{"type":"invalid_request_error","code":"invalid_value","message":"Invalid value: 'x'. See 'session.voice'.","param":"session.voice","event_id":"ev_1"}}`,
    ga: `{"type":"error","event_id":"e","error":{"type":"invalid_request_error","code":"invalid_value","message":"Invalid value: 'x'. See 'session.audio.output.voice'.","param":"session.audio.output.voice","event_id":"ev_1"}}`,
  },
  same('something.new', '"x":1.0'),
]

/** One JSON value in which every number is its spelling. */
export const spelled = (text: string | Buffer | undefined): unknown =>
  JSON.parse(
    String(text).replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) =>
      token.startsWith('"') ? token : `"number ${token}"`,
    ),
  )

/** The events of an answer in audio, in their order, by the names of each dialect. */
export const SPOKEN_ANSWER = {
  ga: [
    'response.created',
    'response.output_item.added',
    'conversation.item.added',
    'response.content_part.added',
    'response.output_audio_transcript.delta',
    'response.output_audio.delta',
    'response.output_audio.done',
    'response.output_audio_transcript.done',
    'response.content_part.done',
    'conversation.item.done',
    'response.output_item.done',
    'response.done',
    'rate_limits.updated',
  ],
  beta: [
    'response.created',
    'response.output_item.added',
    'conversation.item.created',
    'response.content_part.added',
    'response.audio_transcript.delta',
    'response.audio.delta',
    'response.audio.done',
    'response.audio_transcript.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.done',
    'rate_limits.updated',
  ],
} as const
