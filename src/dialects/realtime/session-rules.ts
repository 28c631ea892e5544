import { RawObject } from '../../core/json-object.js'
import { FrameScan, splice } from '../../core/json-spans.js'
import {
  anyOf,
  anyRecord,
  decimal,
  type FieldRule,
  integer,
  isRecord,
  list,
  oneOf,
  optional,
  record,
  required,
  text,
} from '../../core/validation-rules.js'
import { type AudioSetting, BETA_FORMATS, GA_FORMATS, OUTPUT_SETTINGS, SESSION_SETTINGS } from './session-state.js'

/** One setting's path in both dialects. Beta formats are strings: nothing lies below them. */
interface Paths {
  readonly beta: string
  readonly ga: string
  readonly isWord: boolean
}

const PATHS: readonly Paths[] = [
  ...audioPaths('session', SESSION_SETTINGS),
  ...audioPaths('response', OUTPUT_SETTINGS),
  { beta: 'session.modalities', ga: 'session.output_modalities', isWord: false },
  { beta: 'response.modalities', ga: 'response.output_modalities', isWord: false },
  { beta: 'session.max_response_output_tokens', ga: 'session.max_output_tokens', isWord: false },
]

export const pathToBeta = (path: string): string => mapped(path, 'ga', 'beta')

export const pathToGa = (path: string): string => mapped(path, 'beta', 'ga')

/**
 * An `error` event whose `param` names the field as the client wrote it, also where its message quotes it. The same
 * frame when there is nothing to map.
 */
export function withMappedParam(frame: Buffer, map: (path: string) => string): Buffer {
  const event = RawObject.parse(frame)
  const error = event?.object('error')
  const param = error?.text('param')
  if (event === undefined || error === undefined || param === undefined || map(param) === param) return frame
  error.setText('param', map(param))
  const message = error.text('message')
  if (message !== undefined)
    error.setText(
      'message',
      message.replaceAll(`'${param}'`, () => `'${map(param)}'`),
    )
  return event.toBuffer()
}

function mapped(path: string, from: 'beta' | 'ga', to: 'beta' | 'ga'): string {
  for (const paths of PATHS) {
    const rest = restBelow(path, paths[from])
    if (rest !== undefined) return paths[to] + (paths.isWord && to === 'beta' ? '' : rest)
  }
  return path
}

function restBelow(path: string, prefix: string): string | undefined {
  if (!path.startsWith(prefix)) return undefined
  const rest = path.slice(prefix.length)
  return rest === '' || rest.startsWith('.') || rest.startsWith('[') ? rest : undefined
}

function audioPaths(owner: string, settings: readonly AudioSetting[]): Paths[] {
  return settings.map(({ beta, half, ga }) => ({
    beta: `${owner}.${beta}`,
    ga: `${owner}.audio.${half}.${ga}`,
    isWord: ga === 'format',
  }))
}

/** Why a client event is refused: the members of an `error` event's `error`. */
export interface EventRefusal {
  readonly type: 'invalid_request_error'
  readonly code: string
  readonly message: string
  /** The wrong field, as the client wrote its path. */
  readonly param: string | null
  /** The `event_id` of the refused event, when one could be read. */
  readonly eventId: string | null
}

export const refusal = (
  code: string,
  message: string,
  { param = null, eventId = null }: { readonly param?: string | null; readonly eventId?: string | null } = {},
): EventRefusal => ({ type: 'invalid_request_error', code, message, param, eventId })

/** The member of an event that may name a model. */
export type ModelHolder = 'session' | 'response'

/**
 * Checks that a session and its responses keep the model it was opened with, as only that one was authorised. Clients that
 * repeat it use the name they know, which need not be the upstream's: a repeated name is cut out, another one refused.
 */
export function checkModel(
  frame: Buffer,
  holder: ModelHolder,
  value: unknown,
  model: string | undefined,
  eventId: string | null,
): Buffer | EventRefusal {
  const named = isRecord(value) ? value['model'] : undefined
  if (model === undefined || named === undefined) return frame
  const kept = named === model ? withoutModel(frame, holder) : undefined
  return (
    kept ??
    refusal('invalid_value', `Invalid '${holder}.model': the model of an open session cannot be changed.`, {
      param: `${holder}.model`,
      eventId,
    })
  )
}

/** `undefined` when there are too many members to find all that name a model. */
function withoutModel(frame: Buffer, holder: ModelHolder): Buffer | undefined {
  const span = FrameScan.of(frame)?.member(holder)
  if (span === undefined) return undefined
  const offset = span.valueStart
  const cuts = FrameScan.of(frame.subarray(offset, span.valueEnd))?.removal('model')
  return cuts === undefined
    ? undefined
    : splice(
        frame,
        cuts.map(({ start, end, text }) => ({ start: start + offset, end: end + offset, text })),
      )
}

/** Ranges are left to the upstream, which has its models' limits, except where it never receives the value. */
const instructions = optional(text())
const tools = optional(
  list(record({ type: optional(text()), name: optional(text()), parameters: optional(anyRecord) })),
)
const toolChoice = optional(anyOf('a string or an object', text(), anyRecord))
const outputLimit = optional(anyOf("an integer or 'inf'", integer(), oneOf(['inf'])))
const modalities = optional(list(oneOf(['text', 'audio']), { minimumItems: 1 }))
const transcription = optional(
  record({ model: optional(text()), language: optional(text()), prompt: optional(text()) }),
)
const noiseReduction = optional(record({ type: optional(text()) }))
const speed = optional(decimal())

const turnDetection = optional(
  record({
    type: optional(oneOf(['server_vad', 'semantic_vad'])),
    threshold: optional(decimal()),
    prefix_padding_ms: optional(integer()),
    silence_duration_ms: optional(integer()),
  }),
)

/** GA has no temperature, so the upstream would not check it. */
const temperature = optional(decimal({ minimum: 0.6, maximum: 1.2 }))

const betaFormat = optional(oneOf(BETA_FORMATS))
const betaOutput = { modalities, voice: optional(text()), output_audio_format: betaFormat, temperature }
const betaInput = {
  input_audio_format: betaFormat,
  input_audio_transcription: transcription,
  input_audio_noise_reduction: noiseReduction,
  turn_detection: turnDetection,
}

const gaFormat = optional(record({ type: oneOf(GA_FORMATS), rate: optional(integer()) }))
const gaOutputAudio = optional(
  record({ format: gaFormat, voice: optional(anyOf('a string or an object', text(), anyRecord)), speed }),
)
const gaInputAudio = optional(
  record({ format: gaFormat, transcription, noise_reduction: noiseReduction, turn_detection: turnDetection }),
)
const gaAudio = optional(record({ input: gaInputAudio, output: gaOutputAudio }))
const gaResponseAudio = optional(record({ output: gaOutputAudio }))

/**
 * Read elsewhere, or written when a session is translated to the upstream's dialect: no other spelling of them may stand
 * beside it.
 */
const BOTH_DIALECTS = [
  ...SESSION_SETTINGS.map(({ beta }) => beta),
  'model',
  'type',
  'audio',
  'modalities',
  'output_modalities',
  'temperature',
  'max_output_tokens',
  'max_response_output_tokens',
]
const session = (members: Readonly<Record<string, FieldRule>>): FieldRule => record(members, BOTH_DIALECTS)

export const betaSession: FieldRule = required(
  session({
    ...betaOutput,
    ...betaInput,
    audio: gaAudio,
    instructions,
    speed,
    tools,
    tool_choice: toolChoice,
    max_response_output_tokens: outputLimit,
  }),
)

export const betaTranscriptionSession: FieldRule = required(session({ ...betaInput, modalities, audio: gaAudio }))

export const betaResponse: FieldRule = optional(
  session({
    ...betaOutput,
    audio: gaResponseAudio,
    instructions,
    tools,
    tool_choice: toolChoice,
    max_output_tokens: outputLimit,
    max_response_output_tokens: outputLimit,
    input: optional(list(anyRecord)),
    metadata: optional(anyRecord),
  }),
)

export const gaSession: FieldRule = required(
  session({
    type: required(oneOf(['realtime', 'transcription'])),
    output_modalities: modalities,
    audio: gaAudio,
    input_audio_transcription: transcription,
    instructions,
    tools,
    tool_choice: toolChoice,
    max_output_tokens: outputLimit,
  }),
)

export const gaResponse: FieldRule = optional(
  session({
    output_modalities: modalities,
    audio: gaResponseAudio,
    instructions,
    tools,
    tool_choice: toolChoice,
    max_output_tokens: outputLimit,
    input: optional(list(anyRecord)),
    metadata: optional(anyRecord),
  }),
)
