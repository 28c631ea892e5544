import type { Exchange } from '../server/exchange.js'
import { openAiFaults, unknownModel } from '../server/openai-errors.js'
import { type P1Context, p1Headers } from './p1-context.js'

export type P1Family =
  | 'chat'
  | 'reasoning-chat'
  | 'audio-chat'
  | 'tts'
  | 'tts-style'
  | 'whisper'
  | 'transcribe'
  | 'diarize'
  | 'gpt-transcribe'

/** Known models: family, and the dated name answers carry where it differs from the one asked for. */
const MODELS: Readonly<Record<string, { family: P1Family; resolved?: string }>> = {
  'gpt-4o': { family: 'chat', resolved: 'gpt-4o-2024-08-06' },
  'gpt-4o-mini': { family: 'chat', resolved: 'gpt-4o-mini-2024-07-18' },
  'gpt-4.1': { family: 'chat', resolved: 'gpt-4.1-2025-04-14' },
  'gpt-5': { family: 'reasoning-chat', resolved: 'gpt-5-2025-08-07' },
  'gpt-5-mini': { family: 'reasoning-chat', resolved: 'gpt-5-mini-2025-08-07' },
  'o4-mini': { family: 'reasoning-chat', resolved: 'o4-mini-2025-04-16' },
  'gpt-audio': { family: 'audio-chat', resolved: 'gpt-audio-2025-08-28' },
  'gpt-audio-1.5': { family: 'audio-chat' },
  'gpt-audio-mini': { family: 'audio-chat', resolved: 'gpt-audio-mini-2025-10-06' },
  'gpt-4o-audio-preview': { family: 'audio-chat', resolved: 'gpt-4o-audio-preview-2025-06-03' },
  'gpt-4o-mini-audio-preview': { family: 'audio-chat', resolved: 'gpt-4o-mini-audio-preview-2024-12-17' },
  'tts-1': { family: 'tts' },
  'tts-1-hd': { family: 'tts' },
  'gpt-4o-mini-tts': { family: 'tts-style' },
  'gpt-4o-mini-tts-2025-12-15': { family: 'tts-style' },
  'whisper-1': { family: 'whisper' },
  'gpt-4o-transcribe': { family: 'transcribe' },
  'gpt-4o-mini-transcribe': { family: 'transcribe' },
  'gpt-4o-mini-transcribe-2025-12-15': { family: 'transcribe' },
  'gpt-4o-transcribe-diarize': { family: 'diarize' },
  'gpt-transcribe': { family: 'gpt-transcribe' },
}

const P1_MODEL_IDS = Object.keys(MODELS)

const CHAT_FAMILIES: readonly P1Family[] = ['chat', 'reasoning-chat', 'audio-chat']
const SPEECH_FAMILIES: readonly P1Family[] = ['tts', 'tts-style']

/** The dated name an answer carries. */
export function resolvedModel(model: string): string {
  return (Object.hasOwn(MODELS, model) ? MODELS[model]?.resolved : undefined) ?? model
}

/** Family on the chat path. Ids the table does not know are chat models, unless they begin with `missing-`. */
export function chatFamily(model: string): P1Family {
  const known = knownFamily(model)
  if (known !== undefined) {
    if (CHAT_FAMILIES.includes(known)) return known
    throw unknownModel(model)
  }
  return /(^|-)audio(-|$)/.test(model) ? 'audio-chat' : 'chat'
}

/** Family on the speech path. */
export function speechFamily(model: string): P1Family {
  const family = knownFamily(model) ?? (/(^|-)tts(-|$)/.test(model) ? guessedSpeech(model) : undefined)
  if (family === undefined || !SPEECH_FAMILIES.includes(family)) throw unknownModel(model)
  return family
}

/** Family on the transcription path. */
export function transcriptionFamily(model: string): P1Family {
  const family = knownFamily(model) ?? guessedTranscription(model)
  if (family === undefined || CHAT_FAMILIES.includes(family) || SPEECH_FAMILIES.includes(family))
    throw unknownModel(model)
  return family
}

function knownFamily(model: string): P1Family | undefined {
  if (model.startsWith('missing-')) throw unknownModel(model)
  return Object.hasOwn(MODELS, model) ? MODELS[model]?.family : undefined
}

function guessedSpeech(model: string): P1Family {
  return model.startsWith('gpt-') ? 'tts-style' : 'tts'
}

function guessedTranscription(model: string): P1Family | undefined {
  if (model.includes('diarize')) return 'diarize'
  if (model.startsWith('gpt-') && model.includes('transcribe')) return 'transcribe'
  return model.includes('whisper') ? 'whisper' : undefined
}

/** GET /v1/models and /v1/models/{id}. */
export async function serveModels(exchange: Exchange, _context: P1Context): Promise<void> {
  const headers = { ...p1Headers(exchange, { tokenLimits: false }), 'content-type': 'application/json' }
  const render = (body: object): string => `${JSON.stringify(body, null, 2)}\n`
  if (await exchange.answeredByFault(openAiFaults({ headers, render, lineEnd: '\n' }), undefined)) return
  const models = P1_MODEL_IDS.map((id) => ({ id, object: 'model', created: 1_686_935_002, owned_by: 'system' }))
  const id = exchange.request.path.split('/')[3]
  const wanted = id === undefined ? undefined : models.find((model) => model.id === decodeURIComponent(id))
  if (id !== undefined && wanted === undefined) throw unknownModel(decodeURIComponent(id))
  await exchange.send(200, headers, render(wanted ?? { object: 'list', data: models }))
}
