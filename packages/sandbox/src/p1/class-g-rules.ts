import { isObject, type JsonObject, parseJsonObject } from '../server/json-value.js'
import { reject } from '../server/openai-rejection.js'
import type { TranscriptionForm } from '../transcription/transcription-form.js'
import type { P1Family } from './p1-models.js'

const MAX_SPEAKERS = 4
/** Diarization of anything longer needs a chunking strategy, in seconds. */
const DIARIZE_UNCHUNKED_SECONDS = 30
const VAD_KEYS = ['type', 'prefix_padding_ms', 'silence_duration_ms', 'threshold'] as const

/** Judges `include[]`; returns whether log probabilities were asked for. */
export function judgeInclude(form: TranscriptionForm, family: P1Family, format: string): boolean {
  const values = form.texts('include[]')
  const wrong = values.find((value) => value !== 'logprobs')
  if (wrong !== undefined)
    reject(`Invalid value: '${wrong}'. Supported values are: 'logprobs'.`, 'include', 'invalid_value')
  if (values.length === 0) return false
  if (family !== 'transcribe') {
    reject("'include' with 'logprobs' is not supported with this model.", 'include', 'unsupported_value')
  }
  if (format !== 'json') reject("'include' needs response_format 'json'.", 'include', 'unsupported_value')
  return true
}

/** Judges `known_speaker_names[]` and their reference clips; returns the names. */
export function judgeSpeakers(form: TranscriptionForm): readonly string[] {
  const names = form.texts('known_speaker_names[]')
  const references = form.texts('known_speaker_references[]')
  if (names.length > MAX_SPEAKERS) {
    reject(`At most ${MAX_SPEAKERS} known speakers are supported.`, 'known_speaker_names', 'invalid_value')
  }
  if (names.length !== references.length) {
    const message = "'known_speaker_names' and 'known_speaker_references' must have the same length."
    reject(message, 'known_speaker_references', 'invalid_value')
  }
  if (references.some((reference) => !/^data:audio\/[\w.+-]+;base64,[A-Za-z0-9+/]+={0,2}$/.test(reference))) {
    reject("'known_speaker_references' must be data URLs.", 'known_speaker_references', 'invalid_value')
  }
  return names
}

/** Clients send the strategy as `auto`, as a JSON object, or as one part per key; all are accepted. */
export function judgeChunking(form: TranscriptionForm, family: P1Family, seconds: number): void {
  const whole = form.text('chunking_strategy')
  const keyed = keyedStrategy(form)
  if (whole === undefined && keyed === undefined) {
    if (family !== 'diarize' || seconds <= DIARIZE_UNCHUNKED_SECONDS) return
    reject('chunking_strategy is required for diarization models', 'chunking_strategy', 'invalid_value')
  }
  if (whole === 'auto') return
  const strategy = keyed ?? parseJsonObject(Buffer.from(whole ?? ''))
  if (!isObject(strategy) || strategy['type'] !== 'server_vad') {
    const supported = "Supported values are: 'auto' or an object of type 'server_vad'."
    reject(`Invalid value for 'chunking_strategy'. ${supported}`, 'chunking_strategy', 'invalid_value')
  }
  const unknown = Object.keys(strategy).find((key) => !VAD_KEYS.some((known) => known === key))
  if (unknown !== undefined) {
    const path = `chunking_strategy.${unknown}`
    reject(`Unknown parameter: '${path}'.`, path, 'unknown_parameter')
  }
}

function keyedStrategy(form: TranscriptionForm): JsonObject | undefined {
  const entries = form.parts.flatMap((part) => {
    const key = /^chunking_strategy\[(\w+)\]$/.exec(part.name)?.[1]
    return key === undefined ? [] : [[key, part.value] as const]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}
