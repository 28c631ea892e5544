import {
  anything,
  boolean,
  byType,
  type Check,
  decimal,
  integer,
  listOf,
  nullable,
  objectOf,
  oneOf,
  RealtimeRejection,
  text,
  textOr,
} from './validation.js'

/** Rules of the session and of `response.create` that both dialects have. */

/** They hear without a pause: turns are the client's own. */
const STREAMING_MODELS = ['gpt-realtime-whisper', 'gpt-live-transcribe']

const TRANSCRIPTION_MODELS = [
  'whisper-1',
  'gpt-4o-transcribe',
  'gpt-4o-transcribe-latest',
  'gpt-4o-mini-transcribe',
  'gpt-4o-mini-transcribe-2025-03-20',
  'gpt-4o-mini-transcribe-2025-12-15',
  'gpt-4o-transcribe-diarize',
  'gpt-transcribe',
  ...STREAMING_MODELS,
]

/** Whether a transcription session with this model has no turn detection. */
export const isStreaming = (model: unknown): boolean => STREAMING_MODELS.includes(String(model))

const LONGEST_SILENCE_MS = 60_000

export const instructions = text()
export const noiseReduction = nullable(objectOf({ type: oneOf('near_field', 'far_field') }, ['type']))
export const speed = decimal(0.25, 1.5)
export const metadata = nullable(objectOfAnything())
export const include = nullable(listOf(oneOf('item.input_audio_transcription.logprobs')))
export const tracing = nullable(
  textOr(oneOf('auto'), objectOf({ workflow_name: text(), group_id: text(), metadata: anything })),
)
export const prompt = nullable(objectOf({ id: text(), version: nullable(text()), variables: anything }, ['id']))
export const outputLimit = textOr(oneOf('inf'), integer(1, 4096))
export const conversation = oneOf('auto', 'none')

/** `extra` are keys one dialect alone has. */
export function transcription(extra: Readonly<Record<string, Check>> = {}): Check {
  return nullable(
    objectOf({ model: oneOf(...TRANSCRIPTION_MODELS), language: nullable(text()), prompt: nullable(text()), ...extra }),
  )
}

const ANSWERING_DEFAULTS = { create_response: true, interrupt_response: true }

/**
 * `extra` and `extraDefaults` are those of a dialect's server VAD; `answeringDefaults` are empty where nothing answers. The
 * wire's default silence is 200 ms, not 500.
 */
export function turnDetection(
  extra: Readonly<Record<string, Check>> = {},
  extraDefaults: object = {},
  answeringDefaults: object = ANSWERING_DEFAULTS,
): Check {
  const answering = { create_response: boolean, interrupt_response: boolean }
  const serverVad = objectOf(
    {
      type: anything,
      threshold: decimal(0, 1),
      prefix_padding_ms: integer(0, LONGEST_SILENCE_MS),
      silence_duration_ms: integer(0, LONGEST_SILENCE_MS),
      ...answering,
      ...extra,
    },
    ['type'],
    {
      type: 'server_vad',
      threshold: 0.5,
      prefix_padding_ms: 300,
      silence_duration_ms: 200,
      ...extraDefaults,
      ...answeringDefaults,
    },
  )
  const eagerness = oneOf('low', 'medium', 'high', 'auto')
  const semanticVad = objectOf({ type: anything, eagerness, ...answering }, ['type'], {
    type: 'semantic_vad',
    eagerness: 'auto',
    ...answeringDefaults,
  })
  return nullable(byType({ server_vad: serverVad, semantic_vad: semanticVad }))
}

/** Function tools are flat here: a `function` wrapper, as chat has it, is an unknown parameter. */
export const functionTool = objectOf(
  { type: anything, name: text(64), description: nullable(text()), parameters: objectOfAnything() },
  ['type', 'name'],
)

export const functionChoice = objectOf({ type: anything, name: text(64) }, ['type', 'name'])
export const choiceWord = oneOf('none', 'auto', 'required')

/** `supported` are the combinations allowed; their order within does not matter. */
export function modalities(supported: readonly (readonly string[])[]): Check {
  return (value, path) => {
    const given = listOf(oneOf('text', 'audio'))(value, path) as string[]
    const found = supported.find(
      (names) => names.length === given.length && names.every((name) => given.includes(name)),
    )
    if (found !== undefined) return found
    const combinations = supported.map(show).join(' and ')
    const message = `Invalid modalities: ${show(given)}. Supported combinations are: ${combinations}.`
    throw new RealtimeRejection('invalid_value', message, path)
  }
}

function show(names: readonly string[]): string {
  return `[${names.map((name) => `'${name}'`).join(', ')}]`
}

function objectOfAnything(): Check {
  return (value, path) => {
    objectOf({})(typeof value === 'object' && value !== null && !Array.isArray(value) ? {} : value, path)
    return value
  }
}
